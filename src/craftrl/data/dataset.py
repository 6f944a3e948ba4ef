"""tau: the trajectories of all agents, grouped by agent.

Frames of a trajectory lie together, in arrays of this process or in files. A dataset says where each trajectory begins
and how long it is, so that any choice, order or cut of trajectories is a dataset too, and copies nothing.

Paper: Section 2.3
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_whole, is_whole, quoted
from craftrl.arrays import Ints
from craftrl.data.labels import as_array, as_labels, plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError

BLOCK_BYTES = 64 * 2**20  # how much `blocks` reads at once
PAGE = 4096  # bytes that a disk reads at least
RUNS, RUN = 16, 8  # of a fingerprint: runs of neighbouring trajectories, evenly spaced, and how many each has
STRETCHES = 5  # of time that are held out of an agent's windows, at most
MIN_REACHING = 50  # of each agent's trajectories: those that must reach a step
ONE_AGENT = (
    "There must be trajectories of at least two agents; those of {} were given; CRAFT learns from the differences "
    "between agents."
)


class Frames:
    """Arrays (m, *obs) of one shape and type, each with some trajectories one after the other, in memory."""

    in_memory = True

    def __init__(self, arrays: Sequence[NDArray[Any]]) -> None:
        self.obs_shape: tuple[int, ...] = arrays[0].shape[1:]
        if other := [x.shape[1:] for x in arrays if x.shape[1:] != self.obs_shape]:
            raise InvalidDataError(
                f"All observations must have one shape; shapes {self.obs_shape} and {other[0]} were given; crop, pad "
                "or resize them first."
            )
        self.dtype: np.dtype[Any] = np.result_type(*{x.dtype for x in arrays})
        self._arrays = [x.astype(self.dtype, copy=False) for x in arrays]

    def part(self, number: int, first: int, length: int) -> NDArray[Any]:
        """Some frames of an array."""
        return self._arrays[number][first : first + length]

    def pick(self, number: Ints, first: Ints) -> NDArray[Any]:
        """Single frames of several arrays."""
        x = np.empty((len(number), *self.obs_shape), dtype=self.dtype)
        if len(self._arrays) > 64:  # episodes, with a frame or two of each
            for i, (own, at) in enumerate(zip(number.tolist(), first.tolist())):
                x[i] = self._arrays[own][at]
            return x
        for own in np.unique(number).tolist():
            here = np.flatnonzero(number == own)
            x[here] = self._arrays[own][first[here]]
        return x

    def identity(self) -> Iterator[bytes | memoryview]:
        """What differs wherever a frame does."""
        return (np.ascontiguousarray(array).data for array in self._arrays)


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
    aligned  whether step h is the same time in all trajectories; False for windows cut from anywhere in a recording

    Paper: Section 2.3
    """

    def __init__(
        self,
        frames: Frames,
        file: Ints,
        first: Ints,
        lengths: Ints,
        agent: Ints,
        H: int,
        names: Sequence[Any] | None = None,
        notes: Mapping[str, Any] | None = None,
        source: Sequence[str] | None = None,
        start: Ints | None = None,
        aligned: bool = True,
    ) -> None:
        """Trajectory i lies in frames[file[i]] and begins there at first[i]; nothing of it is checked."""
        self.frames, self.file, self.first, self.lengths, self.agent = frames, file, first, lengths, agent
        self.n, self.H, self.obs_shape, self.dtype = len(agent), H, frames.obs_shape, frames.dtype
        self.counts: Ints = np.bincount(agent)
        self.K = len(self.counts)
        self.names: tuple[Any, ...] = tuple(range(self.K) if names is None else names)
        self.notes, self.source, self.start, self.aligned = notes or {}, source, start, aligned
        self.frame_bytes = max(1, int(np.prod(self.obs_shape, dtype=np.int64)) * self.dtype.itemsize)

    def checked(self) -> TrajectoryDataset:
        """The dataset itself, if there is something to learn from."""
        if self.n == 0 or self.lengths.max() < 2:
            raise InvalidDataError(
                "Trajectories must have at least two steps; these have one; CRAFT compares pairs of steps."
            )
        if 0 in self.obs_shape:
            raise InvalidDataError(f"Observations must have at least one entry; shape {self.obs_shape} was given.")
        if self.K < 2:
            raise InvalidDataError(ONE_AGENT.format(self.K))
        return self

    # -- building ------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(cls, arrays: Sequence[ArrayLike], lengths: ArrayLike | None = None) -> TrajectoryDataset:
        """One array of shape (n_k, H, *obs) for each agent; H may differ between agents. Arrays are not copied.

        lengths  (n,): how many observations each trajectory of all agents has; left out, as many as there are
        """
        given = [as_block(x, f"agent {k}") for k, x in enumerate(_as_agents(arrays))]
        return cls.of(given, np.arange(len(given)), lengths).checked()

    @classmethod
    def from_episodes(cls, agents: Sequence[Sequence[ArrayLike]]) -> TrajectoryDataset:
        """A list of episodes for each agent, each of shape (length, *obs); lengths may differ. They are not copied."""
        given = [
            [as_observations(x, f"episode {i} of agent {k}") for i, x in enumerate(episodes)]
            for k, episodes in enumerate(_as_agents(agents))
        ]
        agent = np.repeat(np.arange(len(given)), [len(own) for own in given])
        return cls.of([x[None] for own in given for x in own], agent).checked()

    @classmethod
    def of(
        cls, blocks: Sequence[NDArray[Any]], agent: Ints | None = None, lengths: ArrayLike | None = None
    ) -> TrajectoryDataset:
        """Observations of several trajectories each, (m, steps, *obs), and whose each is, in rising order."""
        if not blocks or any(x.ndim < 2 or x.shape[1] == 0 for x in blocks):
            raise InvalidDataError(
                "Each episode must hold at least one observation; an empty one was given; leave it out."
            )
        many, steps = np.array([x.shape[:2] for x in blocks]).T
        block = np.repeat(np.arange(len(blocks)), many)
        ends = steps[block] if lengths is None else as_labels("lengths", lengths, 1)
        if ends.shape != block.shape or (ends < 1).any() or (ends > steps[block]).any():
            raise InvalidDataError(
                f"There must be one length in 1..{steps.max()} for each of the {len(block)} trajectories; "
                f"{quoted(lengths)} was given."
            )
        owner = np.zeros(len(block), dtype=np.int64) if agent is None else agent[block]
        frames = Frames([x.reshape(x.shape[0] * x.shape[1], *x.shape[2:]) for x in blocks])
        before = np.cumsum(many) - many
        first = (np.arange(len(block)) - before[block]) * steps[block]
        return cls(frames, block, first, ends, owner, int(steps.max()))

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

        sources = [""] * self.n if self.source is None else self.source
        starts = np.zeros_like(self.agent) if self.start is None else self.start
        with DatasetWriter(path, notes=self.notes) as writer:
            for i, (k, source, start) in enumerate(zip(self.agent, sources, starts)):
                writer.append(self.names[k], self.episode(i), source=source, start=int(start))

    # -- reading -------------------------------------------------------------------------------------------

    def episode(self, i: int) -> NDArray[Any]:
        """The observations of trajectory i, from 0 to n-1: (length, *obs); not copied."""
        if not (is_whole(i) and 0 <= i < self.n):
            raise InvalidParameterError(f"i must be one of 0..{self.n - 1}; {quoted(i)} was given.")
        return self.frames.part(int(self.file[i]), int(self.first[i]), int(self.lengths[i]))

    def rows(self, index: ArrayLike) -> NDArray[Any]:
        """The trajectories with these numbers, (m, H, *obs); 0 where one is over; uncopied where they lie together."""
        index = self._numbers(index)
        file, first, lengths = self.file[index], self.first[index], self.lengths[index]
        follows = (file[1:] == file[:-1]) & (first[1:] == first[:-1] + self.H) & (lengths[:-1] == self.H)
        starts = np.flatnonzero(np.concatenate([[True], ~follows])[: len(index)]).tolist()  # of runs that lie together
        if len(starts) == 1 and lengths[-1] == self.H:
            x = self.frames.part(int(file[0]), int(first[0]), len(index) * self.H)
            return x.reshape(len(index), self.H, *self.obs_shape)
        x = np.zeros((len(index) * self.H, *self.obs_shape), dtype=self.dtype)
        for start, stop in zip(starts, [*starts[1:], len(index)]):
            length = int((stop - start - 1) * self.H + lengths[stop - 1])
            there = slice(start * self.H, start * self.H + length)
            x[there] = self.frames.part(int(file[start]), int(first[start]), length)
        return x.reshape(len(index), self.H, *self.obs_shape)

    def at(self, h: int, rows: NDArray[np.integer] | Sequence[int] | slice = slice(None)) -> NDArray[Any]:
        """(tau)_h: all trajectories, or those with these numbers, at step h: (m, *obs); 0 where not present."""
        step = self._index(h)
        index = np.arange(self.n)[rows] if isinstance(rows, slice) else self._numbers(rows)
        x = np.zeros((len(index), *self.obs_shape), dtype=self.dtype)
        there = self.lengths[index] > step
        if self.frames.in_memory or self.frame_bytes >= PAGE:
            x[there] = self.pick(index[there], step)
        else:  # whole trajectories are as quickly read
            size = max(1, BLOCK_BYTES // (self.H * self.frame_bytes))
            for start in range(0, len(index), size):
                x[start : start + size] = self.rows(index[start : start + size])[:, step]
        return x

    def pick(self, index: Ints, step: int | Ints) -> NDArray[Any]:
        """Single observations (m, *obs): trajectory index[i] at its step[i], counted from 0."""
        return self.frames.pick(self.file[index], self.first[index] + step)

    def blocks(self, block_bytes: int = BLOCK_BYTES, h: int | None = None) -> Iterator[tuple[slice, NDArray[Any]]]:
        """All trajectories in consecutive blocks (m, H, *obs) of one agent, for data that does not fit into memory.

        Blocks start at multiples of 64 trajectories within an agent's. With h, what they show at that step, (m, *obs).
        """
        check_whole("block_bytes", block_bytes, 1)
        size = max(64, block_bytes // (self.frame_bytes * (self.H if h is None else 1)) // 64 * 64)
        for mine in map(self.agent_slice, range(self.K)):
            for start in range(mine.start, mine.stop, size):
                rows = slice(start, min(start + size, mine.stop))
                yield rows, self.rows(np.arange(rows.start, rows.stop)) if h is None else self.at(h, rows)

    def present(self, h: int) -> NDArray[np.bool_]:
        """Which trajectories have an observation at h, shape (n,)."""
        return self.lengths > self._index(h)

    def running(self, h: int) -> Ints:
        """How many trajectories of each agent have an observation at h, shape (K,)."""
        return np.bincount(self.agent[self.present(h)], minlength=self.K)

    def largest_below(self, most: int) -> int | None:
        """The largest of all observed values, if they are integers in 0..most-1; else None."""
        check_whole("most", most, 1)
        if self.dtype.kind not in "biu":
            return None
        top = 0
        for _, x in self.blocks():
            top = max(top, int(x.max()))
            if top >= most or x.min() < 0:
                return None
        return top

    def agent_slice(self, k: int) -> slice:
        """Where agent k's trajectories lie."""
        check_whole("k", k, 0, self.K - 1, "agents are numbered from 0")
        stop = int(self.counts[: k + 1].sum())
        return slice(stop - int(self.counts[k]), stop)

    def _numbers(self, index: ArrayLike) -> Ints:
        """Numbers of trajectories, if they are."""
        array = as_labels("index", index, 1)
        if len(array) and not 0 <= array.min() <= array.max() < self.n:
            raise InvalidParameterError(f"index must hold numbers in 0..{self.n - 1}; {quoted(index)} was given.")
        return array

    def _index(self, h: int) -> int:
        """A step, one of 1..H, counted from 0."""
        if not (is_whole(h) and 1 <= h <= self.H):
            raise InvalidParameterError(
                f"h must be one of 1..{self.H}; h = {quoted(h)} was given; count from 1, as the paper does."
            )
        return int(h) - 1

    # -- other datasets of the same trajectories -----------------------------------------------------------------

    def select(self, index: ArrayLike, agent: ArrayLike | None = None) -> TrajectoryDataset:
        """The trajectories `index`, regrouped by agent, or by other labels `agent`; nothing is copied.

        index  their numbers, from 0 to n-1, in any order and any number of times; or True or False for each of all n
        """
        given = as_array("index", index, "biu")
        mask = given.dtype == bool
        chosen = self._numbers(np.flatnonzero(given) if mask else given)
        if not len(chosen) or (mask and given.shape != (self.n,)):
            raise InvalidParameterError(
                f"index must hold numbers in 0..{self.n - 1}, one at least; {quoted(index)} was given."
            )
        label = self.agent[chosen] if agent is None else as_labels("agent", agent, 1)
        if len(label) != len(chosen) or len(np.unique(label)) != label.max() + 1 or label.min() < 0:
            raise InvalidDataError(
                f"Each of the {len(chosen)} trajectories must have an agent, 0..K-1, and each of those a trajectory; "
                f"{quoted(label)} was given; leave out agents that have none."
            )
        order = np.argsort(label, kind="stable")
        names = self.names if agent is None and label.max() == self.K - 1 else None
        return self.like(chosen[order], label[order], self.H, names).checked()

    def first_steps(self, H: int) -> TrajectoryDataset:
        """The same trajectories, cut after step H; nothing is copied."""
        if not (is_whole(H) and 2 <= H <= self.H):
            raise InvalidParameterError(
                f"The horizon must lie in 2..{self.H}, the steps that there are; {quoted(H)} was given."
            )
        return self if H == self.H else self.like(np.arange(self.n), self.agent, int(H), self.names)

    def well_reached(self) -> int:
        """The last step that enough trajectories of every agent reach: 50 of them, or half if it has fewer than 100.

        Where episodes end at different times, few reach the last steps, and what is learned there is learned from few.
        It is 2 at least.
        """
        enough = np.minimum(MIN_REACHING, np.ceil(self.counts / 2))
        return max(2, *(h for h in range(1, self.H + 1) if (self.running(h) >= enough).all()))

    def like(
        self, rows: Ints, agent: Ints, H: int | Ints, names: Sequence[Any] | None, begin: int | Ints = 0
    ) -> TrajectoryDataset:
        """These trajectories as those of other agents, in rising order: H frames of each, or all if it has fewer, from
        frame `begin` on, counted from 0. Unless all have one H, they are windows and not `aligned`."""
        first, lengths = self.first[rows] + begin, np.minimum(self.lengths[rows] - begin, H)
        source = None if self.source is None else [self.source[i] for i in rows]
        stride = self.notes.get("reading", {}).get("stride", 1)
        start = None if self.start is None else self.start[rows] + stride * begin
        place = self.file[rows], first, lengths, agent, int(np.max(H))
        aligned = self.aligned and isinstance(H, int)
        return TrajectoryDataset(self.frames, *place, names, self.notes, source, start, aligned)

    def hold_out(self, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Numbers of trajectories to learn from and to hold out, the latter with the same share of every agent's.

        Of windows, which are not `aligned`, up to five stretches of time are held out, spread over an agent's
        recordings; windows that touch them are in neither.
        """
        order = rng.permutation(self.n)
        held = np.zeros(self.n, dtype=bool)
        for k in range(self.K):
            mine = order[self.agent[order] == k]
            many = min(max(1, round(share * len(mine))), len(mine) - 1)
            if not self.aligned and many:
                mine = mine[np.lexsort((self.first[mine], self.file[mine]))]
                parts = np.array_split(mine, min(STRETCHES, many))
                sizes = [len(part) for part in np.array_split(np.arange(many), len(parts))]
                starts = [int(rng.integers(len(part) - size + 1)) for part, size in zip(parts, sizes)]
                mine = np.concatenate([part[at : at + size] for part, at, size in zip(parts, starts, sizes)])
            held[mine[:many]] = True
        learned = ~held if self.aligned else ~held & ~self._touched(held)
        if len(np.unique(self.agent[learned])) < self.K:  # too few windows for a gap
            learned = ~held
        return order[learned[order]], order[held[order]]

    def _touched(self, held: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which trajectories share a frame, or neighbouring ones, with those held out."""
        length = np.zeros(int(self.file.max()) + 1, dtype=np.int64)
        np.maximum.at(length, self.file, self.first + self.lengths)
        before = np.cumsum(length + 1) - length - 1  # files one after the other, a frame apart
        begin = before[self.file] + self.first
        end = begin + self.lengths
        begun = np.searchsorted(np.sort(begin[held]), end, side="right")
        return np.asarray(begun > np.searchsorted(np.sort(end[held]), begin, side="left"))

    # -- what tells two datasets apart ---------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """A few letters that change if the data does, wherever it lies.

        They are made from the agents, the lengths and the type of the observations, and from all observations of 128
        trajectories (or of all, if there are fewer): datasets that differ elsewhere alone have the same ones.
        """
        run = min(RUN, self.n)
        starts = np.unique(np.linspace(0, self.n - run, RUNS).astype(int)).tolist()
        seen = (np.ascontiguousarray(self.episode(i)).data for first in starts for i in range(first, first + run))
        return self._digest([self.agent, self.lengths], seen)

    def digest(self) -> str:
        """The same from every frame: for what may be reused with this very data alone, such as checkpoints."""
        return self._digest([self.agent, self.lengths, self.file, self.first], self.frames.identity())

    def _digest(self, labels: Sequence[Ints], parts: Iterable[bytes | memoryview]) -> str:
        digest = hashlib.sha256(repr((self.H, self.n, self.obs_shape, str(self.dtype))).encode())
        for part in (*(np.ascontiguousarray(label).data for label in labels), *parts):
            digest.update(part)
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        counts = " + ".join(map(str, self.counts))
        return f"TrajectoryDataset({counts} trajectories, H={self.H}, observations {self.obs_shape} {self.dtype})"


def _as_agents(arrays: Any) -> list[Any]:
    """The entries of a list with one for each agent, none of them empty."""
    flat = isinstance(arrays, np.ndarray) and arrays.ndim < 2
    if flat or isinstance(arrays, (str, Mapping)) or not isinstance(arrays, Iterable):
        raise InvalidDataError(f"Give a list with one entry per agent; {quoted(arrays)} was given.")
    agents = list(arrays)
    if len(agents) < 2:
        raise InvalidDataError(ONE_AGENT.format(len(agents)))
    for k, agent in enumerate(agents):
        if not hasattr(agent, "__len__") or getattr(agent, "shape", None) == () or len(agent) == 0:
            raise InvalidDataError(
                f"Every agent must have an array or a list with at least one trajectory; agent {k} has none, but "
                f"{quoted(agent)}; leave it out."
            )
    return agents


def as_observations(x: ArrayLike, whose: str) -> NDArray[Any]:
    """x as an array of finite numbers, or one sentence on why it is none."""
    array = plain_array(x)
    if array is None or array.dtype.kind not in "biuf":
        dtype = "object" if array is None else array.dtype
        raise InvalidDataError(
            f"Observations must be numbers in an array, none of them masked; those of {whose} have dtype {dtype}; "
            "convert or fill them, or give unequal episodes to from_episodes."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidDataError(
            f"Observations must be finite; those of {whose} contain NaN or infinity; drop or fill them first."
        )
    return array


def as_block(x: ArrayLike, whose: str) -> NDArray[Any]:
    """x as the observations of several trajectories, (n, steps, *obs), or one sentence on why it is none."""
    array = as_observations(x, whose)
    if array.ndim < 2 or array.shape[1] == 0:
        raise InvalidDataError(
            f"Trajectories must have shape (trajectories, steps, ...); those of {whose} have shape {array.shape}; give "
            "one array per agent, not one trajectory."
        )
    return array
