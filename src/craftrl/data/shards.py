"""A folder of NPZ shards: each holds some trajectories of one agent, one array per time step, and their lengths.

`manifest.json` says what all shards have in common and lists them in order. Reading a step reads that array of
each shard and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from craftrl.data.raw import RawRows, Run
from craftrl.data.seals import CHECKSUM, UNREADABLE, check_seal, read_array, sealed
from craftrl.data.storage import DatasetWriter
from craftrl.errors import InvalidDataError

__all__ = [
    "Manifest",
    "Shard",
    "ShardSteps",
    "ShardWriter",
    "check_shard",
    "open_shards",
    "read_lengths",
    "read_manifest",
    "shard_identity",
]

FORMAT = "craftrl shards 2"
UNSEALED = "craftrl shards 1"  # the first version, without a checksum
MANIFEST = "manifest.json"


class ShardSteps:
    """Observations in NPZ shards; `starts` (n_shards + 1) says where each one's trajectories begin."""

    def __init__(self, files: list[Path], starts: list[int], H: int, obs_shape: tuple[int, ...], dtype: Any) -> None:
        self.files = files
        self.starts = starts
        self.shape = (H, starts[-1], *obs_shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def read(self, step: int, start: int, stop: int) -> NDArray[Any]:
        out = np.empty((stop - start, *self.shape[2:]), dtype=self.dtype)
        for shard in range(bisect_right(self.starts, start) - 1, len(self.files)):
            first, last = self.starts[shard], self.starts[shard + 1]
            if first >= stop:
                break
            x = _load(self.files[shard], step_name(step))
            low, high = max(start, first), min(stop, last)
            out[low - start : high - start] = x[low - first : high - first]
        return out

    def raw(self) -> RawRows | None:
        """Where the arrays lie in the shards, if none of them is compressed, as ours are not.

        Whoever reads past the ZIP library sees no checksums, so all of them are checked first, in one pass.
        """
        for file in self.files:
            for step in range(self.shape[0]):
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

        return RawRows(find)


def step_name(step: int) -> str:
    """The array of a step within a shard: the paper's h, so that a reader of the files sees it too."""
    return f"x_{step + 1}"


def open_shards(folder: Path) -> tuple[ShardSteps, NDArray[np.int64], NDArray[np.int64]]:
    """Steps, agent labels and lengths of a folder that `ShardWriter` wrote; every shard's header is checked."""
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        check_shard(shard, manifest.H, manifest.obs_shape, manifest.dtype)
    files, sizes = [shard.file for shard in manifest.shards], [shard.n for shard in manifest.shards]
    agent = np.repeat([shard.agent for shard in manifest.shards], sizes)
    lengths = np.concatenate([read_lengths(shard) for shard in manifest.shards])
    starts = [0, *accumulate(sizes)]
    return ShardSteps(files, starts, manifest.H, manifest.obs_shape, manifest.dtype), agent, lengths


class Shard(NamedTuple):
    """One file: some trajectories of one agent."""

    file: Path
    agent: int
    n: int


class Manifest(NamedTuple):
    """What the shards of a folder have in common, and which there are."""

    H: int
    obs_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    shards: list[Shard]


def read_manifest(folder: Path) -> Manifest:
    """What the shards have in common, every field checked."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        if content["format"] != UNSEALED or CHECKSUM in content:
            check_seal(content)
        if content["format"] not in (FORMAT, UNSEALED):
            raise ValueError(f"its format is {content['format']!r}")
        shards = [Shard(folder / _name(s["file"]), _whole(s["agent"]), _whole(s["n"], 1)) for s in content["shards"]]
        shape = tuple(_whole(side) for side in content["obs_shape"])
        found = Manifest(_whole(content["H"], 1), shape, np.dtype(content["dtype"]), shards)
        if not shards or found.dtype.kind not in "biuf":
            raise ValueError("it lists no shards, or no numbers")
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{folder} must be a folder of shards written by craftrl; it has no whole {MANIFEST} ({error}); write or "
            "copy it again."
        ) from error
    return found


def _whole(value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} stands where a whole number should")
    return value


def _name(value: Any) -> str:
    """The name of a file in the folder, not a way out of it."""
    if not isinstance(value, str) or Path(value).name != value:
        raise ValueError(f"{value!r} is no name of a shard")
    return value


def read_lengths(shard: Shard) -> NDArray[np.int64]:
    """How many steps each of a shard's trajectories has."""
    lengths = _load(shard.file, "lengths")
    if lengths.shape != (shard.n,) or lengths.dtype.kind not in "iu":
        raise _broken(shard.file, ValueError(f"it has lengths of shape {lengths.shape}, {lengths.dtype}"))
    return lengths.astype(np.int64)


def shard_identity(file: Path) -> str:
    """What tells a shard from one with other content: the checksums, sizes and places of its arrays."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [(m.filename, m.CRC, m.file_size, m.header_offset) for m in archive.infolist()]
    except UNREADABLE as error:
        raise _broken(file, error) from error
    return hashlib.sha256(repr(members).encode()).hexdigest()


def check_shard(shard: Shard, H: int, obs_shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise unless the shard has arrays of this shape and dtype for steps 1..H, and no more."""
    file, shape = shard.file, (shard.n, *obs_shape)
    try:
        with zipfile.ZipFile(file) as archive:
            found = {name: _header(archive, name) for name in archive.namelist() if name.startswith("x_")}
    except UNREADABLE as error:
        raise _broken(file, error) from error
    if len(found) != H:
        raise InvalidDataError(
            f"All shards must have H = {H} steps, as the manifest says; {file.name} has {len(found)}; write the "
            "dataset again."
        )
    for name, (given_shape, given_dtype) in found.items():
        if given_shape != shape or given_dtype != dtype:
            raise InvalidDataError(
                f"All shards must hold {dtype} of the shape in the manifest, {shape}; {name} in {file.name} is "
                f"{given_dtype} of shape {given_shape}; write the dataset again."
            )


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(name) as member:
        version = npy.read_magic(member)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(member)
    return shape, dtype


def _array_offsets(file: Path, H: int) -> list[int] | None:
    """Where the numbers of each step begin in a shard; None where they are compressed or in Fortran's order."""
    try:
        with zipfile.ZipFile(file) as archive, open(file, "rb") as raw:
            return [_array_offset(archive.getinfo(f"{step_name(step)}.npy"), raw) for step in range(H)]
    except _NotPlain:
        return None
    except UNREADABLE as error:
        raise _broken(file, error) from error


def _array_offset(member: zipfile.ZipInfo, raw: BinaryIO) -> int:
    """A member of a ZIP file follows a header of 30 bytes, its name and an extra field; then comes NumPy's header."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise _NotPlain
    raw.seek(member.header_offset + 26)
    name, extra = struct.unpack("<HH", raw.read(4))
    raw.seek(name + extra, 1)
    version = npy.read_magic(raw)
    _, fortran, _ = npy.read_array_header_1_0(raw) if version == (1, 0) else npy.read_array_header_2_0(raw)
    if fortran:
        raise _NotPlain
    return raw.tell()


class _NotPlain(Exception):
    """A member whose bytes are not simply the numbers."""


def _load(file: Path, name: str) -> NDArray[Any]:
    try:
        with zipfile.ZipFile(file) as archive:
            return read_array(archive, name)
    except UNREADABLE as error:
        raise _broken(file, error) from error


def _broken(file: Path, error: Exception) -> InvalidDataError:
    return InvalidDataError(
        f"Every shard must be whole; {file.name} is missing, truncated or foreign ({error}); write or copy it again."
    )


class ShardWriter(DatasetWriter):
    """Appends blocks of trajectories as NPZ shards; see `DatasetWriter`."""

    def _begin(self) -> None:
        self._shards: list[dict[str, Any]] = []
        self.part.mkdir()

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
            self._shards.append({"file": name, "agent": int(agent), "n": len(block)})

    def _end(self) -> None:
        manifest = {
            "format": FORMAT,
            "H": self.H,
            "obs_shape": list(self.obs_shape),
            "dtype": self.dtype.str,
            "shards": self._shards,
        }
        (self.part / MANIFEST).write_text(json.dumps(sealed(manifest), indent=1))
