"""Which shards a folder holds: its manifest, and whether the shards are what it says."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from craftrl.data.archives import found_arrays, listed_digest
from craftrl.data.places import Place, source
from craftrl.data.remote import Remote
from craftrl.data.seals import CHECKSUM, UNREADABLE, check_memory, check_seal
from craftrl.errors import InvalidDataError

__all__ = ["FORMAT", "MANIFEST", "Manifest", "Shard", "broken_shard", "check_shards", "read_manifest", "told_of_shards"]

FORMAT = "craftrl shards 2"
UNSEALED = "craftrl shards 1"  # the first version, without a checksum
MANIFEST = "manifest.json"
LONGEST_HEADER = 2**12  # bytes that NumPy puts before an array's numbers, at most


class Shard(NamedTuple):
    """One file: some trajectories of one agent.

    contents  the checksums of its arrays in one (`contents_digest`), as they were written; "" where an older version
              wrote it
    """

    file: Place
    agent: int
    n: int
    contents: str = ""


class Manifest(NamedTuple):
    """What the shards of a folder have in common, and which there are."""

    H: int
    obs_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    shards: list[Shard]


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """What the shards have in common, every field checked; in a store, also that all shards are there, in full size."""
    folder = source("The dataset", folder)
    try:
        content = json.loads((folder / MANIFEST).read_text())
        if content["format"] != UNSEALED or CHECKSUM in content:
            check_seal(content)
        if content["format"] not in (FORMAT, UNSEALED):
            raise ValueError(f"its format is {content['format']!r}")
        files = _files(folder, content["shards"])
        shards = [
            Shard(file, _whole(s["agent"]), _whole(s["n"], 1), str(s.get("contents", "")))
            for file, s in zip(files, content["shards"])
        ]
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


def _files(folder: Place, listed: list[Any]) -> list[Place]:
    """The files of the shards that a manifest lists; those of a store know their size."""
    names = [_name(shard["file"]) for shard in listed]
    if not isinstance(folder, Remote):
        return [folder / name for name in names]
    there = folder.files()
    for name, shard in zip(names, listed):
        if name not in there:
            raise ValueError(f"{name}, which it lists, is missing")
        if shard.get("bytes", there[name].size) != there[name].size:
            raise ValueError(f"{name} has {there[name].size} bytes, and {shard['bytes']} were written")
    return [there[name] for name in names]


def _whole(value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} stands where a whole number should")
    return value


def _name(value: Any) -> str:
    """The name of a file in the folder, not a way out of it."""
    if not isinstance(value, str) or Path(value).name != value:
        raise ValueError(f"{value!r} is no name of a shard")
    return value


def check_shards(manifest: Manifest) -> None:
    """Raise unless every shard is the one that was written under its name, with arrays for steps 1..H and no more.

    Two whole shards that exchanged their names are told apart by the checksums in their directories, which are read
    anyway. On a disk the headers of all arrays are read too. In a store that would be a request for each: the
    directories say how many bytes each array has, which must fit, and what is read later is looked at then.
    """
    row = int(np.prod(manifest.obs_shape, dtype=np.int64)) * manifest.dtype.itemsize
    remote = [shard for shard in manifest.shards if isinstance(shard.file, Remote)]
    with told_of_shards([shard.file for shard in remote]):
        arrays = found_arrays([shard.file for shard in remote if isinstance(shard.file, Remote)])
    for shard, found in zip(remote, arrays):
        steps = {name: size for name, size in found.sizes.items() if name.startswith("x_")}
        _check_H(shard.file, len(steps), manifest.H)
        _check_contents(shard, found.digest)
        if not all(0 < size - shard.n * row <= LONGEST_HEADER for size in steps.values()):
            raise broken_shard(shard.file, ValueError("its arrays have other sizes than the manifest says"))
    for shard in manifest.shards:
        if not isinstance(shard.file, Remote):
            _check_shard(shard, shard.file, manifest.H, (shard.n, *manifest.obs_shape), manifest.dtype)


def _check_shard(shard: Shard, file: Path, H: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise unless the shard, on a disk, has arrays of this shape and dtype for steps 1..H, and its own."""
    try:
        with zipfile.ZipFile(file) as archive:
            digest = listed_digest(archive)
            found = {name: _header(archive, name) for name in archive.namelist() if name.startswith("x_")}
    except UNREADABLE as error:
        raise broken_shard(file, error) from error
    _check_H(file, len(found), H)
    for name, (given_shape, given_dtype) in found.items():
        if given_shape != shape or given_dtype != dtype:
            raise InvalidDataError(
                f"All shards must hold {dtype} of the shape in the manifest, {shape}; {name} in {file.name} is "
                f"{given_dtype} of shape {given_shape}; write the dataset again."
            )
    _check_contents(shard, digest)


def _check_contents(shard: Shard, found: str) -> None:
    if shard.contents not in ("", found):
        raise InvalidDataError(
            f"Every shard must be the one that the manifest lists; {shard.file.name} holds other trajectories: it was "
            "replaced or altered, or shards exchanged their names; write or copy the dataset again."
        )


def _check_H(file: Place, found: int, H: int) -> None:
    if found != H:
        raise InvalidDataError(
            f"All shards must have H = {H} steps, as the manifest says; {file.name} has {found}; write the dataset "
            "again."
        )


def _header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with archive.open(name) as member:
        version = npy.read_magic(member)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(member)
    return shape, dtype


@contextmanager
def told_of_shards(files: Sequence[Place], n_bytes: int = 0) -> Iterator[None]:
    """Damage in one of these shards, in one sentence; of each, an array of so many bytes is read."""
    try:
        yield
    except UNREADABLE as error:
        if n_bytes:
            check_memory(error, files[0], n_bytes)
        raise broken_shard(files[0] if len(files) == 1 else files[0].parent, error) from error


def broken_shard(file: Place, error: Exception) -> InvalidDataError:
    return InvalidDataError(
        f"Every shard must be whole; {file.name} is missing, truncated or foreign ({error}); write or copy it again."
    )
