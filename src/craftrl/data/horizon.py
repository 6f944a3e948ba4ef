"""The first steps of a dataset, and how many of them are worth learning from."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import ArraySteps, Steps, TrajectoryDataset
from craftrl.data.raw import RawRows
from craftrl.errors import InvalidParameterError

__all__ = ["first_steps", "well_reached"]


class Counted(Protocol):
    """A dataset of which it is known how many trajectories of each agent there are, and reach each step."""

    @property
    def H(self) -> int: ...
    @property
    def counts(self) -> NDArray[np.int64]: ...
    def running(self, h: int) -> NDArray[np.int64]: ...


SHARE, FEWEST = 0.1, 50  # of each agent's trajectories: those that must reach a step, in share and in number


def well_reached(tau: Counted) -> int:
    """The last step that enough trajectories of every agent reach: a tenth of its own, and 50, or half if it has few.

    Where episodes end at different times, few reach the last steps. What is learned there is learned from few. It is 2
    at least.
    """
    enough = np.maximum(np.ceil(SHARE * tau.counts), np.minimum(FEWEST, np.ceil(tau.counts / 2)))
    return max(2, *(h for h in range(1, tau.H + 1) if (tau.running(h) >= enough).all()))


def first_steps(tau: TrajectoryDataset, H: int) -> TrajectoryDataset:
    """The same trajectories, cut after step H; nothing is copied."""
    if not 2 <= H <= tau.H:
        raise InvalidParameterError(f"The horizon must lie in 2..{tau.H}, the steps that there are; {H} was given.")
    if tau.H == H:
        return tau
    steps: Steps = ArraySteps(tau.steps.array[:H]) if isinstance(tau.steps, ArraySteps) else _First(tau.steps, H)
    return TrajectoryDataset(steps, tau.agent, np.minimum(tau.lengths, H), tau.names)


class _First:
    """The first steps of observations that lie elsewhere."""

    def __init__(self, steps: Steps, H: int) -> None:
        self.of = steps
        self.shape = (H, *steps.shape[1:])
        self.dtype = steps.dtype

    def read(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return self.of.read(step, start, stop)

    def raw(self) -> RawRows | None:
        raw = getattr(self.of, "raw", None)
        return None if raw is None else raw()

    @property
    def rows_together(self) -> int:
        return int(getattr(self.of, "rows_together", 1))
