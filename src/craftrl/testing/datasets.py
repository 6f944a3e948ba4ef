"""Datasets made of the one that was given: shorter trajectories, three agents, everything twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset

__all__ = ["interleaved", "shortened", "three_agents", "trajectories", "twice"]


def trajectories(tau: TrajectoryDataset) -> list[NDArray[Any]]:
    """Every trajectory by itself, of its own length."""
    steps = [tau.at(h) for h in range(1, tau.H + 1)]
    return [np.stack([x_h[i] for x_h in steps[: tau.lengths[i]]]) for i in range(tau.n)]


def shortened(tau: TrajectoryDataset) -> TrajectoryDataset:
    """The same, every third trajectory without its last observation."""
    cut = [x[: max(1, len(x) - 1)] if i % 3 == 0 else x for i, x in enumerate(trajectories(tau))]
    return TrajectoryDataset.from_episodes([cut[tau.agent_slice(k)] for k in range(tau.K)])


def three_agents(tau: TrajectoryDataset) -> TrajectoryDataset:
    """The same trajectories, dealt out to three agents."""
    return tau.select(np.arange(tau.n), np.arange(tau.n) % 3)


def twice(tau: TrajectoryDataset) -> tuple[TrajectoryDataset, NDArray[np.int64]]:
    """Every trajectory twice, and which of the two copies each one is."""
    rows = np.concatenate([np.arange(tau.n)] * 2)
    copy = np.repeat([0, 1], tau.n)
    order = np.argsort(tau.agent[rows], kind="stable")
    return tau.select(rows), copy[order]


def interleaved(agent: NDArray[np.integer], seed: int = 0) -> NDArray[np.int64]:
    """An order of the rows in which the agents are mixed and each agent's rows keep their order."""
    mixed = np.random.default_rng(seed).permutation(agent)
    rows = np.empty(len(agent), dtype=np.int64)
    for k in np.unique(agent):
        rows[mixed == k] = np.flatnonzero(agent == k)
    return rows
