"""Arrays in NPZ files, one at a time, wherever the files lie.

An NPZ file is a ZIP archive with its directory at the end. On a disk Python's zipfile does everything. In a store every
request takes its time, so the directories of many files are read together and kept, and an array is then one request
for its bytes and no others. Its checksum is compared in either case.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from numpy.lib import format as npy
from numpy.typing import NDArray

from craftrl.data.places import Place
from craftrl.data.ranges import read_ranges
from craftrl.data.remote import Remote
from craftrl.data.remote_file import RemoteFile
from craftrl.data.seals import read_array

__all__ = ["Found", "array_offset", "contents_digest", "found_arrays", "listed_digest", "load_array", "load_arrays"]

TAIL = 2**16  # bytes at the end of a file that hold its directory, for some 900 arrays; longer ones take more requests
KEPT = 2**14  # directories
HEADER = 30  # bytes before the name of a member


class Member(NamedTuple):
    """Where a member lies, from its header to the next one's, and what must come out."""

    start: int
    stop: int
    n_bytes: int
    crc: int
    plain: bool


class Found(NamedTuple):
    """What the directory of a file says: bytes of each array with its header, and what tells it from other files."""

    sizes: dict[str, int]
    digest: str


_directories: dict[tuple[str, int], dict[str, Member]] = {}


def load_array(file: Place, name: str) -> NDArray[Any]:
    """One array; damage raises one of `UNREADABLE`."""
    return load_arrays([file], name)[0]


def load_arrays(files: Sequence[Place], name: str) -> list[NDArray[Any]]:
    """The array of this name in each of the files."""
    remote = [file for file in files if isinstance(file, Remote)]
    if not remote:
        return [_load_local(file, name) for file in files]
    return [_parsed(content, name) for content, _ in _contents(remote, name)]


def found_arrays(files: Sequence[Remote]) -> list[Found]:
    """The arrays in each file of a store; reads all directories anew."""
    for file in files:
        _directories.pop((file.url, file.length()), None)
    return [
        Found({name.removesuffix(".npy"): m.n_bytes for name, m in members.items()}, _members_digest(members))
        for members in _read_directories(files)
    ]


def contents_digest(file: Place) -> str:
    """What tells a file from one with other arrays: their checksums, sizes and places, read anew."""
    if isinstance(file, Remote):
        return found_arrays([file])[0].digest
    with zipfile.ZipFile(file) as archive:
        return listed_digest(archive)


def listed_digest(archive: zipfile.ZipFile) -> str:
    """`contents_digest` of a file that is open."""
    return _digest([(m.filename, m.CRC, m.file_size, m.header_offset) for m in archive.infolist()])


def _members_digest(members: dict[str, Member]) -> str:
    return _digest([(name, m.crc, m.n_bytes, m.start) for name, m in members.items()])


def _digest(listed: list[tuple[str, int, int, int]]) -> str:
    return hashlib.sha256(repr(listed).encode()).hexdigest()


def array_offset(file: Place, name: str) -> int | None:
    """Where the numbers of an array begin in the file; None where they are compressed or in Fortran's order."""
    if isinstance(file, Remote):
        ((content, begin),) = _contents([file], name)
        within = _numbers_at(io.BytesIO(content))
        return None if begin is None or within is None else begin + within
    with zipfile.ZipFile(file) as archive, open(file, "rb") as raw:
        member = archive.getinfo(f"{name}.npy")
        raw.seek(member.header_offset + HEADER - 4)
        raw.seek(sum(struct.unpack("<HH", raw.read(4))), 1)
        return _numbers_at(raw) if member.compress_type == zipfile.ZIP_STORED else None


def _numbers_at(file: BinaryIO) -> int | None:
    """Where an array's numbers begin, with the file at the beginning of NumPy's header."""
    version = npy.read_magic(file)
    _, fortran, _ = npy.read_array_header_1_0(file) if version == (1, 0) else npy.read_array_header_2_0(file)
    return None if fortran else file.tell()


def _load_local(file: Place, name: str) -> NDArray[Any]:
    with zipfile.ZipFile(file) as archive:
        return read_array(archive, name)


# -- in a store --------------------------------------------------------------------------------------------------


def _contents(files: Sequence[Remote], name: str) -> list[tuple[bytes, int | None]]:
    """The bytes of a member of each file, checked, and where they begin in it; None where it is compressed."""
    members = [directory[f"{name}.npy"] for directory in _read_directories(files)]
    raw = read_ranges([(file, m.start, m.stop) for file, m in zip(files, members)])
    return [_content(file, f"{name}.npy", m, data) for file, m, data in zip(files, members, raw)]


def _content(file: Remote, name: str, member: Member, data: bytes) -> tuple[bytes, int | None]:
    if not member.plain:
        with file.open() as opened, zipfile.ZipFile(opened) as archive:
            return archive.read(name), None
    begin = HEADER + sum(struct.unpack("<HH", data[HEADER - 4 : HEADER]))
    content = data[begin : begin + member.n_bytes]
    if len(content) != member.n_bytes or zlib.crc32(content) != member.crc:
        raise zipfile.BadZipFile(f"Bad CRC-32 for {name} of {file.name}")
    return content, member.start + begin


def _parsed(content: bytes, name: str) -> NDArray[Any]:
    file = io.BytesIO(content)
    array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    if file.read(1):
        raise ValueError(f"{name} is followed by something else")
    return array


def _read_directories(files: Sequence[Remote]) -> list[dict[str, Member]]:
    """The directory of each file; those not known yet are read together."""
    keys = [(file.url, file.length()) for file in files]
    new = [(file, key) for file, key in zip(files, keys) if key not in _directories]
    tails = read_ranges([(file, max(0, key[1] - TAIL), key[1]) for file, key in new])
    for (file, key), tail in zip(new, tails):
        while len(_directories) >= KEPT:
            _directories.pop(next(iter(_directories)))
        _directories[key] = _directory(RemoteFile(file, key[1], tail))
    return [_directories[key] for key in keys]


def _directory(file: RemoteFile) -> dict[str, Member]:
    with zipfile.ZipFile(file) as archive:
        infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
        stops = [*(info.header_offset for info in infos[1:]), archive.start_dir]
    return {
        info.filename: Member(
            info.header_offset, stop, info.file_size, info.CRC, info.compress_type == zipfile.ZIP_STORED
        )
        for info, stop in zip(infos, stops)
    }
