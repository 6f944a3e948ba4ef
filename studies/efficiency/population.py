"""What chains of codes earn with infinite data, computed from the world and not from samples.

Codes are functions of the state s and of the frozen fair bit e^1 of the toy world, which no action moves. From the
agents' visits to pairs of states follows the exact expected loss of every chain of codes. Two questions are
settled here: whether a mimic ties with the true chain (aliasing), and whether charging a pair only for what its
second code adds is a mistake (forgetting).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.envs import BitsExBMDP, MarkovPolicy
from craftrl.paper.assumptions import population_visits

__all__ = [
    "aliased_chain",
    "balanced_agents",
    "both",
    "conditional_losses",
    "forgetful_chain",
    "limits",
    "mimic",
    "noise",
    "pair_losses",
    "state",
    "sticky_agents",
    "true_chain",
]

Code = Callable[[int, int], int]  # from (s_h, e^1) to a value
Chain = Sequence[Code]
Agents = tuple[MarkovPolicy, MarkovPolicy]


def state(s: int, e: int) -> int:
    return s


def mimic(s: int, e: int) -> int:
    return s ^ e


def both(s: int, e: int) -> int:
    return 2 * s + e


def noise(s: int, e: int) -> int:
    return e


def true_chain(H: int) -> Chain:
    return [state] * H


def aliased_chain(H: int) -> Chain:
    """The start, then a code that carries e^1, then the mimic for good."""
    return [state, both, *[mimic] * (H - 2)]


def forgetful_chain(H: int) -> Chain:
    """The state at even steps, noise at odd ones."""
    return [state, *(state if h % 2 == 0 else noise for h in range(2, H + 1))]


def balanced_agents(world: BitsExBMDP) -> Agents:
    """Agents that visit both states equally often from h = 3 on, whoever they are, and differ by ln 2 or more.

    The first acts uniformly; the second starts out for state 0, makes up for it, and then persists. With the
    paper's agents the mimic is never quite as good as the state: B begins at 0 and is found there more often.
    """
    persist = np.array([[3 / 4, 1 / 4], [1 / 4, 3 / 4]])
    evens_out = np.array([[2 / 3, 1 / 3], [1 / 6, 5 / 6]])
    tables = [np.array([[2 / 3, 1 / 3]]), evens_out, *[persist] * (world.H - 3)]
    return world.persistence_policy(0.5), MarkovPolicy(tables[: world.H - 1])


def sticky_agents(world: BitsExBMDP) -> Agents:
    """Agents that part at the first step and hardly move afterwards: the state itself keeps telling them apart."""

    def agent(first: float, stay: float) -> MarkovPolicy:
        later = np.array([[stay, 1 - stay], [1 - stay, stay]])
        return MarkovPolicy([np.array([[first, 1 - first]]), *[later] * (world.H - 2)])

    return agent(0.9, 0.9), agent(0.1, 0.95)


def pair_losses(world: BitsExBMDP, agents: Agents, chain: Chain) -> NDArray[np.float64]:
    """H(agent | phi_h, phi_{h+1}) in nats for h = 1..H-1: what the pairwise loss tends to, but for the grid."""
    return np.array([_uncertainty(shares) for shares in _cells(world, agents, chain)])


def conditional_losses(world: BitsExBMDP, agents: Agents, chain: Chain) -> NDArray[np.float64]:
    """The same less H(agent | phi_h): minus the information about the agent that phi_{h+1} adds."""
    alone = [_uncertainty(shares.sum(axis=2)) for shares in _cells(world, agents, chain)]
    return pair_losses(world, agents, chain) - np.array(alone)


def limits(H: int = 10) -> dict[str, Any]:
    """Both questions as numbers: the total loss of the true chain and of its rival, each as nats per trajectory."""
    world = BitsExBMDP(H, 2)
    rows = {}
    for title, agents, losses, rival in (
        ("aliasing, balanced agents", balanced_agents(world), pair_losses, aliased_chain),
        ("aliasing, the paper's agents", world.paper_policies(), pair_losses, aliased_chain),
        ("forgetting, conditional loss", sticky_agents(world), conditional_losses, forgetful_chain),
        ("forgetting, pairwise loss", sticky_agents(world), pair_losses, forgetful_chain),
    ):
        true, other = (float(losses(world, agents, chain(H)).sum()) for chain in (true_chain, rival))
        rows[title] = {"true": true, "rival": other, "rival_minus_true": other - true}
    return rows


def _cells(world: BitsExBMDP, agents: Agents, chain: Chain) -> list[NDArray[np.float64]]:
    """For each h the shares of (agent, phi_h, phi_{h+1}) among all trajectories: (K, 4, 4)."""
    cells = []
    for h, visits in enumerate(population_visits(world, agents).pairs, start=1):
        shares = np.zeros((len(agents), 4, 4))
        for k, s, s_next in np.ndindex(*visits.shape):
            for e in (0, 1):
                shares[k, chain[h - 1](s, e), chain[h](s_next, e)] += visits[k, s, s_next] / 2
        cells.append(shares)
    return cells


def _uncertainty(shares: NDArray[np.float64]) -> float:
    """H(agent | cell) for shares (K, cells...)."""
    return float(xlogy(shares.sum(axis=0), shares.sum(axis=0)).sum() - xlogy(shares, shares).sum())
