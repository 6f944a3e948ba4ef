"""A folder of shards as a dataset that nobody holds: its sizes are known here, its trajectories are not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import shown
from craftrl.core.limits import check_counts
from craftrl.core.spread import HERE, Recipe, SpreadLabels
from craftrl.data.fingerprint import in_words, streamed_fingerprint
from craftrl.data.places import source
from craftrl.data.shards import Manifest, ShardSteps, read_manifest
from craftrl.distributed.executor import Executor
from craftrl.distributed.oracle import PreparedShards
from craftrl.distributed.parts import (
    Part,
    agents_of,
    check_unchanged,
    largest_in,
    lengths_of,
    look_at,
    packed,
    taken_together,
)
from craftrl.distributed.places import ShardPlaces
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.base import Oracle
from craftrl.oracles.counting import CountingOracle

__all__ = ["ShardedData", "parts_of"]


class ShardedData:
    """What `CRAFT` asks of a dataset, answered for shards: sizes from their headers, all else by their workers.

    It stands where a `TrajectoryDataset`, and the `Grouped` around it, stand in a fit on one machine.
    """

    def __init__(self, path: str | os.PathLike[str], executor: Executor) -> None:
        self.executor = executor
        self.parts = parts_of(path, executor)
        some = self.parts[0][0]
        seen = [found for _, found in self.parts]
        self.H, self.K, self.obs_shape, self.dtype = some.H, some.K, some.obs_shape, some.dtype
        agent = np.array([part.shard.agent for part, _ in self.parts])
        self._running = np.zeros((self.H, self.K), dtype=np.int64)
        for k, found in zip(agent, seen):
            self._running[:, k] += found.running
        self.counts: NDArray[np.int64] = self._running[0]
        self.n = int(self.counts.sum())
        self.names = tuple(range(self.K))
        _validate(self, min(found.shortest for found in seen), max(found.longest for found in seen))
        self.agent: SpreadLabels | None = None
        self._fingerprint = executor.submit(_fingerprint, [part for part, _ in self.parts])

    @property
    def tau(self) -> Any:
        """The dataset itself."""
        return self

    def running(self, h: int) -> NDArray[np.int64]:
        """How many trajectories of each agent have an observation at h, shape (K,)."""
        return self._running[h - 1]

    def first_steps(self, H: int) -> ShardedData:
        """The same trajectories, cut after step H; no shard is read again."""
        if not 2 <= H <= self.H:
            raise InvalidParameterError(
                f"The horizon must lie in 2..{self.H}, the steps that there are; {H} was given."
            )
        if H == self.H:
            return self
        cut = copy(self)
        cut.H = H
        cut.parts = [(part._replace(H=H), found) for part, found in self.parts]
        cut._fingerprint = self.executor.submit(_fingerprint, [part for part, _ in cut.parts])
        return cut

    def largest_below(self, most: int) -> int | None:
        """The largest of all observed values, if they are integers in 0..most-1; else None."""
        if self.dtype.kind not in "biu":
            return None
        found = self.executor.get([self.executor.submit(largest_in, part, most) for part, _ in self.parts])
        return None if min(found) < 0 else max(found)

    def prepared(self, oracle: Oracle) -> PreparedShards:
        """The three training problems of a finite class; every shard is read into bit planes, where it is."""
        if not isinstance(oracle, CountingOracle) or oracle.device != "cpu":
            raise InvalidParameterError(
                "A fit on shards needs a finite class that counts on CPUs, CoordinateOracle(...) or FiniteOracle(...); "
                f"{shown(oracle)} was given; fit other oracles on one machine."
            )
        groups = taken_together([part for part, _ in self.parts], self.executor.workers)
        oracle.check(self._as_large_as(max(sum(part.shard.n for part in group) for group in groups)))
        places = ShardPlaces(self.executor, [self.executor.submit(packed, group, oracle) for group in groups])
        self.agent = SpreadLabels(places, Recipe(agents_of, HERE), self.K)
        return PreparedShards(oracle, self, places)

    def _as_large_as(self, n: int) -> Any:
        """Sizes of what one task holds at a time, at most."""
        return SimpleNamespace(n=n, H=self.H, K=self.K, obs_shape=self.obs_shape, dtype=self.dtype)

    def described(self) -> dict[str, Any]:
        """Sizes, shape, type and fingerprint, as plain values."""
        (found,) = self.executor.get([self._fingerprint])
        return in_words(self.counts, self.H, self.obs_shape, self.dtype, found)

    def as_given(self, labels: Any) -> None:
        """Labels stay with the shards."""
        return

    def __repr__(self) -> str:
        counts = " + ".join(map(str, self.counts))
        return f"ShardedData({counts} trajectories, H={self.H}, observations {self.obs_shape} {self.dtype})"


def parts_of(path: str | os.PathLike[str], executor: Executor) -> list[tuple[Part, Any]]:
    """Every shard of a folder, as it is now, and what was seen of it (`Seen`)."""
    folder = source("The folder of shards", path)
    folder = folder.absolute() if isinstance(folder, Path) else folder  # workers may be at home elsewhere
    if isinstance(folder, Path) and not folder.is_dir():
        what = "a file" if folder.exists() else "not there"
        raise InvalidDataError(
            f"The data must be a folder of shards; {folder} is {what}; write one with write_shards(tau, folder), or "
            "save(folder) of a dataset."
        )
    manifest = read_manifest(folder)
    parts = list(_in_place(manifest))
    seen = executor.get([executor.submit(look_at, part) for part in parts])
    return [(part._replace(identity=found.identity), found) for part, found in zip(parts, seen)]


def _in_place(manifest: Manifest) -> Iterator[Part]:
    K = max(shard.agent for shard in manifest.shards) + 1
    first = [0] * K
    for shard in manifest.shards:
        yield Part(shard, first[shard.agent], K, manifest.H, manifest.obs_shape, manifest.dtype)
        first[shard.agent] += shard.n


def _fingerprint(parts: Sequence[Part]) -> str:
    """That of the whole dataset (`craftrl.data.fingerprint`); holds the lengths of one shard at a time."""
    sizes = [part.shard.n for part in parts]
    starts = [0, *np.cumsum(sizes).tolist()]
    some = parts[0]
    steps = ShardSteps([part.shard.file for part in parts], starts, some.H, some.obs_shape, some.dtype)
    agents = (np.full(part.shard.n, part.shard.agent) for part in parts)
    return streamed_fingerprint(steps, agents, map(_lengths, parts))


def _lengths(part: Part) -> NDArray[np.int64]:
    check_unchanged(part)
    return lengths_of(part)


def _validate(data: ShardedData, shortest: int, longest: int) -> None:
    """What a `TrajectoryDataset` asks of its trajectories."""
    if data.H < 2:
        raise InvalidDataError(
            f"Trajectories must have at least two steps; these have {data.H}; CRAFT compares pairs of steps."
        )
    if (np.diff([part.shard.agent for part, _ in data.parts]) < 0).any():
        raise InvalidDataError("Shards must be grouped by agent, in order; these are not; write the dataset again.")
    if data.K < 2 or (data.counts == 0).any():
        raise InvalidDataError(
            "There must be trajectories of at least two agents, and some of each; these are of "
            f"{int((data.counts > 0).sum())} of {data.K}; CRAFT learns from the differences between agents."
        )
    check_counts(int(data.counts.max()))
    if 0 in data.obs_shape:
        raise InvalidDataError(f"Observations must have at least one entry; shape {data.obs_shape} was given.")
    if shortest < 1 or longest > data.H or longest < 2:
        raise InvalidDataError(
            f"Lengths must lie in 1..{data.H} and one of them must be 2 or more; {shortest}..{longest} were given."
        )
