"""tau: the trajectories of all agents, grouped by agent, read one time step at a time.

Paper: Section 2.3
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_method, check_room_in_memory, check_whole, is_whole, shown
from craftrl.data.labels import as_array, as_labels, plain_array
from craftrl.data.raw import RawRows, Run, mapped_at
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["ArraySteps", "Steps", "TrajectoryDataset", "as_observations"]

NAMES = (str, Real, np.bool_)  # what agents may be called
BLOCK_BYTES = 64 * 2**20  # how much of one time step `blocks` reads at once


class Steps(Protocol):
    """Where observations lie: in memory or on disk, time first. The index here counts from 0."""

    shape: tuple[int, ...]  # (H, n, *obs)
    dtype: np.dtype[Any]

    def read(self, step: int, start: int, stop: int) -> NDArray[Any]:
        """Observations of trajectories start..stop-1 at this step, shape (stop - start, *obs)."""
        ...


class ArraySteps:
    """Observations held in one array of shape (H, n, *obs)."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype

    def read(self, step: int, start: int, stop: int) -> NDArray[Any]:
        return self.array[step, start:stop]

    def raw(self) -> RawRows | None:
        """Where the observations lie in a file, if the array is a memory map."""
        place = mapped_at(self.array)
        if place is None:
            return None
        file, first = place
        n, row_bytes = self.shape[1], self.array[0, :1].nbytes
        return RawRows(lambda step, row: Run(file, first + (step * n + row) * row_bytes, n - row))


class TrajectoryDataset:
    """Observations x_1..x_H of trajectories by K >= 2 agents; agents are the integers 0..K-1.

    Trajectories are grouped by agent, in the order given. `h` is the paper's, 1..H: only this module subtracts
    one. A trajectory may be shorter than H; `present(h)` tells which ones still run at h.

    `names` are the agents' own, where they are known: agent k is names[k]; else it is their numbers.

    Build one with `from_arrays`, `from_episodes` or `open`. Nothing but observations and agent labels is in
    it: ground truth stays outside.

    Paper: Section 2.3
    """

    def __init__(
        self,
        steps: Steps,
        agent: NDArray[np.integer],
        lengths: NDArray[np.integer] | None = None,
        names: Sequence[Any] | None = None,
    ) -> None:
        _check_steps(steps)
        self.steps = steps
        self.H, self.n = steps.shape[:2]
        self.obs_shape: tuple[int, ...] = tuple(steps.shape[2:])
        self.dtype = steps.dtype
        self.agent: NDArray[np.int64] = as_labels("agent", agent, 1)
        self.lengths: NDArray[np.int64] = (
            np.full(self.n, self.H) if lengths is None else as_labels("lengths", lengths, 1)
        )
        self._validate()
        self.counts: NDArray[np.int64] = np.bincount(self.agent)
        self.K = len(self.counts)
        self.names: tuple[Any, ...] = tuple(range(self.K)) if names is None else _names(names, self.K)

    # -- building ------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(cls, arrays: Sequence[ArrayLike]) -> TrajectoryDataset:
        """One array of shape (n_k, H, *obs) for each agent; H may differ between agents."""
        given = [as_observations(x, f"agent {k}") for k, x in enumerate(_as_agents(arrays))]
        for k, x in enumerate(given):
            if x.ndim < 2:
                raise InvalidDataError(
                    f"Each agent's array must have shape (trajectories, steps, ...); agent {k}'s has shape "
                    f"{x.shape}; give one array per agent, not one trajectory."
                )
        _same_observation_shape([x.shape[2:] for x in given])
        H = max(x.shape[1] for x in given)
        n = sum(len(x) for x in given)
        steps = _empty_steps((H, n, *given[0].shape[2:]), np.result_type(*given))
        lengths = np.empty(n, dtype=np.int64)
        start = 0
        for x in given:
            steps[: x.shape[1], start : start + len(x)] = np.moveaxis(x, 1, 0)
            lengths[start : start + len(x)] = x.shape[1]
            start += len(x)
        return cls(ArraySteps(steps), np.repeat(np.arange(len(given)), [len(x) for x in given]), lengths)

    @classmethod
    def from_episodes(cls, agents: Sequence[Sequence[ArrayLike]]) -> TrajectoryDataset:
        """A list of episodes for each agent, each of shape (length, *obs); lengths may differ."""
        given = [
            [as_observations(x, f"episode {i} of agent {k}") for i, x in enumerate(episodes)]
            for k, episodes in enumerate(_as_agents(agents))
        ]
        episodes = [x for agent in given for x in agent]
        if not episodes or any(x.ndim < 1 or len(x) == 0 for x in episodes):
            raise InvalidDataError(
                "Each episode must hold at least one observation; an empty one was given; leave it out."
            )
        _same_observation_shape([x.shape[1:] for x in episodes])
        lengths = np.array([len(x) for x in episodes])
        steps = _empty_steps((int(lengths.max()), len(episodes), *episodes[0].shape[1:]), np.result_type(*episodes))
        for i, x in enumerate(episodes):
            steps[: len(x), i] = x
        return cls(ArraySteps(steps), np.repeat(np.arange(len(given)), [len(a) for a in given]), lengths)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> TrajectoryDataset:
        """A dataset that `save` wrote, an HDF5 file or a folder of shards; it stays on disk and is read as needed."""
        from craftrl.data.storage import open_dataset

        return open_dataset(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one HDF5 file if the name ends in .h5 or .hdf5, else to a folder of NPZ shards."""
        from craftrl.data.storage import save_dataset

        save_dataset(self, path)

    # -- reading -------------------------------------------------------------------------------------------

    def at(self, h: int) -> NDArray[Any]:
        """(tau)_h: the observations of all trajectories at step h, shape (n, *obs); 0 where not present."""
        return self.steps.read(self.check_step(h) - 1, 0, self.n)

    def blocks(self, h: int, block_bytes: int = BLOCK_BYTES) -> Iterator[tuple[slice, NDArray[Any]]]:
        """The same in consecutive blocks of trajectories of one agent, for data that does not fit into memory.

        Blocks start at multiples of 64 trajectories within an agent's.
        """
        check_whole("block_bytes", block_bytes, 1)
        row = max(1, int(np.prod(self.obs_shape, dtype=np.int64)) * self.dtype.itemsize)
        size = max(64, block_bytes // row // 64 * 64)
        step = self.check_step(h) - 1
        for mine in map(self.agent_slice, range(self.K)):
            for start in range(mine.start, mine.stop, size):
                stop = min(start + size, mine.stop)
                yield slice(start, stop), self.steps.read(step, start, stop)

    def present(self, h: int) -> NDArray[np.bool_]:
        """Which trajectories have an observation at h, shape (n,)."""
        return self.lengths >= self.check_step(h)

    def running(self, h: int) -> NDArray[np.int64]:
        """How many trajectories of each agent have an observation at h, shape (K,)."""
        return np.bincount(self.agent[self.present(h)], minlength=self.K)

    def largest_below(self, most: int) -> int | None:
        """The largest of all observed values, if they are integers in 0..most-1; else None."""
        check_whole("most", most, 1)
        if self.dtype.kind not in "biu":
            return None
        top = 0
        for h in range(1, self.H + 1):
            for _, x in self.blocks(h):
                if x.size:
                    top = max(top, int(x.max()))
                if top >= most or (x.size and x.min() < 0):
                    return None
        return top

    @property
    def all_present(self) -> bool:
        """Whether every trajectory runs to the end."""
        return bool((self.lengths == self.H).all())

    def agent_slice(self, k: int) -> slice:
        """Where agent k's trajectories lie."""
        check_whole("k", k, 0, self.K - 1, "agents are numbered from 0")
        stop = int(self.counts[: k + 1].sum())
        return slice(stop - int(self.counts[k]), stop)

    def select(self, index: ArrayLike, agent: ArrayLike | None = None) -> TrajectoryDataset:
        """A dataset in memory of the trajectories `index`, regrouped by agent, or by other labels `agent`.

        index  their numbers, from 0 to n-1, in any order and any number of times; or True or False for each of all n
        """
        chosen = self._chosen(index)
        label = self.agent[chosen] if agent is None else as_labels("agent", agent, 1)
        if len(label) != len(chosen):
            raise InvalidDataError(
                f"There must be one agent label per trajectory; {len(chosen)} trajectories and {len(label)} labels "
                "were given."
            )
        order = np.argsort(label, kind="stable")
        chosen = chosen[order]
        steps = np.stack([self.at(h)[chosen] for h in range(1, self.H + 1)])
        return TrajectoryDataset(ArraySteps(steps), label[order], self.lengths[chosen])

    def _chosen(self, index: ArrayLike) -> NDArray[np.int64]:
        """Numbers of trajectories, from numbers or from one True or False for each."""
        given = as_array("index", index, "biu")
        if given.dtype == bool and given.shape == (self.n,):
            return np.flatnonzero(given)
        chosen = as_labels("index", given, 1)
        if given.dtype == bool or not len(chosen) or chosen.min() < 0 or chosen.max() >= self.n:
            raise InvalidParameterError(
                f"index must hold numbers of trajectories in 0..{self.n - 1}, one at least; {shown(index)} was given."
            )
        return chosen

    def check_step(self, h: int) -> int:
        """h itself, if it is one of 1..H."""
        if not (is_whole(h) and 1 <= h <= self.H):
            raise InvalidParameterError(
                f"h must be one of 1..{self.H}; h = {shown(h)} was given; count from 1, as the paper does."
            )
        return int(h)

    def __repr__(self) -> str:
        counts = " + ".join(map(str, self.counts))
        return f"TrajectoryDataset({counts} trajectories, H={self.H}, observations {self.obs_shape} {self.dtype})"

    # -- the border: validated once, here -------------------------------------------------------------------

    def _validate(self) -> None:
        if self.H < 2:
            raise InvalidDataError(
                f"Trajectories must have at least two steps; these have {self.H}; CRAFT compares pairs of steps."
            )
        if len(self.agent) != self.n or len(self.lengths) != self.n:
            raise InvalidDataError(
                f"There must be one agent label and one length per trajectory; {self.n} trajectories, "
                f"{len(self.agent)} labels and {len(self.lengths)} lengths were given."
            )
        if self.n == 0 or (np.diff(self.agent) < 0).any() or self.agent[0] < 0:
            raise InvalidDataError(
                f"Trajectories must be grouped by agent, with labels 0..K-1 in order; {shown(self.agent)} was given; "
                "give them to fit as they are, or to from_arrays, one array per agent."
            )
        if 0 in self.obs_shape:
            raise InvalidDataError(f"Observations must have at least one entry; shape {self.obs_shape} was given.")
        if self.agent[-1] == 0:
            raise InvalidDataError(
                "There must be trajectories of at least two agents; those of one were given; CRAFT learns from "
                "the differences between agents."
            )
        before = np.concatenate([[-1], self.agent[:-1]])
        gaps = np.flatnonzero(self.agent - before > 1)
        if len(gaps):
            raise InvalidDataError(
                f"Every agent must have at least one trajectory; agent {before[gaps[0]] + 1} has none; leave it out."
            )
        if (self.lengths < 1).any() or (self.lengths > self.H).any() or self.lengths.max() < 2:
            raise InvalidDataError(
                f"Lengths must lie in 1..{self.H} and one of them must be 2 or more; "
                f"{self.lengths.min()}..{self.lengths.max()} were given."
            )


def _check_steps(steps: Any) -> None:
    check_method("steps", steps, "read", "observations to read, such as ArraySteps(array); from_arrays makes them")
    shape = getattr(steps, "shape", ())
    if not isinstance(shape, tuple) or len(shape) < 2 or not hasattr(steps, "dtype"):
        raise InvalidDataError(f"steps must have a shape (H, n, ...) and a dtype; shape {shown(shape)} was given.")


def _names(names: Sequence[Any], K: int) -> tuple[Any, ...]:
    try:
        found = tuple(names)
        different = len(set(found)) == len(found) == K
    except TypeError:
        different = False
    if isinstance(names, (str, bytes)) or not different or not all(isinstance(name, NAMES) for name in found):
        raise InvalidDataError(
            f"Each of the {K} agents must have a name of its own, a text or a number; {shown(names)} was given."
        )
    return found


def _empty_steps(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Room for all observations, if this machine has it: all steps of all trajectories, however short they are."""
    n_bytes = float(np.prod(shape, dtype=np.float64)) * dtype.itemsize
    advice = "write them to disk agent by agent, with craftrl import, and open that"
    check_room_in_memory(f"{shape[1]} trajectories of up to {shape[0]} steps", n_bytes, advice)
    return np.zeros(shape, dtype=dtype)


def _as_agents(arrays: Any) -> list[Any]:
    if isinstance(arrays, np.ndarray) and arrays.ndim < 2:
        raise InvalidDataError("Give a list with one entry per agent; a flat array was given.")
    if isinstance(arrays, (str, Mapping)) or not isinstance(arrays, Iterable):
        raise InvalidDataError(f"Give a list with one entry per agent; {type(arrays).__name__} was given.")
    agents = list(arrays)
    if len(agents) < 2:
        raise InvalidDataError(
            f"There must be trajectories of at least two agents; those of {len(agents)} were given; CRAFT learns "
            "from the differences between agents."
        )
    for k, agent in enumerate(agents):
        if not hasattr(agent, "__len__") or getattr(agent, "shape", None) == ():
            raise InvalidDataError(
                f"Each agent must have an array or a list of trajectories; agent {k}'s is {type(agent).__name__}."
            )
        if len(agent) == 0:
            raise InvalidDataError(f"Every agent must have at least one trajectory; agent {k} has none; leave it out.")
    return agents


def as_observations(x: ArrayLike, whose: str) -> NDArray[Any]:
    """x as an array of finite numbers, or one sentence on why it is none."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise InvalidDataError(
            f"Observations must all be there; those of {whose} are masked in places; drop or fill them first."
        )
    array = plain_array(x)
    if array is None or array.dtype.kind not in "biuf":
        dtype = "object" if array is None else array.dtype
        raise InvalidDataError(
            f"Observations must be numbers in an array; those of {whose} have dtype {dtype}; "
            "convert them, or give unequal episodes to from_episodes."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidDataError(
            f"Observations must be finite; those of {whose} contain NaN or infinity; drop or fill them first."
        )
    return array


def _same_observation_shape(shapes: list[tuple[int, ...]]) -> None:
    if len(set(shapes)) > 1:
        first = next(s for s in shapes if s != shapes[0])
        raise InvalidDataError(
            f"All observations must have one shape; shapes {shapes[0]} and {first} were given; "
            "crop, pad or resize them first."
        )
