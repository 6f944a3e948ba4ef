"""Two sets of observations told apart by a classifier of their own, as Line 25 has it.

One classifier over all clusters of a step would answer every question of the step at once. Networks can be trained that
way. Boosted trees cannot be relied on: among dozens of classes, several of which are the same state and so cannot be
told apart, the scores of the others may grow without bound, until the classifier is sure of itself and wrong nearly
everywhere. Two sets at a time are safe, and small. Most questions need no classifier: a linear discriminant tells the
two apart, and costs next to nothing.

Paper: Line 25, Equation 17
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.merging import CHANCE_HALF
from craftrl.oracles.probabilities import ClassifierSeparation

__all__ = ["HeldOut", "SetSeparation", "linear_discriminant"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
# From a maker of classifiers, observations (m, d) and two labels to the rows held out and their log-probabilities.
HeldOut = Callable[[Callable[[], Any], Floats, Ints], tuple[NDArray[np.bool_], Floats]]
ENOUGH = 500  # observations of either set that are looked at


def linear_discriminant() -> Any:
    """Fisher's, with a covariance that is shrunk as far as the number of observations asks for (Ledoit and Wolf)."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # dear to import

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


class SetSeparation:
    """Line 25 for the clusters of one step: L(g) of the first g that tells two sets apart, or else of the last tried.

    makers    of classifiers, the cheapest first
    held_out  trains them and says what they make of observations that they did not see
    x         float (m, d): the observations
    cluster   int (m,): the cluster of each
    """

    def __init__(
        self, makers: Sequence[Callable[[], Any]], held_out: HeldOut, x: Floats, cluster: Ints, seed: int
    ) -> None:
        self.makers = makers
        self.held_out = held_out
        order = np.random.default_rng(seed).permutation(len(x))  # so that the first of any cluster are a fair sample
        self.x, self.cluster = x[order], cluster[order]
        self._known: dict[tuple[int, ...], float] = {}

    def __call__(self, new: int, state: Sequence[int]) -> float:
        key = new, *state
        if key not in self._known:
            self._known[key] = self._loss(new, state)
        return self._known[key]

    def _loss(self, new: int, state: Sequence[int]) -> float:
        sets = [np.flatnonzero(np.isin(self.cluster, names))[:ENOUGH] for names in (state, [new])]
        if not all(map(len, sets)):
            return 0.0
        x, label = self.x[np.concatenate(sets)], np.repeat([0, 1], [len(rows) for rows in sets])
        loss = 1.0
        for maker in self.makers:
            held_out, log_p = self.held_out(maker, x, label)
            loss = ClassifierSeparation(log_p, label[held_out], 2)(1, [0])
            if loss <= CHANCE_HALF:
                break
        return loss
