"""Learning curves: success over environment steps, and after how many of them a level is reached for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_number, check_whole, shown
from craftrl.data.labels import as_array
from craftrl.errors import InvalidDataError

__all__ = ["Curve", "Policy"]

Policy = Callable[[Any, int], int]  # an action, for an observation and its step h, counted from 1


@dataclass(frozen=True, eq=False)
class Curve:
    """What a learner scored after so many environment steps.

    steps  (m,) environment steps, none fewer than those before
    score  (m,) success or return, measured then
    """

    steps: NDArray[np.int64]
    score: NDArray[np.float64]

    def __post_init__(self) -> None:
        steps, score = as_array("steps", self.steps, "biu"), as_array("score", self.score)
        if steps.ndim != 1 or steps.shape != score.shape or (np.diff(steps) < 0).any():
            raise InvalidDataError(
                f"A curve must have one score for each number of steps, in order; shapes {steps.shape} and "
                f"{score.shape} were given."
            )
        object.__setattr__(self, "steps", steps.astype(np.int64))
        object.__setattr__(self, "score", score.astype(float))

    @classmethod
    def of(cls, rows: Iterable[tuple[int, float]]) -> Curve:
        """From pairs of steps and score."""
        try:
            pairs = [(steps, score) for steps, score in rows]
        except (TypeError, ValueError) as error:
            raise InvalidDataError(f"rows must be pairs of steps and score; {shown(rows)} was given.") from error
        steps: Any = [pair[0] for pair in pairs] if pairs else np.zeros(0, dtype=int)
        score: Any = [pair[1] for pair in pairs]
        return cls(steps, score)

    def __len__(self) -> int:
        return len(self.steps)

    def first(self, level: float = 0.95) -> int | None:
        """The steps after which the score is at least `level` and stays so to the end of the curve; None if never.

        A curve that is high once and falls again has not arrived. How sure that is depends on how long it goes on.
        """
        check_number("level", level, "a finite number", lambda _: True)
        below = np.flatnonzero(self.score < level)
        start = int(below[-1]) + 1 if len(below) else 0
        return int(self.steps[start]) if start < len(self) else None

    def smoothed(self, window: int) -> Curve:
        """The mean of the last `window` scores, from the first moment that there are so many."""
        check_whole("window", window, 1)
        if len(self) < window:
            return Curve(self.steps[:0], self.score[:0])
        total = np.concatenate([[0.0], np.cumsum(self.score)])
        return Curve(self.steps[window - 1 :], (total[window:] - total[:-window]) / window)

    def at(self, steps: Any) -> NDArray[np.float64]:
        """The last score known after so many steps; NaN before the first one."""
        wanted = as_array("steps", steps)
        known = np.concatenate([[np.nan], self.score])
        return known[np.searchsorted(self.steps, wanted, side="right")]
