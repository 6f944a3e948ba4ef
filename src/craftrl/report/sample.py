"""The data behind a model, as far as a report reads it: runs of trajectories, and their states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.errors import InvalidDataError
from craftrl.estimators.craft import CRAFT

__all__ = ["Sample", "the_data_fitted"]

Ints = NDArray[np.int64]
RUNS, RUN = 32, 64  # of an agent with more trajectories than both together, so many runs of neighbours are read


@dataclass(frozen=True)
class Sample:
    """Trajectories of a dataset with the states that a model's encoders read off them.

    runs   where they lie in the dataset: (start, stop) each
    agent  int (m,)
    codes  int (m, H), -1 where a trajectory is over
    """

    tau: TrajectoryDataset
    runs: tuple[tuple[int, int], ...]
    agent: Ints
    codes: Ints

    @classmethod
    def of(cls, model: CRAFT, tau: TrajectoryDataset) -> Sample:
        """Up to 2048 trajectories of each agent, from all over the dataset."""
        runs = tuple(run for k in range(tau.K) for run in _runs(tau.agent_slice(k)))
        rows = np.concatenate([np.arange(*run) for run in runs])
        codes = np.stack(
            [np.concatenate([model.encode(tau.at(h, slice(*run)), h) for run in runs]) for h in range(1, tau.H + 1)],
            axis=1,
        )
        over = np.arange(1, tau.H + 1) > tau.lengths[rows, None]
        return cls(tau, runs, tau.agent[rows], np.where(over, -1, codes).astype(np.int64))

    @property
    def whole(self) -> bool:
        """Whether it is all of the data."""
        return len(self.agent) == self.tau.n

    def at(self, h: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """The observations of step h, some at a time: which trajectories of the sample, and what they saw."""
        start = 0
        for first, last in self.runs:
            yield slice(start, start + last - first), self.tau.at(h, slice(first, last))
            start += last - first

    def one(self, h: int, i: int) -> NDArray[Any]:
        """The observation of trajectory i of the sample at step h."""
        for first, last in self.runs:
            if i < last - first:
                return self.tau.at(h, [first + i])[0]
            i -= last - first
        raise IndexError(i)


def _runs(mine: slice) -> list[tuple[int, int]]:
    if mine.stop - mine.start <= RUNS * RUN:
        return [(mine.start, mine.stop)]
    starts = np.linspace(mine.start, mine.stop - RUN, RUNS).astype(int)
    return [(int(start), int(start) + RUN) for start in starts]


def the_data_fitted(model: CRAFT, x: Any, agent: Any = None) -> TrajectoryDataset:
    """The data, if it is that which the model was fitted to; a model of an older version is taken at its sizes."""
    tau = model.steps_fitted(as_dataset(x, agent)).tau
    known = getattr(model, "data_", None)
    n, H = model.sizes_fitted()
    if (tau.n, tau.H) != (n, H) or tau.obs_shape != model.obs_shape_:
        wanted = f"{n} trajectories of {H} steps, {model.obs_shape_} each"
        given = f"{tau.n} trajectories of {tau.H} steps, {tau.obs_shape} each"
    elif known is not None and known["fingerprint"] != (found := tau.fingerprint()):
        wanted, given = f"fingerprint {known['fingerprint']}", f"fingerprint {found}"
    else:
        return tau
    raise InvalidDataError(
        f"The data must be that which the model was fitted to ({wanted}); other data was given ({given}); give the "
        "data fitted, or leave it out."
    )
