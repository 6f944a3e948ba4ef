"""A folder of NPZ shards: each holds some trajectories of one agent, one array per time step, and their lengths.

`manifest.json` says what all shards have in common and lists them in order. Reading a step reads that array of
each shard and nothing else.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from craftrl.data.raw import RawRows, Run
from craftrl.data.storage import DatasetWriter
from craftrl.errors import InvalidDataError

__all__ = ["ShardSteps", "ShardWriter", "open_shards"]

FORMAT = "craftrl shards 1"
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
        """Where the arrays lie in the shards, if none of them is compressed, as ours are not."""
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
    manifest = _manifest(folder)
    H, obs_shape, dtype = manifest["H"], tuple(manifest["obs_shape"]), np.dtype(manifest["dtype"])
    files = [folder / shard["file"] for shard in manifest["shards"]]
    sizes = [shard["n"] for shard in manifest["shards"]]
    for file, n in zip(files, sizes):
        _check_shard(file, H, (n, *obs_shape), dtype)
    agent = np.repeat([shard["agent"] for shard in manifest["shards"]], sizes)
    lengths = np.concatenate([_load(file, "lengths") for file in files])
    return ShardSteps(files, [0, *accumulate(sizes)], H, obs_shape, dtype), agent, lengths


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        if manifest["format"] == FORMAT and manifest["shards"]:
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InvalidDataError(
        f"{folder} must be a folder of shards written by craftrl; it has no whole {MANIFEST}; write or copy it again."
    )


def _check_shard(file: Path, H: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise unless the shard has arrays of this shape and dtype for steps 1..H, and no more."""
    try:
        with zipfile.ZipFile(file) as archive:
            found = {name: _header(archive, name) for name in archive.namelist() if name.startswith("x_")}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
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
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
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
        with np.load(file) as arrays:
            return arrays[name]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
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
        (self.part / MANIFEST).write_text(json.dumps(manifest, indent=1))
