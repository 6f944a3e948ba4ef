"""What chains of codes earn with infinite data, computed from the world and not from samples.

Codes are functions of the state s and of the frozen fair bit e of the toy world, which no action moves. From the
agents' visits to pairs of states follows the exact expected loss of every chain of codes. Two questions are settled:
whether a mimic ties with the true chain (aliasing), and whether charging a pair only for what its second code adds is a
mistake (forgetting).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.envs import BitsExBMDP, MarkovPolicy
from craftrl.paper.assumptions import population_visits
from studies.worlds.policies import staying

__all__ = ["balanced_agents", "losses", "sticky_agents"]

Code = Callable[[int, int], int]  # from (s_h, e) to a value
CODES: dict[str, Code] = {
    "state": lambda s, e: s,
    "mimic": lambda s, e: s ^ e,
    "both": lambda s, e: 2 * s + e,
    "noise": lambda s, e: e,
}


def balanced_agents(world: BitsExBMDP) -> tuple[MarkovPolicy, MarkovPolicy]:
    """Agents that visit both states equally often from h = 3 on, whoever they are, and differ by ln 2 or more.

    The first acts uniformly; the second starts out for state 0, makes up for it, and then persists. With the
    paper's agents the mimic is never quite as good as the state: B begins at 0 and is found there more often.
    """
    persist = np.array([[3 / 4, 1 / 4], [1 / 4, 3 / 4]])
    evens_out = np.array([[2 / 3, 1 / 3], [1 / 6, 5 / 6]])
    tables = [np.array([[2 / 3, 1 / 3]]), evens_out, *[persist] * (world.H - 3)]
    return world.persistence_policy(0.5), MarkovPolicy(tables[: world.H - 1])


def sticky_agents(world: BitsExBMDP) -> tuple[MarkovPolicy, MarkovPolicy]:
    """Agents that part at the first step and hardly move afterwards: the state itself keeps telling them apart."""
    return staying(world.H, 0.9, 0.9), staying(world.H, 0.1, 0.95)


def losses(
    world: BitsExBMDP, agents: Sequence[MarkovPolicy], codes: Sequence[str], conditional: bool = False
) -> NDArray[np.float64]:
    """H(agent | phi_h, phi_{h+1}) in nats for h = 1..H-1: what the pairwise loss tends to, but for the grid.

    `codes` are names in CODES, one for each step.
    `conditional`: the same less H(agent | phi_h), minus the information about the agent that phi_{h+1} adds.
    """
    chain = [CODES[code] for code in codes]
    found = []
    for h, visits in enumerate(population_visits(world, agents).pairs, start=1):
        shares = np.zeros((len(agents), 4, 4))
        for k, s, s_next in np.ndindex(*visits.shape):
            for e in (0, 1):
                shares[k, chain[h - 1](s, e), chain[h](s_next, e)] += visits[k, s, s_next] / 2
        alone = _uncertainty(shares.sum(axis=2)) if conditional else 0.0
        found.append(_uncertainty(shares) - alone)
    return np.array(found)


def _uncertainty(shares: NDArray[np.float64]) -> float:
    """H(agent | cell) for shares (K, cells...)."""
    return float(xlogy(shares.sum(axis=0), shares.sum(axis=0)).sum() - xlogy(shares, shares).sum())
