"""Reading files that may be damaged: checksums of what we write, and one way to read NumPy's archives.

A checksum here is against damage and slips of the hand, not against an adversary: whoever can write a file can seal it
again. What may be loaded from strangers is another matter, and holds without checksums: nothing read here is ever run.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.places import Place
from craftrl.data.remote import Remote

__all__ = ["CHECKSUM", "UNREADABLE", "check_memory", "check_seal", "file_digest", "read_array", "read_arrays", "sealed"]

# What readers of JSON, ZIP, NumPy and HDF5 files raise where one is missing, truncated or damaged.
UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    EOFError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
CHECKSUM = "checksum"
MOST_PACKED = 1032  # bytes that compression (DEFLATE) makes one of, at most


def sealed(content: dict[str, Any]) -> dict[str, Any]:
    """The content with a checksum of all of it; it must be plain values, as JSON gives them back."""
    return {**content, CHECKSUM: _digest(content)}


def check_seal(content: dict[str, Any]) -> None:
    """Raise ValueError unless the content is as it was sealed."""
    rest = {name: value for name, value in content.items() if name != CHECKSUM}
    if content.get(CHECKSUM) != _digest(rest):
        raise ValueError("its checksum does not fit: it was damaged or edited")


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def check_memory(error: Exception, path: Place, n_bytes: int) -> None:
    """Raise MemoryError where so many bytes could not be read from a file because memory ran out.

    A damaged file may ask for too much as well, but then for more than any file of its size holds.
    """
    ran_out = isinstance(error, MemoryError) or "memory allocation failed" in str(error)  # as HDF5 calls it
    if ran_out and n_bytes <= MOST_PACKED * _size(path):
        raise MemoryError(f"{n_bytes / 2**20:.1f} MiB of {path.name} are read at a time") from error


def _size(path: Place) -> int:
    try:
        return path.length() if isinstance(path, Remote) else path.stat().st_size
    except OSError:
        return 0


def file_digest(path: Place) -> str:
    """The checksum of a whole file."""
    if isinstance(path, Remote):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Place) -> dict[str, NDArray[Any]]:
    """All arrays of an NPZ file; damage raises one of `UNREADABLE`."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes()) if isinstance(path, Remote) else path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        return {name: read_array(archive, name) for name in names}


def read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """One array. It is read to its end first: only there is the checksum of a ZIP file compared."""
    content = io.BytesIO(archive.read(f"{name}.npy"))
    array: NDArray[Any] = np.lib.format.read_array(content, allow_pickle=False)
    if content.read(1):
        raise ValueError(f"{name} is followed by something else")
    return array
