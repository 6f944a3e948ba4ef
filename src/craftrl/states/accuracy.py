"""How well learned states match true ones, which is known only in simulated worlds.

Paper: Appendix D (experiment details)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_function, check_kind, check_method, check_whole, shown
from craftrl.core.encoders import CoordinateEncoder, Encoder
from craftrl.core.relabelling import best_matching
from craftrl.data.labels import as_array, as_labels, as_labels_by_step
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.states.visits import count_visits

__all__ = [
    "accuracy",
    "accuracy_by_step",
    "confusion",
    "encoder_accuracy",
    "population_accuracy",
    "population_state_accuracies",
    "population_summary",
    "state_accuracies",
    "state_accuracies_by_step",
    "state_summary",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


def confusion(labels: ArrayLike, states: ArrayLike) -> NDArray[np.int64]:
    """How often each learned label (rows) meets each true state (columns); unassigned labels (-1) are in no row."""
    label, state = as_labels("labels", labels).ravel(), as_labels("states", states).ravel()
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

    Theorem 3.1 bounds the error of every state, however rare, where `accuracy` weighs states by how often they occur.
    States with fewer than `at_least` labels are left out: of a handful of labels the share is mostly chance. States
    stand in the order of their numbers.
    """
    check_whole("at_least", at_least)
    table, state = confusion(labels, states), as_labels("states", states).ravel()
    visits = np.bincount(state[state >= 0], minlength=table.shape[1])
    hits = np.zeros(len(visits))
    for r, c in best_matching(table).items():
        hits[c] = table[r, c]
    kept = visits >= max(at_least, 1)
    return np.asarray(hits[kept] / visits[kept])


def accuracy_by_step(labels: ArrayLike, states: ArrayLike) -> Floats:
    """`accuracy` at each step, each with its own relabelling; both arrays are (n, H), returned is (H,)."""
    label, state = as_labels_by_step(labels, states)
    return np.array([accuracy(label[:, h], state[:, h]) for h in range(label.shape[1])])


def state_accuracies_by_step(labels: ArrayLike, states: ArrayLike, at_least: int = 1) -> list[Floats]:
    """`state_accuracies` at each step (entry h-1), each with its own relabelling; both arrays are (n, H)."""
    label, state = as_labels_by_step(labels, states)
    return [state_accuracies(label[:, h], state[:, h], at_least) for h in range(label.shape[1])]


def state_summary(by_step: Sequence[Floats]) -> dict[str, float]:
    """Two numbers of the accuracies of single states at each step, entry h-1 belonging to h; h = 1 is left out.

    state_mean   every state weighs the same at its step, and every step the same
    state_worst  the least of all states at all steps, which is what Theorem 3.1 speaks of

    Steps none of whose states was seen often enough count nowhere; without any step both are NaN.
    """
    check_kind("by_step", by_step, (list, tuple), "a list with the accuracies of each step")
    steps = [as_array("by_step", of_states).ravel() for of_states in by_step]
    if any(len(of_states) and not 0 <= of_states.min() <= of_states.max() <= 1 for of_states in steps):
        raise InvalidDataError(f"by_step must hold accuracies from 0 to 1; {shown(by_step)} was given.")
    seen = [of_states for of_states in steps[1:] if len(of_states)] or [np.array([np.nan])]
    return {
        "state_mean": float(np.mean([of_states.mean() for of_states in seen])),
        "state_worst": float(min(of_states.min() for of_states in seen)),
    }


class Encodes(Protocol):
    """Anything that was fitted: it names the state of observations (n, *obs) at step h."""

    def encode(self, x: NDArray[Any], h: int) -> Ints: ...


def encoder_accuracy(learner: Encodes, x_at: Callable[[int], NDArray[Any]], states: Ints) -> Floats:
    """Accuracy of phi'_h on observations x_at(h) whose true states are states[:, h-1]; shape (H,)."""
    true = as_labels("states", states, 2)
    H = true.shape[1]
    check_method("learner", learner, "encode", "a fitted model")
    check_function("x_at", x_at, "a function of h, such as tau.at")
    return np.array([accuracy(learner.encode(x_at(h), h), true[:, h - 1]) for h in range(1, H + 1)])


@runtime_checkable
class KnowsFeatureAccuracy(Protocol):
    """A world that can say how accurate each of its coordinates is as an encoder, over all states and in each."""

    H: int

    def feature_accuracy(self, h: int) -> NDArray[np.floating]: ...

    def feature_state_accuracy(self, h: int) -> NDArray[np.floating]: ...


def population_accuracy(encoders: Callable[[int], Sequence[Encoder]], world: KnowsFeatureAccuracy) -> Floats:
    """Accuracy of coordinate encoders at h = 1..H from the chains' analytic marginals, not from samples.

    `encoders(h)` lists the encoders that a learner has for step h; where there are two, as for paired
    observations, their accuracies are averaged. An encoder without a `feature` is constant and is right where there
    is one state only, that is at h = 1.

    Paper: Appendix D
    """
    _check_population(encoders, world)
    steps = range(1, world.H + 1)
    return np.array([np.mean([_population(phi, world.feature_accuracy, h) for phi in _at(encoders, h)]) for h in steps])


def population_state_accuracies(
    encoders: Callable[[int], Sequence[Encoder]], world: KnowsFeatureAccuracy
) -> list[Floats]:
    """The same for single states: entry h-1 holds, for each state of h, how often it is read right.

    Paper: Theorem 3.1
    """
    _check_population(encoders, world)
    return [
        np.atleast_1d(np.mean([_population(phi, world.feature_state_accuracy, h) for phi in _at(encoders, h)], axis=0))
        for h in range(1, world.H + 1)
    ]


def population_summary(encoders: Callable[[int], Sequence[Encoder]], world: KnowsFeatureAccuracy) -> dict[str, float]:
    """`accuracy` averaged over h = 1..H as in Table 1, and `state_mean` and `state_worst` of `state_summary`."""
    overall = float(population_accuracy(encoders, world).mean())
    return {"accuracy": overall, **state_summary(population_state_accuracies(encoders, world))}


def _check_population(encoders: Any, world: Any) -> None:
    check_function("encoders", encoders, "a function that lists the encoders of step h")
    if isinstance(world, type) or not isinstance(world, KnowsFeatureAccuracy):
        raise InvalidParameterError(
            f"world must know how accurate its coordinates are, as BitsExBMDP does; {shown(world)} was given."
        )


def _at(encoders: Callable[[int], Sequence[Encoder]], h: int) -> Sequence[Encoder]:
    found = encoders(h)
    if not isinstance(found, (list, tuple)) or not found:
        raise InvalidParameterError(f"encoders(h) must list the encoders of step h; at h = {h} it gave {shown(found)}.")
    return found


def _population(phi: Encoder, accuracy_at: Callable[[int], NDArray[np.floating]], h: int) -> Any:
    """Of one encoder at h: a number, or one for each state, whichever `accuracy_at` gives of each coordinate."""
    if isinstance(phi, CoordinateEncoder):
        return accuracy_at(h)[..., phi.feature]
    if h > 1:
        raise InvalidDataError(f"Population accuracy needs coordinate encoders; that at h = {h} is {phi!r}.")
    return 1.0
