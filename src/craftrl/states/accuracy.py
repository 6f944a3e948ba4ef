"""How well learned states match true ones, which is known only in simulated worlds.

Paper: Appendix D (experiment details)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from craftrl.errors import InvalidDataError
from craftrl.estimators.base import Learner
from craftrl.oracles.base import Encoder

__all__ = [
    "accuracy",
    "accuracy_by_step",
    "best_matching",
    "confusion",
    "encoder_accuracy",
    "population_accuracy",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


def confusion(labels: ArrayLike, states: ArrayLike) -> NDArray[np.int64]:
    """How often each learned label (rows) meets each true state (columns); unassigned labels (-1) are in no row."""
    label, state = np.asarray(labels).ravel(), np.asarray(states).ravel()
    if label.shape != state.shape:
        raise InvalidDataError(f"There must be one true state per label; {label.size} and {state.size} were given.")
    table = np.zeros((int(label.max(initial=-1)) + 1, int(state.max(initial=-1)) + 1), dtype=np.int64)
    assigned = (label >= 0) & (state >= 0)
    np.add.at(table, (label[assigned], state[assigned]), 1)
    return table


def best_matching(table: NDArray[np.integer]) -> dict[int, int]:
    """sigma_h: the one-to-one matching of learned labels to true states that agrees most often."""
    rows, columns = linear_sum_assignment(table, maximize=True)
    return {int(r): int(c) for r, c in zip(rows, columns)}


def accuracy(labels: ArrayLike, states: ArrayLike) -> float:
    """Share of labels that are right under the best one-to-one relabelling; unassigned (-1) ones are wrong."""
    table = confusion(labels, states)
    hits = sum(int(table[r, c]) for r, c in best_matching(table).items())
    return hits / max(int((np.asarray(states) >= 0).sum()), 1)


def accuracy_by_step(labels: ArrayLike, states: ArrayLike) -> Floats:
    """`accuracy` at each step, each with its own relabelling; both arrays are (n, H), returned is (H,)."""
    label, state = np.asarray(labels), np.asarray(states)
    return np.array([accuracy(label[:, h], state[:, h]) for h in range(label.shape[1])])


def encoder_accuracy(learner: Learner, x_at: Callable[[int], NDArray[Any]], states: Ints) -> Floats:
    """Accuracy of phi'_h on observations x_at(h) whose true states are states[:, h-1]; shape (H,)."""
    H = states.shape[1]
    return np.array([accuracy(learner.encode(x_at(h), h), states[:, h - 1]) for h in range(1, H + 1)])


class KnowsFeatureAccuracy(Protocol):
    """A world that can say how accurate each of its coordinates is as an encoder."""

    H: int

    def feature_accuracy(self, h: int) -> NDArray[np.floating]: ...


def population_accuracy(encoders: Callable[[int], list[Encoder]], world: KnowsFeatureAccuracy) -> Floats:
    """Accuracy of coordinate encoders at h = 1..H from the chains' analytic marginals, not from samples.

    `encoders(h)` lists the encoders that a learner has for step h; where there are two, as for paired
    observations, their accuracies are averaged. An encoder without a `feature` is constant and is right where there
    is one state only, that is at h = 1.

    Paper: Appendix D
    """
    return np.array([np.mean([_population(phi, world, h) for phi in encoders(h)]) for h in range(1, world.H + 1)])


def _population(phi: Encoder, world: KnowsFeatureAccuracy, h: int) -> float:
    feature = getattr(phi, "feature", None)
    if feature is None and h > 1:
        raise InvalidDataError(f"Population accuracy needs coordinate encoders; the one at h = {h} has no `feature`.")
    return 1.0 if feature is None else float(world.feature_accuracy(h)[feature])
