"""How well learned states match true ones, which is known only in simulated worlds.

Paper: Appendix D (experiment details)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.core.encoders import CoordinateEncoder, Encoder
from craftrl.core.relabelling import best_matching
from craftrl.errors import InvalidDataError
from craftrl.states.visits import count_visits

__all__ = [
    "accuracy",
    "accuracy_by_step",
    "confusion",
    "encoder_accuracy",
    "population_accuracy",
    "state_accuracies",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


def confusion(labels: ArrayLike, states: ArrayLike) -> NDArray[np.int64]:
    """How often each learned label (rows) meets each true state (columns); unassigned labels (-1) are in no row."""
    label, state = np.asarray(labels).ravel(), np.asarray(states).ravel()
    if label.shape != state.shape:
        raise InvalidDataError(f"There must be one true state per label; {label.size} and {state.size} were given.")
    return count_visits(label, state)


def accuracy(labels: ArrayLike, states: ArrayLike) -> float:
    """Share of labels that are right under the best one-to-one relabelling; unassigned (-1) ones are wrong."""
    table = confusion(labels, states)
    hits = sum(int(table[r, c]) for r, c in best_matching(table).items())
    return hits / max(int((np.asarray(states) >= 0).sum()), 1)


def state_accuracies(labels: ArrayLike, states: ArrayLike, at_least: int = 1) -> Floats:
    """Of each true state, the share of its labels that is right, under the relabelling of `accuracy`.

    Theorem 4.6 bounds the error of every state, however rare, where `accuracy` weighs states by how often they occur.
    States with fewer than `at_least` labels are left out: of a handful of labels the share is mostly chance. States
    stand in the order of their numbers.
    """
    table, state = confusion(labels, states), np.asarray(states).ravel()
    visits = np.bincount(state[state >= 0], minlength=table.shape[1])
    hits = np.zeros(len(visits))
    for r, c in best_matching(table).items():
        hits[c] = table[r, c]
    kept = visits >= max(at_least, 1)
    return np.asarray(hits[kept] / visits[kept])


def accuracy_by_step(labels: ArrayLike, states: ArrayLike) -> Floats:
    """`accuracy` at each step, each with its own relabelling; both arrays are (n, H), returned is (H,)."""
    label, state = np.asarray(labels), np.asarray(states)
    return np.array([accuracy(label[:, h], state[:, h]) for h in range(label.shape[1])])


class Encodes(Protocol):
    """Anything that was fitted: it names the state of observations (n, *obs) at step h."""

    def encode(self, x: NDArray[Any], h: int) -> Ints: ...


def encoder_accuracy(learner: Encodes, x_at: Callable[[int], NDArray[Any]], states: Ints) -> Floats:
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
    if isinstance(phi, CoordinateEncoder):
        return float(world.feature_accuracy(h)[phi.feature])
    if h > 1:
        raise InvalidDataError(f"Population accuracy needs coordinate encoders; that at h = {h} is {phi!r}.")
    return 1.0
