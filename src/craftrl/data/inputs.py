"""Whatever `fit` and its companions accept, as one dataset.

One array with a label for every trajectory, one array per agent, lists of episodes of unequal length, a dataset, or the
path of one on disk. A dataset holds trajectories grouped by agent, so the order of the caller's rows is kept beside
it: what is returned for each trajectory comes in the caller's order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import quoted
from craftrl.data.dataset import TrajectoryDataset, as_block, as_observations
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError

LABELS = (str, bytes, Number, np.bool_)


@dataclass(frozen=True)
class Grouped:
    """A dataset and where its trajectories came from.

    tau   trajectories grouped by agent, with the agents' names as the caller gives them
    rows  int (n,): trajectory i of tau is row rows[i] of what was given
    """

    tau: TrajectoryDataset
    rows: NDArray[np.integer]

    def described(self) -> dict[str, Any]:
        """Sizes, shape, type and fingerprint, and how recordings were read, as plain values."""
        tau = self.tau
        sizes = {"trajectories": tau.counts.tolist(), "steps": tau.H, "observation": list(tau.obs_shape)}
        reading = {"reading": tau.notes["reading"]} if "reading" in tau.notes else {}
        return {**sizes, "dtype": str(tau.dtype), "fingerprint": tau.fingerprint(), **reading}

    def as_given(self, values: NDArray[Any]) -> NDArray[Any]:
        """One entry per trajectory of tau, put in the order of the caller's rows."""
        out = np.empty_like(values)
        out[self.rows] = values
        return out

    def as_grouped(self, values: NDArray[Any]) -> NDArray[Any]:
        """One entry per row of the caller's, put in the order of tau."""
        return values[self.rows]


def as_dataset(x: Any, agent: Any = None) -> Grouped:
    """A dataset from trajectories `x` and, unless `x` says so itself, the agent of each of them; nothing is copied."""
    if agent is None:
        tau = _without_labels(x)
        return Grouped(tau, np.arange(tau.n))
    if isinstance(x, (TrajectoryDataset, str, os.PathLike)):
        raise InvalidDataError("A dataset knows its agents; leave out the labels, or give arrays with labels.")
    if isinstance(x, (list, tuple)) and plain_array(x) is None:
        tau = TrajectoryDataset.of([as_observations(own, f"trajectory {i}")[None] for i, own in enumerate(x)])
    else:
        tau = TrajectoryDataset.of([as_block(x, "all trajectories")])
    names, label = _labels(agent, tau.n)
    rows = np.argsort(label, kind="stable")
    return Grouped(tau.like(rows, label[rows], tau.H, names).checked(), rows)


def as_trajectories(x: Any, obs_ndim: int) -> TrajectoryDataset:
    """Trajectories whoever made them, as if they were one agent's, in the order given.

    A dataset, one array, or lists of trajectories, nested in any way; an observation has `obs_ndim` axes.
    """
    if isinstance(x, (TrajectoryDataset, str, os.PathLike)):
        return _without_labels(x)
    array = plain_array(x)
    if isinstance(x, (list, tuple)) and (array is None or array.ndim != obs_ndim + 2):
        return TrajectoryDataset.of([as_observations(own, "a trajectory")[None] for own in _episodes(x, obs_ndim)])
    return TrajectoryDataset.of([as_block(x, "all trajectories")])


def as_padded(x: Any, H: int, obs_shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Trajectories as one array (n, H, *obs), whoever made them, and which of their observations are there (n, H)."""
    tau = as_trajectories(x, len(obs_shape))
    if not 1 < tau.H <= H or tau.obs_shape != obs_shape:
        raise InvalidDataError(
            f"Trajectories must have 2 to {H} steps of shape {obs_shape}, as those fitted; {tau.H} of shape "
            f"{tau.obs_shape} were given."
        )
    block = tau.like(np.arange(tau.n), tau.agent, H, None).rows(np.arange(tau.n))
    return block, np.arange(H) < tau.lengths[:, None]


def _without_labels(x: Any) -> TrajectoryDataset:
    """Trajectories that say themselves whose they are."""
    if isinstance(x, TrajectoryDataset):
        return x
    if isinstance(x, (str, os.PathLike)):
        return TrajectoryDataset.open(x)
    if isinstance(x, np.ndarray):
        raise InvalidDataError(
            f"One array needs the agent of each trajectory; shape {x.shape} was given alone; call fit(x, agent), or "
            "give a list with one array per agent."
        )
    if not isinstance(x, (list, tuple)):
        raise InvalidDataError(
            "Trajectories must be an array with agent labels, a list with one array per agent, a TrajectoryDataset, or "
            f"the path of one; {type(x).__name__} was given."
        )
    listed = all(isinstance(own, (list, tuple)) for own in x)
    return TrajectoryDataset.from_episodes(x) if listed else TrajectoryDataset.from_arrays(x)


def _episodes(x: Any, obs_ndim: int, depth: int = 3) -> Iterator[Any]:
    """The trajectories (length, *obs) of lists of them, of lists of arrays of them, and of lists of such lists."""
    for part in x:
        array = plain_array(part)
        if depth and (array is None or array.ndim > obs_ndim + 1):
            yield from _episodes(part, obs_ndim, depth - 1)
        elif array is not None and array.ndim == obs_ndim + 1 and len(array):
            yield array
        else:
            raise InvalidDataError(
                f"A trajectory must have {obs_ndim + 1} axes, (steps, ...), and at least one step; {quoted(part)} was "
                "given."
            )


def _labels(agent: Any, n: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The agents' names, sorted, and the number of each trajectory's agent."""
    array = plain_array(agent)
    if array is None or array.shape != (n,):
        shape = "unequal rows, or masked ones," if array is None else f"shape {array.shape}"
        raise InvalidDataError(
            f"There must be one agent label per trajectory; {n} trajectories and labels of {shape} were given."
        )
    labels = list(agent) if isinstance(agent, (list, tuple)) else array.tolist()  # NumPy would make names of everything
    if any(label is None or label != label for label in labels):
        raise InvalidDataError("Agent labels must be names or numbers; some are missing (None, NaN); drop those rows.")
    kinds = {str if isinstance(label, (str, bytes)) else float for label in labels if isinstance(label, LABELS)}
    if len(kinds) > 1 or not all(isinstance(label, LABELS) for label in labels):
        found = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise InvalidDataError(f"Agent labels must all be numbers, or all be names; labels of type {found} were given.")
    names, label = np.unique(array.astype(str) if array.dtype.kind == "S" else array, return_inverse=True)
    return tuple(names.tolist()), label.reshape(-1).astype(np.int64)
