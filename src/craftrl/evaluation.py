"""How well learned states match true ones, which only simulated worlds know, and how often states are visited.

States are names without meaning: every accuracy here is taken under the one-to-one relabelling that fits best.

Paper: Appendix D (experiment details)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_function, check_kind, check_method, check_whole, quoted
from craftrl.arrays import Floats, Ints, Observations
from craftrl.core.encoders import CoordinateEncoder, Encoder
from craftrl.core.labels import crossed, n_labels
from craftrl.core.relabelling import best_matching
from craftrl.data.labels import as_array, as_labels, as_labels_by_step
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = [
    "accuracy",
    "accuracy_by_step",
    "confusion",
    "count_visits",
    "encoder_accuracy",
    "population_accuracy",
    "population_state_accuracies",
    "population_summary",
    "state_accuracies",
    "state_accuracies_by_step",
    "state_summary",
]

MAX_COUNTS = 2**28  # entries of a table of counts, 2 GiB: labels that ask for more do not count from 0


def count_visits(*labels: ArrayLike, sizes: Sequence[int] | None = None) -> NDArray[np.int64]:
    """How many trajectories have each combination of labels: `count_visits(agent, s_h, s_next)[k, s, t]`.

    labels  integers (n,) each, one per trajectory: agents, states at h, states at h+1, or any other numbers. A label
            below 0 is unknown, and its trajectory counts nowhere
    sizes   how many values each kind of label has, which is the shape returned; by default up to the largest that
            occurs

    Paper: Section 2.3 (D_k and its subsets)
    """
    columns = [as_labels("labels", label, 1) for label in labels]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(str(len(column)) for column in columns) or "none"
        raise InvalidDataError(f"There must be one label of each kind per trajectory; {lengths} were given.")
    largest = [n_labels(column) for column in columns]
    shape = largest if sizes is None else as_labels("sizes", sizes, 1).tolist()
    if len(shape) != len(columns) or any(size < most for size, most in zip(shape, largest)):
        raise InvalidDataError(f"sizes must be one more than the largest label at least, {largest}; {sizes} given.")
    if prod(shape) > MAX_COUNTS:
        raise InvalidDataError(
            f"Labels must count from 0 without large gaps; up to {max(shape) - 1} was given, which asks for "
            f"{prod(shape):.3g} counts; number them again."
        )
    return crossed(*columns, sizes=tuple(shape))


def confusion(labels: ArrayLike, states: ArrayLike) -> NDArray[np.int64]:
    """How often each learned label (rows) meets each true state (columns); unassigned labels (-1) are in no row."""
    label, state = as_labels("labels", labels).ravel(), as_labels("states", states).ravel()
    if label.shape != state.shape:
        raise InvalidDataError(f"There must be one true state per label; {label.size} and {state.size} were given.")
    return count_visits(label, state)


def accuracy(labels: ArrayLike, states: ArrayLike) -> float:
    """Share of labels that are right under the best one-to-one relabelling; unassigned (-1) ones are wrong."""
    hits, visits = _right(labels, states)
    return int(hits.sum()) / max(int(visits.sum()), 1)


def state_accuracies(labels: ArrayLike, states: ArrayLike, at_least: int = 1) -> Floats:
    """Of each true state, the share of its labels that is right, under the relabelling of `accuracy`.

    Theorem 3.1 bounds the error of every state, however rare, where `accuracy` weighs states by how often they occur.
    States with fewer than `at_least` labels are left out: of a handful of labels the share is mostly chance. States
    stand in the order of their numbers.
    """
    check_whole("at_least", at_least)
    hits, visits = _right(labels, states)
    kept = visits >= max(at_least, 1)
    return np.asarray(hits[kept] / visits[kept])


def _right(labels: ArrayLike, states: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many labels of each true state are right under the best relabelling, and how many there are."""
    table, state = confusion(labels, states), as_labels("states", states).ravel()
    visits = np.bincount(state[state >= 0], minlength=table.shape[1])
    hits = np.zeros_like(visits)
    for r, c in best_matching(table).items():
        hits[c] = table[r, c]
    return hits, visits


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
        raise InvalidDataError(f"by_step must hold accuracies from 0 to 1; {quoted(by_step)} was given.")
    seen = [of_states for of_states in steps[1:] if len(of_states)] or [np.array([np.nan])]
    return {
        "state_mean": float(np.mean([of_states.mean() for of_states in seen])),
        "state_worst": float(min(of_states.min() for of_states in seen)),
    }


class Encodes(Protocol):
    """Anything that was fitted: it names the state of observations (n, *obs) at step h."""

    def encode(self, x: Observations, h: int) -> Ints: ...


def encoder_accuracy(learner: Encodes, x_at: Callable[[int], Observations], states: ArrayLike) -> Floats:
    """Accuracy of phi'_h on observations x_at(h) whose true states are states[:, h-1]; shape (H,)."""
    true = as_labels("states", states, 2)
    check_method("learner", learner, "encode", "a fitted model")
    check_function("x_at", x_at, "a function of h, such as tau.at")
    return np.array([accuracy(learner.encode(x_at(h), h), true_h) for h, true_h in enumerate(true.T, start=1)])


@runtime_checkable
class KnowsFeatureAccuracy(Protocol):
    """A world that can say how accurate each of its coordinates is as an encoder, in each state (n_states(h), M)."""

    H: int

    def feature_state_accuracy(self, h: int) -> NDArray[np.floating]: ...


def population_state_accuracies(
    encoders: Callable[[int], Sequence[Encoder]], world: KnowsFeatureAccuracy
) -> list[Floats]:
    """For each state of h (entry h-1), how often it is read right, from the chains' analytic marginals, not from
    samples.

    `encoders(h)` lists the coordinate encoders that a learner has for step h; where there are two, as for paired
    observations, their accuracies are averaged. An encoder without a `feature` is constant and is right where there
    is one state only, that is at h = 1.

    Paper: Theorem 3.1, Appendix D
    """
    check_function("encoders", encoders, "a function that lists the encoders of step h")
    if isinstance(world, type) or not isinstance(world, KnowsFeatureAccuracy):
        raise InvalidParameterError(
            f"world must know how accurate its coordinates are, as BitsExBMDP does; {quoted(world)} was given."
        )
    by_step = []
    for h in range(1, world.H + 1):
        found = encoders(h)
        if not isinstance(found, (list, tuple)) or not found:
            raise InvalidParameterError(f"encoders(h) must list the encoders of step {h}; it gave {quoted(found)}.")
        if wrong := [phi for phi in found if h > 1 and not isinstance(phi, CoordinateEncoder)]:
            raise InvalidDataError(f"Population accuracy needs coordinate encoders; that at h = {h} is {wrong[0]!r}.")
        known = world.feature_state_accuracy(h)
        of_each = [known[:, phi.feature] if isinstance(phi, CoordinateEncoder) else np.ones(1) for phi in found]
        by_step.append(np.mean(of_each, axis=0))
    return by_step


def population_accuracy(encoders: Callable[[int], Sequence[Encoder]], world: KnowsFeatureAccuracy) -> Floats:
    """The same at h = 1..H over all states, which are equally likely."""
    return np.array([of_states.mean() for of_states in population_state_accuracies(encoders, world)])


def population_summary(encoders: Callable[[int], Sequence[Encoder]], world: KnowsFeatureAccuracy) -> dict[str, float]:
    """`accuracy` averaged over h = 1..H as in Table 1, and `state_mean` and `state_worst` of `state_summary`."""
    by_step = population_state_accuracies(encoders, world)
    return {"accuracy": float(np.mean([of_states.mean() for of_states in by_step])), **state_summary(by_step)}
