"""Data made of what was given: shorter trajectories, three agents, everything twice, rows in another order."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.errors import AssumptionWarning

__all__ = ["LearnerData", "interleaved", "shortened", "three_agents", "trajectories", "twice"]


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


@dataclass(frozen=True)
class LearnerData:
    """Trajectories with their agents, one array where all are of one length, else a list."""

    tau: TrajectoryDataset
    x: Any
    agent: NDArray[np.int64]
    further: dict[str, Any]

    @classmethod
    def of(cls, x: Any, agent: Any, further: dict[str, Any]) -> LearnerData:
        grouped = as_dataset(x, agent)
        tau = grouped.tau
        rows = trajectories(tau)
        in_order = {name: grouped.as_grouped(np.asarray(value)) for name, value in further.items()}
        return cls(tau, np.stack(rows) if tau.all_present else rows, tau.agent, in_order)

    def fit(self, model: Any, rows: NDArray[np.integer] | None = None) -> Any:
        """`model` fitted to these rows, in this order; what it warns of the data is not the question here."""
        chosen = np.arange(self.tau.n) if rows is None else rows
        x = self.x[chosen] if isinstance(self.x, np.ndarray) else [self.x[i] for i in chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            return model.fit(x, self.agent[chosen], **{name: value[chosen] for name, value in self.further.items()})
