"""Agents that take turns: no two of them differ in every state, three together do.

Paper: Section 2.3 ("straightforwardly generalized to support more agents"), Equation 5
"""

from __future__ import annotations

import math

import numpy as np

from craftrl.envs.agents import MarkovPolicy, successor_ranks, tilted
from craftrl.envs.exbmdp import ExBMDP


def turn_taking_policies(world: ExBMDP, n_agents: int = 3, alpha: float = math.log(3)) -> tuple[MarkovPolicy, ...]:
    """Agent k departs from uniform play only at steps h with h mod 3 = k mod 3, and there by alpha.

    At each step one of agents 0, 1, 2 departs, in every state: it prefers the successors nearest to its state in number
    (in the toy world, it stays). So some two of the three are alpha apart everywhere, while any two act alike at every
    third step, and what follows there cannot be told apart. Agents 3, 4, 5 share the turns of 0, 1, 2 and depart in the
    opposite direction; 6, 7, 8 as 0, 1, 2, but twice as far, and so on. With n_agents = 2 these are the two that fail.
    """
    uniform = np.full(world.n_actions, 1 / world.n_actions)

    def table(h: int, departs: float) -> list[np.ndarray]:
        n = np.arange(world.n_states(h + 1))
        ranks = (successor_ranks(T_s, -((n - s) % len(n)).astype(float)) for s, T_s in enumerate(world.T(h)))
        return [tilted(uniform, departs * rank) for rank in ranks]

    departures = [(-1) ** (k // 3) * (k // 6 + 1) * alpha for k in range(n_agents)]
    return tuple(
        MarkovPolicy([table(h, by if h % 3 == k % 3 else 0.0) for h in range(1, world.H)])
        for k, by in enumerate(departures)
    )
