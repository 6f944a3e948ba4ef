"""Agents that take turns: no two of them differ in every state, three together do.

Two agents are not enough where they act alike in some state: its successors then have one and the same
log-odds. With three or more agents it is enough that some pair of them differs.

Paper: Section 2.3 ("straightforwardly generalized to support more agents"), Equation 5
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_whole
from craftrl.envs.agents import MarkovPolicy, check_contrast, successor_ranks, tilted
from craftrl.envs.exbmdp import ExBMDP, check_tables

__all__ = ["turn_taking_policies"]

MOST_AGENTS = 1000


def turn_taking_policies(world: ExBMDP, n_agents: int = 3, alpha: float = math.log(3)) -> tuple[MarkovPolicy, ...]:
    """Agent k departs from uniform play only at steps h with h mod 3 = k mod 3, and there by alpha.

    At each step just one of agents 0, 1, 2 departs, in every state: it prefers the successors nearest to its state
    in number (in the toy world, it stays). So some pair of the three is alpha apart everywhere, while any two
    act alike at every third step, and what follows there cannot be told apart. Agents 3, 4, 5 share the turns
    of 0, 1, 2 and depart in the opposite direction; 6, 7, 8 as 0, 1, 2, but twice as far, and so on. With
    n_agents = 2 this is the pair that must fail.
    """
    check_tables(world)
    check_contrast(alpha)
    alpha = float(alpha)
    check_whole("n_agents", n_agents, 2, MOST_AGENTS)
    uniform = np.full(world.n_actions, 1 / world.n_actions)
    agents = []
    for k in range(n_agents):
        size = (-1) ** (k // 3) * (k // 6 + 1) * alpha
        tables = []
        for h in range(1, world.H):
            departs = size if h % 3 == k % 3 else 0.0
            ranks = [successor_ranks(T_s, _nearness(world, h, s)) for s, T_s in enumerate(world.T(h))]
            tables.append([tilted(uniform, departs * rank) for rank in ranks])
        agents.append(MarkovPolicy(tables))
    return tuple(agents)


def _nearness(world: ExBMDP, h: int, s: int) -> NDArray[np.floating]:
    """For each state at h+1, how soon it comes when counting on from s, the soonest highest."""
    n = world.n_states(h + 1)
    return -((np.arange(n) - s) % n).astype(float)
