"""Observations read straight from where they lie in files, past any library.

A library that opens a file for us takes a lock, and may read a whole chunk where one trajectory was asked for. Most
stores hold observations uncompressed in runs of consecutive trajectories, though; whoever knows where the runs begin
can read any part of them, and with several threads at once.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.data.remote import Remote
from craftrl.errors import InvalidDataError

__all__ = ["RawRows", "Reader", "Run", "mapped_at", "memory_map"]

REQUEST_BYTES = 2**18


class Run(NamedTuple):
    """Observations of one step that lie together: the file, where they begin in it, and how many there are."""

    file: str | os.PathLike[str]
    offset: int
    rows: int


class RawRows:
    """`find(step, row)` is the run that begins at that trajectory; steps count from 0.

    `together` says how many trajectories should be read at a time: in a store, where each read is a request, so many
    that their bytes take as long as the request itself.
    """

    def __init__(self, find: Callable[[int, int], Run], file: Any = None, row_bytes: int = 1) -> None:
        self.find = find
        self.together = max(1, REQUEST_BYTES // row_bytes) if isinstance(file, Remote) else 1

    def read_into(self, step: int, start: int, out: NDArray[Any]) -> None:
        """Fill out (m, *obs) with trajectories start..start+m-1."""
        done = 0
        while done < len(out):
            run = self.find(step, start + done)
            part = out[done : done + run.rows]
            _fill(run, memoryview(part).cast("B"))  # type: ignore[arg-type]
            done += len(part)


def _fill(run: Run, left: memoryview) -> None:
    try:
        if isinstance(run.file, Remote):
            left[:] = run.file.read_range(run.offset, run.offset + len(left))
            return
        with open(run.file, "rb", buffering=0) as file:
            file.seek(run.offset)
            while len(left):
                n = file.readinto(left)
                if not n:
                    raise InvalidDataError(f"{run.file} must be whole; it ends too early; write or copy it again.")
                left = left[n:]
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidDataError(f"{run.file} cannot be read ({reason}); write or copy it again.") from error


class Reader:
    """Fills arrays from a store of observations (`Steps`), by the quickest way that it offers.

    A store may have `raw()`, its `RawRows` if it is not compressed, and `rows_together`, how many trajectories are
    decoded at once. Only raw rows may be read by several threads.
    """

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        offered = getattr(steps, "raw", None)
        self.raw: RawRows | None = None if offered is None else offered()
        self.rows_together: int = getattr(steps, "rows_together", 1) if self.raw is None else self.raw.together

    def read_into(self, step: int, start: int, out: NDArray[Any]) -> None:
        """Fill out (m, *obs), of any dtype, with trajectories start..start+m-1 at this step, which counts from 0."""
        if self.raw is None:
            out[...] = self.steps.read(step, start, start + len(out))
        elif out.dtype == self.steps.dtype:
            self.raw.read_into(step, start, out)
        else:
            stored = np.empty(out.shape, self.steps.dtype)
            self.raw.read_into(step, start, stored)
            out[...] = stored


def mapped_at(array: NDArray[Any]) -> tuple[str | os.PathLike[str], int] | None:
    """The file of a memory map, or of a contiguous part of one, and where its first entry lies there."""
    whole = memory_map(array)
    if whole is None or whole.filename is None or not array.flags.c_contiguous or whole.mode == "c":
        return None
    begin = whole.offset - whole.offset % mmap.ALLOCATIONGRANULARITY  # `offset` is that of the map, also in its parts
    mapped = np.frombuffer(whole._mmap, np.uint8)  # type: ignore[attr-defined]
    return whole.filename, begin + array.ctypes.data - mapped.ctypes.data


def memory_map(array: Any) -> np.memmap[Any, Any] | None:
    """The memory map that an array is, or is a view of."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return array if isinstance(array, np.memmap) else None
