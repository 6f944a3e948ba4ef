"""A folder of NPZ shards: each holds some trajectories of one agent, one array per time step, and their lengths.

`manifest.json` says what all shards have in common and lists them in order. Reading a step reads that array of
each shard and nothing else. The manifest also bears the checksums of each shard's arrays, so that no shard is taken for
another; in a store, also how many bytes each one has, and their checksum.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.archives import array_offset, contents_digest, load_array, load_arrays
from craftrl.data.manifests import (
    FORMAT,
    MANIFEST,
    Manifest,
    Shard,
    broken_shard,
    check_shards,
    read_manifest,
    told_of_shards,
)
from craftrl.data.places import Place
from craftrl.data.publishing import Publication, publishing
from craftrl.data.ranks import present
from craftrl.data.raw import RawRows, Run
from craftrl.data.remote import Remote
from craftrl.data.seals import sealed
from craftrl.data.storage import DatasetWriter

__all__ = [
    "Manifest",
    "Shard",
    "ShardSteps",
    "ShardWriter",
    "open_shards",
    "read_lengths",
    "read_manifest",
    "shard_identity",
]

AT_ONCE = 16  # shards of a store whose arrays of one step are asked for together
KEPT_BYTES = 2**26  # of the step that was read last, for those who read it in pieces


class ShardSteps:
    """Observations in NPZ shards; `starts` (n_shards + 1) says where each one's trajectories begin.

    It can be sent to another process, wherever the shards lie.
    """

    def __init__(self, files: list[Place], starts: list[int], H: int, obs_shape: tuple[int, ...], dtype: Any) -> None:
        self.files = files
        self.starts = starts
        self.shape = (H, starts[-1], *obs_shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._kept: tuple[int, dict[int, NDArray[Any]]] = (-1, {})

    def read(self, step: int, start: int, stop: int) -> NDArray[Any]:
        out = np.empty((stop - start, *self.shape[2:]), dtype=self.dtype)
        touched = range(bisect_right(self.starts, start) - 1, bisect_left(self.starts, stop))
        for group in self._together(touched):
            for shard, x in zip(group, self._arrays(step, group)):
                first, last = self.starts[shard], self.starts[shard + 1]
                low, high = max(start, first), min(stop, last)
                out[low - start : high - start] = x[low - first : high - first]
        return out

    def _together(self, shards: range) -> Iterator[range]:
        """Shards to read at once: those of a store several at a time, since each takes a request."""
        some = AT_ONCE if shards and isinstance(self.files[shards[0]], Remote) else 1
        return (shards[i : i + some] for i in range(0, len(shards), some))

    def _arrays(self, step: int, group: range) -> list[NDArray[Any]]:
        """The arrays of a step in these shards; a store's are kept while the step is the same, if they are small."""
        of, kept = self._kept
        known = dict(kept) if of == step else {}
        new = [shard for shard in group if shard not in known]
        files = [self.files[shard] for shard in new]
        most = max((self.starts[shard + 1] - self.starts[shard] for shard in new), default=0)
        with told_of_shards(files, most * int(np.prod(self.shape[2:], dtype=np.int64)) * self.dtype.itemsize):
            known |= zip(new, load_arrays(files, step_name(step)))
        for shard in new:
            x, n = known[shard], self.starts[shard + 1] - self.starts[shard]
            if x.shape != (n, *self.shape[2:]) or x.dtype != self.dtype:
                raise broken_shard(self.files[shard], ValueError(f"{step_name(step)} is {x.dtype} of {x.shape}"))
        if files and isinstance(files[0], Remote) and sum(x.nbytes for x in known.values()) <= KEPT_BYTES:
            self._kept = (step, known)
        return [known[shard] for shard in group]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": (-1, {})}

    def raw(self) -> RawRows | None:
        """Where the arrays lie in the shards, if none of them is compressed, as ours are not.

        Whoever reads past the ZIP library sees no checksums, so all of them are checked first, in one pass, which
        several ranks divide.
        """
        for file in self.files[present().rank :: present().world]:
            for step in range(0 if isinstance(file, Remote) else self.shape[0]):  # offsets of a store's are checked
                _load(file, step_name(step))
        tables = [_array_offsets(file, self.shape[0]) for file in self.files]
        if any(table is None for table in tables):
            return None
        offsets = np.array(tables)  # (n_shards, H)
        row_bytes = int(np.prod(self.shape[2:], dtype=np.int64)) * self.dtype.itemsize

        def find(step: int, row: int) -> Run:
            shard = bisect_right(self.starts, row) - 1
            within = row - self.starts[shard]
            return Run(self.files[shard], int(offsets[shard, step]) + within * row_bytes, self.starts[shard + 1] - row)

        return RawRows(find, self.files[0], row_bytes)


def step_name(step: int) -> str:
    """The array of a step within a shard: the paper's h, so that a reader of the files sees it too."""
    return f"x_{step + 1}"


def open_shards(folder: Place) -> tuple[ShardSteps, NDArray[np.int64], NDArray[np.int64]]:
    """Steps, agent labels and lengths of a folder that `ShardWriter` wrote; every shard's header is checked."""
    manifest = read_manifest(folder)
    check_shards(manifest)
    files, sizes = [shard.file for shard in manifest.shards], [shard.n for shard in manifest.shards]
    agent = np.repeat([shard.agent for shard in manifest.shards], sizes)
    with told_of_shards(files):
        found = load_arrays(files, "lengths")
    lengths = np.concatenate([_lengths(shard, own) for shard, own in zip(manifest.shards, found)])
    starts = [0, *accumulate(sizes)]
    return ShardSteps(files, starts, manifest.H, manifest.obs_shape, manifest.dtype), agent, lengths


def read_lengths(shard: Shard) -> NDArray[np.int64]:
    """How many steps each of a shard's trajectories has."""
    return _lengths(shard, _load(shard.file, "lengths"))


def shard_identity(file: Place) -> str:
    """What tells a shard from one with other content, without reading its arrays."""
    with told_of_shards([file]):
        return contents_digest(file)


def _lengths(shard: Shard, found: NDArray[Any]) -> NDArray[np.int64]:
    if found.shape != (shard.n,) or found.dtype.kind not in "iu":
        raise broken_shard(shard.file, ValueError(f"it has lengths of shape {found.shape}, {found.dtype}"))
    return found.astype(np.int64)


def _array_offsets(file: Place, H: int) -> list[int] | None:
    """Where the numbers of each step begin in a shard; None where they are compressed or in Fortran's order."""
    with told_of_shards([file]):
        found = [array_offset(file, step_name(step)) for step in range(H)]
    return None if None in found else found  # type: ignore[return-value]


def _load(file: Place, name: str) -> NDArray[Any]:
    with told_of_shards([file]):
        return load_array(file, name)


class ShardWriter(DatasetWriter):
    """Appends blocks of trajectories as NPZ shards; see `DatasetWriter`."""

    _publication: Publication | None = None

    def _room(self) -> AbstractContextManager[Path]:
        return self._published(self.path) if isinstance(self.path, Remote) else super()._room()

    @contextmanager
    def _published(self, folder: Remote) -> Iterator[Path]:
        with publishing(folder, MANIFEST) as self._publication:
            yield self._publication.local

    def _begin(self) -> None:
        self._shards: list[dict[str, Any]] = []
        self.part.mkdir(exist_ok=self._publication is not None)

    def _append(self, agent: int, x: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        for start in range(0, len(x), self.block):
            block = x[start : start + self.block]
            missing = np.zeros((len(block), *self.obs_shape), dtype=self.dtype)
            arrays: dict[str, Any] = {
                step_name(step): block[:, step].astype(self.dtype) if step < x.shape[1] else missing
                for step in range(self.H)
            }
            name = f"shard_{len(self._shards):05d}.npz"
            np.savez(self.part / name, lengths=lengths[start : start + self.block], **arrays)
            contents = contents_digest(self.part / name)
            stored = {"file": name} if self._publication is None else self._publication.send(name)
            self._shards.append({**stored, "agent": int(agent), "n": len(block), "contents": contents})

    def _end(self) -> None:
        manifest = {
            "format": FORMAT,
            "H": self.H,
            "obs_shape": list(self.obs_shape),
            "dtype": self.dtype.str,
            "shards": self._shards,
        }
        (self.part / MANIFEST).write_text(json.dumps(sealed(manifest), indent=1))
