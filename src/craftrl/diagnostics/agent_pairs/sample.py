"""Some of a dataset, in the form in which agents are compared before anything is learned.

At most `ROWS` trajectories of each agent, from all over its recordings, at most `PAIRS` pairs of neighbouring steps,
and observations as short vectors: small integers stay what they are, features too, and images are shrunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset

__all__ = ["Group", "Sample", "take_sample"]

ROWS = 800  # trajectories of each agent that are looked at
RUNS = 16  # stretches of neighbouring trajectories that they come in: a store reads those at once
PAIRS = 30  # pairs of neighbouring steps that are looked at
STRETCH = 5  # such pairs in a row, where a horizon is too long for all of them
MOST_VALUES = 16  # integers with more values than this are measurements
MOST_ENTRIES = 4096  # entries times values of an observation whose entries are counted; larger ones are images
MOST_COUNTED = 512  # entries times values that are counted in pairs, those that vary most
LONGEST = 1024  # entries of a feature vector that are looked at
SIDE = 12  # pixels along either side of an image, once it is shrunk


@dataclass(frozen=True)
class Group:
    """Trajectories of one agent: x (n, steps, entries) and which observations are there (n, steps), in the order of the
    recordings."""

    x: NDArray[Any]
    there: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, chosen: Any) -> Group:
        """Some of the trajectories."""
        return Group(self.x[chosen], self.there[chosen])

    @classmethod
    def join(cls, groups: Sequence[Group]) -> Group:
        """The trajectories of several groups, one after the other."""
        return cls(np.concatenate([g.x for g in groups]), np.concatenate([g.there for g in groups]))


@dataclass(frozen=True)
class Sample:
    """Some trajectories of every agent at some steps.

    steps   h of every column, from 1
    pairs   columns c for which steps[c + 1] = steps[c] + 1
    groups  one for each agent: its trajectories of two steps or more
    values  how many values an entry may have, where all are small integers that can be counted; else None
    size    entries of an observation as it was recorded
    """

    steps: tuple[int, ...]
    pairs: tuple[int, ...]
    groups: tuple[Group, ...]
    values: int | None
    size: int


def take_sample(tau: TrajectoryDataset) -> Sample:
    """Read what is compared, and hold no more of it than that."""
    steps, size = _steps(tau.H), int(np.prod(tau.obs_shape, dtype=np.int64))
    may_count = tau.dtype.kind in "biu" and 2 * size <= MOST_ENTRIES
    read = [_read(tau, k, steps, (lambda x: x) if may_count else _shrunk) for k in range(tau.K)]
    there = [tau.lengths[rows][:, None] >= np.asarray(steps) for _, rows in read]
    values = _values([x for x, _ in read], size) if may_count else None
    if values is not None:
        x = _varying([x.reshape(*x.shape[:2], -1) for x, _ in read], values)
    else:
        x = [_shrunk(x, axis=2) if may_count else x for x, _ in read]
    groups = tuple(Group(own, here).rows(here[:, 1]) for own, here in zip(x, there))
    pairs = tuple(c for c, (h, after) in enumerate(pairwise(steps)) if after == h + 1)
    return Sample(steps, pairs, groups, values, size)


def _steps(H: int) -> tuple[int, ...]:
    """All steps of a short horizon; of a long one, stretches spread over it."""
    if H - 1 <= PAIRS:
        return tuple(range(1, H + 1))
    firsts = np.linspace(1, H - STRETCH, PAIRS // STRETCH).round().astype(int)
    return tuple(sorted({int(h) for first in firsts for h in range(first, first + STRETCH + 1)}))


def _read(
    tau: TrajectoryDataset, k: int, steps: Sequence[int], shorten: Callable[[NDArray[Any]], NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(rows, steps, ...) of agent k, shortened as it is read, and which trajectories these are."""
    mine, count = tau.agent_slice(k), int(tau.counts[k])
    if count <= ROWS:
        runs = [(mine.start, mine.stop)]
    else:
        size = ROWS // RUNS
        firsts = mine.start + np.linspace(0, count - size, RUNS).astype(int)
        runs = [(int(first), int(first) + size) for first in firsts]
    x = [np.stack([shorten(tau.steps.read(h - 1, *run)) for h in steps], axis=1) for run in runs]
    return np.concatenate(x), np.concatenate([np.arange(*run) for run in runs])


def _values(read: Sequence[NDArray[Any]], size: int) -> int | None:
    """How many values entries have, if they are few enough to be counted."""
    if min(int(x.min()) for x in read) < 0:
        return None
    values = max(2, 1 + max(int(x.max()) for x in read))
    return values if values <= MOST_VALUES and values * size <= MOST_ENTRIES else None


def _varying(read: list[NDArray[Any]], values: int) -> list[NDArray[Any]]:
    """Of long observations, at every step the entries that vary most, which need not be the same at all steps."""
    most = max(1, MOST_COUNTED // values)
    if read[0].shape[2] <= most:
        return read
    spread = np.concatenate(read).var(axis=0)
    kept = np.sort(np.argsort(-spread, axis=1, kind="stable")[:, :most], axis=1)
    return [np.take_along_axis(x, kept[None], axis=2) for x in read]


def _shrunk(x: NDArray[Any], axis: int = 1) -> NDArray[np.float32]:
    """Observations, which begin at this axis, as vectors; images as means over areas, `SIDE` x `SIDE` of them at most;
    of long vectors entries from all over them."""
    if x.ndim >= axis + 2:
        for side in (axis, axis + 1):
            size = x.shape[side]
            if size > SIDE:
                edges = np.linspace(0, size, SIDE + 1).astype(int)
                width = np.diff(edges).reshape(-1, *[1] * (x.ndim - side - 1))
                x = np.add.reduceat(x, edges[:-1], axis=side, dtype=np.float32) / width
    flat = x.reshape(*x.shape[:axis], -1)
    some = np.linspace(0, flat.shape[-1] - 1, min(flat.shape[-1], LONGEST)).astype(int)
    return np.asarray(flat[..., some], dtype=np.float32)
