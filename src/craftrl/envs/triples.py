"""Agents of whom no two differ in every state, and any three that take turns do.

Two agents are not enough where they act alike in some state: its successors then have one and the same
log-odds. With three or more agents it is enough that some pair of them differs.

Paper: Section 2.3 ("straightforwardly generalized to support more agents"), Equation 4
"""

from __future__ import annotations

import math

import numpy as np

from craftrl.envs.contrast import tilted
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.policies import MarkovPolicy
from craftrl.errors import InvalidParameterError
from craftrl.grid import check_alpha

__all__ = ["turn_taking_policies"]


def turn_taking_policies(world: ExBMDP, n_agents: int = 3, alpha: float = math.log(3)) -> tuple[MarkovPolicy, ...]:
    """Agent k departs from uniform play only where (h + s) mod 3 = k mod 3, and there by alpha.

    Agents 0 and 1 act alike wherever it is agent 2's turn, and so on round; at every (h, s) just one of the three
    departs, so for three agents some pair is alpha apart everywhere. Agents 3, 4, 5 share the turns of 0, 1,
    2 and depart in the opposite direction; agents 6, 7, 8 as 0, 1, 2, but twice as far, and so on. With
    n_agents = 2 this is the pair that must fail.
    """
    check_alpha(alpha)
    if n_agents < 2:
        raise InvalidParameterError(f"There must be at least two agents; n_agents = {n_agents} was given.")
    uniform = np.full(world.n_actions, 1 / world.n_actions)
    agents = []
    for k in range(n_agents):
        size = (-1) ** (k // 3) * (k // 6 + 1) * alpha
        tables = []
        for h in range(1, world.H):
            by_number = np.arange(world.n_states(h + 1), dtype=float)
            turn = (h + np.arange(world.n_states(h))) % 3 == k % 3
            tables.append([tilted(uniform, T_s, by_number, size * mine) for T_s, mine in zip(world.T(h), turn)])
        agents.append(MarkovPolicy(tables))
    return tuple(agents)
