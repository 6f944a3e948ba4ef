"""tau: the trajectories of all agents, grouped by agent.

Frames of a trajectory lie together, in arrays of this process or in files. A dataset holds where each trajectory begins
and how long it is, so that any choice, order or cut of trajectories is a dataset too, and copies nothing.

Paper: Section 2.3
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import is_whole, shown
from craftrl.data.labels import as_array, as_labels, plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["Frames", "TrajectoryDataset", "as_observations"]

Ints = NDArray[np.int64]
NAMES = (str, Real, np.bool_)  # what agents may be called
BLOCK_BYTES = 64 * 2**20  # how much `blocks` reads at once
RUNS, RUN = 16, 8  # of a fingerprint: runs of neighbouring trajectories, evenly spaced, and how many each has
FEWEST = 50  # of each agent's trajectories: those that must reach a step


class Frames(Protocol):
    """Arrays (m, *obs) of one type, each of which holds some trajectories, one after the other."""

    obs_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_memory: bool

    def __getitem__(self, number: int) -> NDArray[Any]: ...
    def used(self, n_bytes: int) -> None:
        """So many bytes were copied out of the arrays."""
        ...

    def identity(self) -> Iterator[bytes | memoryview]:
        """What differs wherever a frame does."""
        ...


class HeldFrames:
    """Frames in arrays of this process."""

    in_memory = True

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.arrays = arrays
        self.obs_shape: tuple[int, ...] = arrays[0].shape[1:]
        self.dtype: np.dtype[Any] = arrays[0].dtype

    def __getitem__(self, number: int) -> NDArray[Any]:
        return self.arrays[number]

    def used(self, n_bytes: int) -> None:
        return None

    def identity(self) -> Iterator[bytes | memoryview]:
        return (np.ascontiguousarray(array).data for array in self.arrays)


class TrajectoryDataset:
    """Observations x_1..x_H of trajectories by K >= 2 agents; agents are the integers 0..K-1.

    Trajectories are grouped by agent, in the order given. `h` is the paper's, 1..H: only this module subtracts one. A
    trajectory may be shorter than H; `present(h)` tells which ones still run at h. Build one with `from_arrays`,
    `from_episodes` or `open`. Nothing but observations and agent labels is in it: ground truth stays outside.

    agent    int (n,): the agent of each trajectory, in rising order
    lengths  int (n,): how many observations each has
    counts   int (K,): trajectories of each agent
    names    the agents' own names, where they are known; else their numbers
    notes    where the data comes from, and how it was read
    source   the file or episode that each trajectory comes from, where that is known
    start    int (n,): its first frame there

    Paper: Section 2.3
    """

    def __init__(
        self,
        frames: Frames,
        place: tuple[Ints, Ints],
        lengths: Ints,
        agent: Ints,
        *,
        H: int | None = None,
        names: Sequence[Any] | None = None,
        notes: Mapping[str, Any] | None = None,
        source: Sequence[str] | None = None,
        start: Ints | None = None,
    ) -> None:
        """`place` says of each trajectory which of the arrays holds it, and where it begins there."""
        self.frames = frames
        self.file, self.first = place
        self.lengths, self.agent = lengths, agent
        self.n, self.H = len(agent), int(lengths.max(initial=0)) if H is None else H
        self.obs_shape, self.dtype = tuple(frames.obs_shape), frames.dtype
        self._validate()
        self.counts: Ints = np.bincount(agent)
        self.K = len(self.counts)
        self.names: tuple[Any, ...] = tuple(range(self.K)) if names is None else _names(names, self.K)
        self.notes: Mapping[str, Any] = notes or {}
        self.source, self.start = source, start

    # -- building ------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls, arrays: Sequence[ArrayLike], lengths: ArrayLike | None = None, names: Sequence[Any] | None = None
    ) -> TrajectoryDataset:
        """One array of shape (n_k, H, *obs) for each agent; H may differ between agents. Arrays are not copied.

        lengths  (n,): how many observations each trajectory has, of those of all agents; left out, all there are
        """
        given = [as_observations(x, f"agent {k}") for k, x in enumerate(_as_agents(arrays))]
        for k, x in enumerate(given):
            if x.ndim < 2:
                raise InvalidDataError(
                    f"Each agent's array must have shape (trajectories, steps, ...); agent {k}'s has shape "
                    f"{x.shape}; give one array per agent, not one trajectory."
                )
        sizes = [len(x) for x in given]
        agent = np.repeat(np.arange(len(given)), sizes)
        steps = np.repeat([x.shape[1] for x in given], sizes)
        first = np.concatenate([np.arange(len(x)) * x.shape[1] for x in given])
        ends = steps if lengths is None else as_labels("lengths", lengths, 1)
        if ends.shape != steps.shape or (ends < 1).any() or (ends > steps).any():
            raise InvalidDataError(
                f"There must be one length in 1..{steps.max()} for each of the {len(agent)} trajectories; "
                f"{shown(lengths)} was given."
            )
        held = _held([x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]) for x in given])
        return cls(held, (agent, first), ends, agent, H=int(steps.max()), names=names)

    @classmethod
    def from_episodes(
        cls, agents: Sequence[Sequence[ArrayLike]], names: Sequence[Any] | None = None
    ) -> TrajectoryDataset:
        """A list of episodes for each agent, each of shape (length, *obs); lengths may differ. They are not copied."""
        given = [
            [as_observations(x, f"episode {i} of agent {k}") for i, x in enumerate(episodes)]
            for k, episodes in enumerate(_as_agents(agents))
        ]
        episodes = [x for agent in given for x in agent]
        if any(x.ndim < 1 or len(x) == 0 for x in episodes):
            raise InvalidDataError(
                "Each episode must hold at least one observation; an empty one was given; leave it out."
            )
        n = len(episodes)
        agent = np.repeat(np.arange(len(given)), [len(own) for own in given])
        lengths = np.array([len(x) for x in episodes])
        return cls(_held(episodes), (np.arange(n), np.zeros(n, dtype=np.int64)), lengths, agent, names=names)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> TrajectoryDataset:
        """A dataset on disk or at a URL, as `save`, `DatasetWriter` or `craftrl import` wrote it.

        Its frames stay on disk and are read as needed; from a URL, a file is copied to a cache when it is first read.
        """
        from craftrl.data.store import open_dataset

        return open_dataset(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a new folder, whole or not at all, or to a URL."""
        from craftrl.data.store import DatasetWriter

        with DatasetWriter(path, notes=self.notes) as writer:
            for i in range(self.n):
                source, start = (
                    "" if self.source is None else self.source[i],
                    0 if self.start is None else self.start[i],
                )
                writer.append(self.names[self.agent[i]], self.episode(i), source=source, start=int(start))

    # -- reading -------------------------------------------------------------------------------------------

    def episode(self, i: int) -> NDArray[Any]:
        """The observations of trajectory i, from 0 to n-1: (length, *obs); not copied."""
        if not (is_whole(i) and 0 <= i < self.n):
            raise InvalidParameterError(f"i must be one of 0..{self.n - 1}; {shown(i)} was given.")
        first = int(self.first[i])
        return self.frames[int(self.file[i])][first : first + int(self.lengths[i])]

    def rows(self, index: ArrayLike) -> NDArray[Any]:
        """The trajectories with these numbers, (m, H, *obs); 0 where one is over. Neighbours may come uncopied."""
        index = np.asarray(index)
        file, first, lengths = self.file[index], self.first[index], self.lengths[index]
        if len(index) and (file == file[0]).all() and (lengths == self.H).all():
            frames = self.frames[int(file[0])]
            if (np.diff(first) == self.H).all():
                x = frames[first[0] : first[0] + len(index) * self.H]
                return x.reshape(len(index), self.H, *self.obs_shape)
            whole = len(frames) // self.H
            if (first % self.H == 0).all():
                stack = frames[: whole * self.H].reshape(whole, self.H, *self.obs_shape)
                self.frames.used(len(index) * self.H * self._frame_bytes)
                return stack.take(first // self.H, axis=0)
        x = np.zeros((len(index), self.H, *self.obs_shape), dtype=self.dtype)
        for row, number, begin, length in zip(x, file.tolist(), first.tolist(), lengths.tolist()):
            row[:length] = self.frames[number][begin : begin + length]
        self.frames.used(x.nbytes)
        return x

    def at(self, h: int, rows: NDArray[np.integer] | Sequence[int] | slice = slice(None)) -> NDArray[Any]:
        """(tau)_h: all trajectories, or those with these numbers, at step h: (m, *obs); 0 where not present."""
        step = self.check_step(h) - 1
        file, first, present = self.file[rows], self.first[rows] + step, self.lengths[rows] > step
        numbers = np.unique(file)
        if len(numbers) == 1 and present.all():
            x = self.frames[int(numbers[0])].take(first, axis=0)
        else:
            x = np.zeros((len(file), *self.obs_shape), dtype=self.dtype)
            for number in numbers.tolist():
                here = np.flatnonzero((file == number) & present)
                x[here] = self.frames[number][first[here]]
        self.frames.used(x.nbytes)
        return x

    def blocks(self, block_bytes: int = BLOCK_BYTES, h: int | None = None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """All trajectories in consecutive blocks (m, H, *obs) of one agent, for data that does not fit into memory.

        Blocks start at multiples of 64 trajectories within an agent's. With h, only what they show at that step, (m,
        *obs).
        """
        row = max(1, self._frame_bytes * (self.H if h is None else 1))
        size = max(64, block_bytes // row // 64 * 64)
        for mine in map(self.agent_slice, range(self.K)):
            for start in range(mine.start, mine.stop, size):
                rows = slice(start, min(start + size, mine.stop))
                yield rows, self.rows(np.arange(rows.start, rows.stop)) if h is None else self.at(h, rows)
                self.frames.used(0 if h is not None else (rows.stop - rows.start) * row)

    def present(self, h: int) -> NDArray[np.bool_]:
        """Which trajectories have an observation at h, shape (n,)."""
        return self.lengths >= self.check_step(h)

    def running(self, h: int) -> Ints:
        """How many trajectories of each agent have an observation at h, shape (K,)."""
        return np.bincount(self.agent[self.present(h)], minlength=self.K)

    def largest_below(self, most: int) -> int | None:
        """The largest of all observed values, if they are integers in 0..most-1; else None."""
        if self.dtype.kind not in "biu":
            return None
        top = 0
        for _, x in self.blocks():
            top = max(top, int(x.max()))
            if top >= most or x.min() < 0:
                return None
        return top

    @property
    def all_present(self) -> bool:
        """Whether every trajectory runs to the end."""
        return bool((self.lengths == self.H).all())

    def agent_slice(self, k: int) -> slice:
        """Where agent k's trajectories lie."""
        stop = int(self.counts[: k + 1].sum())
        return slice(stop - int(self.counts[k]), stop)

    def check_step(self, h: int) -> int:
        """h itself, if it is one of 1..H."""
        if not (is_whole(h) and 1 <= h <= self.H):
            raise InvalidParameterError(
                f"h must be one of 1..{self.H}; h = {shown(h)} was given; count from 1, as the paper does."
            )
        return int(h)

    # -- other datasets of the same trajectories -----------------------------------------------------------------

    def select(self, index: ArrayLike, agent: ArrayLike | None = None) -> TrajectoryDataset:
        """The trajectories `index`, regrouped by agent, or by other labels `agent`; nothing is copied.

        index  their numbers, from 0 to n-1, in any order and any number of times; or True or False for each of all n
        """
        given = as_array("index", index, "biu")
        mask = given.dtype == bool
        chosen = np.flatnonzero(given) if mask and given.shape == (self.n,) else as_labels("index", given, 1)
        if (mask and given.shape != (self.n,)) or not len(chosen) or chosen.min() < 0 or chosen.max() >= self.n:
            raise InvalidParameterError(
                f"index must hold numbers of trajectories in 0..{self.n - 1}, one at least; {shown(index)} was given."
            )
        label = self.agent[chosen] if agent is None else as_labels("agent", agent, 1)
        if len(label) != len(chosen):
            raise InvalidDataError(
                f"There must be one agent label per trajectory; {len(chosen)} trajectories and {len(label)} labels "
                "were given."
            )
        order = np.argsort(label, kind="stable")
        same = agent is None and label[order[-1]] == self.K - 1
        return self._like(chosen[order], label[order], self.H, self.names if same else None)

    def first_steps(self, H: int) -> TrajectoryDataset:
        """The same trajectories, cut after step H; nothing is copied."""
        if not (is_whole(H) and 2 <= H <= self.H):
            raise InvalidParameterError(
                f"The horizon must lie in 2..{self.H}, the steps that there are; {shown(H)} was given."
            )
        return self if H == self.H else self._like(np.arange(self.n), self.agent, int(H), self.names)

    def well_reached(self) -> int:
        """The last step that enough trajectories of every agent reach: 50 of them, or half if it has fewer than 100.

        Where episodes end at different times, few reach the last steps, and what is learned there is learned from few.
        It is 2 at least.
        """
        enough = np.minimum(FEWEST, np.ceil(self.counts / 2))
        return max(2, *(h for h in range(1, self.H + 1) if (self.running(h) >= enough).all()))

    def _like(self, rows: Ints, agent: Ints, H: int, names: Sequence[Any] | None) -> TrajectoryDataset:
        return TrajectoryDataset(
            self.frames,
            (self.file[rows], self.first[rows]),
            np.minimum(self.lengths[rows], H),
            agent,
            H=H,
            names=names,
            notes=self.notes,
            source=None if self.source is None else [self.source[i] for i in rows],
            start=None if self.start is None else self.start[rows],
        )

    # -- what tells two datasets apart ---------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """A few letters that change if the data does, wherever it lies.

        They are made from the agents, the lengths and the type of the observations, and from all observations of 128
        trajectories (or of all, if there are fewer): datasets that differ elsewhere alone have the same ones.
        """
        digest = hashlib.sha256(repr((self.H, self.n, self.obs_shape, str(self.dtype))).encode())
        for labels in (self.agent, self.lengths):
            digest.update(np.ascontiguousarray(labels, dtype="<i8").tobytes())
        run = min(RUN, self.n)
        for first in np.unique(np.linspace(0, self.n - run, RUNS).astype(int)).tolist():
            for i in range(first, first + run):
                digest.update(np.ascontiguousarray(self.episode(i)).tobytes())
        return digest.hexdigest()[:16]

    def digest(self) -> str:
        """The same from every frame: for what may be reused with this very data alone, such as checkpoints."""
        digest = hashlib.blake2b(repr((self.H, self.n, self.obs_shape, str(self.dtype))).encode(), digest_size=8)
        for labels in (self.agent, self.lengths, self.file, self.first):
            digest.update(np.ascontiguousarray(labels, dtype="<i8").tobytes())
        for part in self.frames.identity():
            digest.update(part)
        return digest.hexdigest()

    def __repr__(self) -> str:
        counts = " + ".join(map(str, self.counts))
        return f"TrajectoryDataset({counts} trajectories, H={self.H}, observations {self.obs_shape} {self.dtype})"

    @property
    def _frame_bytes(self) -> int:
        return int(np.prod(self.obs_shape, dtype=np.int64)) * self.dtype.itemsize

    def _validate(self) -> None:
        if self.H < 2 or self.lengths.max() < 2:
            raise InvalidDataError(
                f"Trajectories must have at least two steps; these have {self.lengths.max(initial=0)}; CRAFT compares "
                "pairs of steps."
            )
        if 0 in self.obs_shape:
            raise InvalidDataError(f"Observations must have at least one entry; shape {self.obs_shape} was given.")
        if self.agent[0] != 0 or (np.diff(self.agent) > 1).any():
            none = int(np.setdiff1d(np.arange(self.agent[-1]), self.agent)[0])
            raise InvalidDataError(
                f"Every agent must have at least one trajectory; agent {none} has none; leave it out."
            )
        if self.agent[-1] == 0:
            raise InvalidDataError(ONE_AGENT.format(1))


ONE_AGENT = (
    "There must be trajectories of at least two agents; those of {} were given; CRAFT learns from the differences "
    "between agents."
)


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


def _held(arrays: list[NDArray[Any]]) -> HeldFrames:
    """Arrays (m, *obs) of one shape and type; they are copied only where their types differ."""
    shapes = [x.shape[1:] for x in arrays]
    if (other := next((shape for shape in shapes if shape != shapes[0]), None)) is not None:
        raise InvalidDataError(
            f"All observations must have one shape; shapes {shapes[0]} and {other} were given; crop, pad or resize "
            "them first."
        )
    dtype = np.result_type(*{x.dtype for x in arrays})
    return HeldFrames([x.astype(dtype, copy=False) for x in arrays])


def _as_agents(arrays: Any) -> list[Any]:
    if isinstance(arrays, np.ndarray) and arrays.ndim < 2:
        raise InvalidDataError("Give a list with one entry per agent; a flat array was given.")
    if isinstance(arrays, (str, Mapping)) or not isinstance(arrays, Iterable):
        raise InvalidDataError(f"Give a list with one entry per agent; {type(arrays).__name__} was given.")
    agents = list(arrays)
    if len(agents) < 2:
        raise InvalidDataError(ONE_AGENT.format(len(agents)))
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
