"""All encoders of a step on trajectories that lie in several places: sizes are known, planes are not.

It stands where a `PackedStep` stands. Whatever counts planes is `summed`, so that neither the search for encoders nor
the tests of them know the difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.spread import Places, Recipe, Spread, SpreadLabels, summed
from craftrl.engine.packing import PackedStep, segments

__all__ = ["SpreadStep", "Step", "value_counts_of"]

Int64 = NDArray[np.int64]


class SpreadStep(Spread):
    """All encoders of Phi_h on the observations of step h, wherever these are.

    size, N_s, counts  as those of a `PackedStep`: of all places together
    totals             int (K,): how many trajectories of each agent have an observation, where that is known already
    """

    def __init__(
        self, places: Places, recipe: Recipe, size: int, N_s: int, counts: Int64, totals: Int64 | None = None
    ) -> None:
        super().__init__(places, recipe)
        self.size = size
        self.N_s = N_s
        self.counts = counts
        self._totals = totals
        self._value_counts: Int64 | None = None

    __eq__ = object.__eq__  # counts are kept by step, not by what they are counts of
    __hash__ = object.__hash__

    @property
    def segments(self) -> Int64:
        """Where each agent's words would begin, were they in one place: what it costs to count depends on it."""
        return segments(self.counts)

    # Plain properties: whoever waits for an answer must not hold a lock, as `cached_property` does in Python 3.11.

    @property
    def totals(self) -> Int64:
        """How many trajectories of each agent have an observation, shape (K,)."""
        if self._totals is None:
            self._totals = totals_of(self)
        return self._totals

    @property
    def value_counts(self) -> Int64:
        """How often each agent shows each value >= 1 of each encoder, shape (K, N_s - 1, |Phi_h|)."""
        if self._value_counts is None:
            self._value_counts = value_counts_of(self)
        return self._value_counts

    @value_counts.setter
    def value_counts(self, counts: Int64) -> None:
        self._value_counts = counts

    def take(self, encoders: NDArray[np.integer]) -> SpreadStep:
        """Some of the encoders, in the order given."""
        taken = self._made(PackedStep.take, np.asarray(encoders), size=len(encoders), totals=self.totals)
        if self._value_counts is not None:
            taken.value_counts = self._value_counts[..., encoders]
        return taken

    def nothing(self) -> SpreadStep:
        """The encoder that is 0 everywhere, on the same trajectories."""
        return self._made(PackedStep.nothing, size=1, N_s=1, totals=self.totals)

    def among(self, other: SpreadStep) -> SpreadStep:
        """All encoders on those trajectories alone that `other` has an observation of.

        Trajectories end and do not begin again: of two steps, the later one's are among the earlier one's.
        """
        if np.array_equal(self.totals, np.minimum(self.totals, other.totals)):
            return self
        return self._made(PackedStep.among, other, totals=np.minimum(self.totals, other.totals))

    def half(self, which: int, seed: int) -> SpreadStep:
        """All encoders on one of two halves of each agent's trajectories, drawn at random."""
        return self._made(PackedStep.half, which, seed)

    def values(self, index: int) -> SpreadLabels:
        """One encoder's values, -1 where there is no observation."""
        return SpreadLabels(self.places, Recipe(PackedStep.values, self, index), self.N_s)

    def _made(self, function: Any, *args: Any, **changed: Any) -> SpreadStep:
        sizes = {"size": self.size, "N_s": self.N_s, "counts": self.counts, **changed}
        return SpreadStep(self.places, Recipe(function, self, *args), **sizes)


@summed
def totals_of(step: PackedStep) -> Int64:
    return step.totals


@summed
def value_counts_of(step: PackedStep) -> Int64:
    return step.value_counts


Step = PackedStep | SpreadStep
