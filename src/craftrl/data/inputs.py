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

from craftrl.arguments import shown
from craftrl.data.dataset import HeldFrames, TrajectoryDataset, as_observations
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError

__all__ = ["Grouped", "as_block", "as_dataset", "each_step"]


@dataclass(frozen=True)
class Grouped:
    """A dataset and where its trajectories came from.

    tau    trajectories grouped by agent
    rows   int (n,): trajectory i of tau is row rows[i] of what was given
    names  the agents as the caller calls them; agent k of tau is names[k]
    """

    tau: TrajectoryDataset
    rows: NDArray[np.integer]
    names: tuple[Any, ...]

    def described(self) -> dict[str, Any]:
        """Sizes, shape, type and fingerprint, and how recordings were read, as plain values."""
        tau = self.tau
        found = {
            "trajectories": tau.counts.tolist(),
            "steps": tau.H,
            "observation": list(tau.obs_shape),
            "dtype": str(tau.dtype),
            "fingerprint": tau.fingerprint(),
        }
        return {**found, "reading": tau.notes["reading"]} if "reading" in tau.notes else found

    def as_given(self, values: NDArray[Any]) -> NDArray[Any]:
        """One entry per trajectory of tau, put in the order of the caller's rows."""
        if np.array_equal(self.rows, np.arange(len(values))):
            return values
        out = np.empty_like(values)
        out[self.rows] = values
        return out

    def as_grouped(self, values: NDArray[Any]) -> NDArray[Any]:
        """One entry per row of the caller's, put in the order of tau."""
        return values[self.rows]


def as_dataset(x: Any, agent: Any = None) -> Grouped:
    """A dataset from trajectories `x` and, unless `x` says so itself, the agent of each of them."""
    if agent is None:
        tau = _without_labels(x)
        return Grouped(tau, np.arange(tau.n), tau.names)
    if isinstance(x, (TrajectoryDataset, str, os.PathLike)):
        raise InvalidDataError("A dataset knows its agents; leave out the labels, or give arrays with labels.")
    episodes = _trajectories(x)
    names, label = _labels(agent, len(episodes))
    rows = np.argsort(label, kind="stable")
    if isinstance(episodes, np.ndarray):
        n, H = episodes.shape[:2]
        frames = HeldFrames([episodes.reshape(n * H, *episodes.shape[2:])])
        tau = TrajectoryDataset(frames, (np.zeros_like(rows), rows * H), np.full(n, H), label[rows], names=names)
        return Grouped(tau, rows, names)
    by_agent = [[episodes[i] for i in rows if label[i] == k] for k in range(len(names))]
    return Grouped(TrajectoryDataset.from_episodes(by_agent, names), rows, names)


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
    if x and all(isinstance(own, (list, tuple)) and own and _axes(own[0]) >= 1 for own in x):
        return TrajectoryDataset.from_episodes(x)
    return TrajectoryDataset.from_arrays(x)


def _trajectories(x: Any) -> NDArray[Any] | list[NDArray[Any]]:
    """x as one array (n, H, *obs), or as a list of episodes where their lengths differ."""
    if isinstance(x, (list, tuple)) and _shapes_differ(x):
        return [as_observations(episode, f"trajectory {i}") for i, episode in enumerate(x)]
    array = as_observations(x, "all trajectories")
    if array.ndim < 2 or array.shape[1] == 0:
        raise InvalidDataError(
            f"Trajectories must have shape (trajectories, steps, ...); shape {array.shape} was given."
        )
    return array


def _shapes_differ(x: Any) -> bool:
    if np.isscalar(x):
        return False
    try:
        return len({np.shape(episode) for episode in x}) > 1
    except ValueError:  # a list of lists of different lengths has no shape
        return True
    except TypeError:  # None and the like have no parts
        return False


def _labels(agent: Any, n: int) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The agents' names, sorted, and the number of each trajectory's agent."""
    if np.ma.is_masked(agent):
        raise InvalidDataError("Agent labels must be names or numbers; some are masked; drop those rows.")
    array = plain_array(agent)
    given = np.empty((0, 0)) if array is None else array
    given = given.astype(str) if given.dtype.kind == "S" else given
    if given.ndim != 1 or len(given) != n:
        raise InvalidDataError(
            f"There must be one agent label per trajectory; {n} trajectories and labels of shape {given.shape} were "
            "given."
        )
    _check_kinds(list(agent) if isinstance(agent, (list, tuple)) else given)
    names, label = np.unique(given, return_inverse=True)
    if len(names) < 2:
        raise InvalidDataError(
            f"There must be trajectories of at least two agents; those of {len(names)} were given; CRAFT learns from "
            "the differences between agents."
        )
    return tuple(names.tolist()), label.reshape(-1).astype(np.int64)


def _check_kinds(labels: NDArray[Any] | list[Any]) -> None:
    """All numbers or all names, and none missing; NumPy would make names of everything in silence."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biuSU":
        return
    if any(label is None or label != label for label in labels):
        raise InvalidDataError("Agent labels must be names or numbers; some are missing (None, NaN); drop those rows.")
    kinds = {str if isinstance(label, str) else float if isinstance(label, Number) else type(label) for label in labels}
    if len(kinds) > 1 or not kinds <= {str, float, bytes, np.bool_}:
        found = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise InvalidDataError(f"Agent labels must all be numbers, or all be names; labels of type {found} were given.")


def each_step(x: Any, obs_ndim: int) -> Iterator[tuple[int, NDArray[Any], NDArray[np.bool_]]]:
    """(h, observations (n, *obs), which of them are there) for h = 1, 2, ... of trajectories, whoever made them.

    Whatever `as_dataset` takes, without labels; an observation has `obs_ndim` axes. The order is the one given.
    """
    if isinstance(x, (TrajectoryDataset, str, os.PathLike)):
        tau = _without_labels(x)
        for h in range(1, tau.H + 1):
            yield h, tau.at(h), tau.present(h)
        return
    if isinstance(x, (list, tuple)) and not _is_one_array(x, obs_ndim + 2):
        episodes = [as_observations(episode, "a trajectory") for episode in _episodes(x, obs_ndim)]
        for step in range(max(map(len, episodes), default=0)):
            there = np.array([len(episode) > step for episode in episodes])
            yield step + 1, np.stack([episode[min(step, len(episode) - 1)] for episode in episodes]), there
        return
    array = _trajectories(x)
    assert isinstance(array, np.ndarray)
    for step in range(array.shape[1]):
        yield step + 1, array[:, step], np.ones(len(array), dtype=bool)


def as_block(x: Any, H: int, obs_shape: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Trajectories as one array (n, H, *obs), whoever made them, and which of their observations are there (n, H)."""
    steps = list(each_step(x, len(obs_shape)))
    shape = steps[0][1].shape[1:] if steps else ()
    if not 1 < len(steps) <= H or shape != obs_shape:
        raise InvalidDataError(
            f"Trajectories must have 2 to {H} steps of shape {obs_shape}, as those fitted; {len(steps)} of shape "
            f"{shape} were given."
        )
    missing = H - len(steps)
    block = np.stack([x_h for _, x_h, _ in steps] + [steps[-1][1]] * missing, axis=1)
    present = np.stack([there for _, _, there in steps], axis=1)
    return block, np.pad(present, ((0, 0), (0, missing)))


def _is_one_array(x: Any, ndim: int) -> bool:
    return not _shapes_differ(x) and _axes(x) == ndim


def _episodes(x: Any, obs_ndim: int, depth: int = 3) -> Iterator[Any]:
    """The trajectories (length, *obs) of lists of them, of lists of arrays of them, and of lists of such lists."""
    for part in x:
        if depth and (_shapes_differ(part) or _axes(part) > obs_ndim + 1):
            yield from _episodes(part, obs_ndim, depth - 1)
        elif _axes(part) == obs_ndim + 1 and len(part):
            yield part
        else:
            raise InvalidDataError(
                f"A trajectory must have {obs_ndim + 1} axes, (steps, ...), and at least one step; {shown(part)} was "
                "given."
            )


def _axes(x: Any) -> int:
    """How many axes an array has, or a list that is one; -1 for a list whose rows differ."""
    array = plain_array(x)
    return -1 if array is None else array.ndim
