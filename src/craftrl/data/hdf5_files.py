"""Files as the HDF5 library takes them: it crashes, now or at the end of the program, where one of ours raises errors.

So an error is kept, the library is told that all went well, and whoever called it looks for the error afterwards. None
of the library's objects may outlive it either.
"""

from __future__ import annotations

import gc
import io
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from traceback import clear_frames
from typing import Any

from craftrl.data.places import Place
from craftrl.data.remote import Remote
from craftrl.data.remote_file import RemoteFile
from craftrl.errors import require

__all__ = ["GuardedFile", "OpenHdf5"]

KEPT_BYTES = 2**26  # chunks of a file in a store, for those who read a step in pieces


class GuardedFile(io.FileIO):
    """A file that keeps its first error for later: the HDF5 library crashes where a full disk stops it from closing."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        left = memoryview(data).cast("B")
        n_bytes = len(left)
        try:
            while self.error is None and len(left):
                left = left[super().write(left) :]
        except OSError as error:
            self.error = error
        return n_bytes

    def truncate(self, size: int | None = None, /) -> int:
        try:
            if self.error is None:
                return super().truncate(size)
        except OSError as error:
            self.error = error
        return size or 0

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self.error is not None:
            raise self.error


class GuardedRemote(RemoteFile):
    """A file of a store that gives zeros after its first error.

    h5py holds its lock while it reads from us, and we wait for fsspec's thread. If Python collected garbage in that
    thread and found one of h5py's objects, it would wait for the lock, and all of us for ever.
    """

    error: Exception | None = None

    def readinto(self, out: Any, /) -> int:
        try:
            if self.error is None:
                with _no_garbage_collected():
                    return super().readinto(out)
        except Exception as error:
            self.error = error
        left = memoryview(out).cast("B")
        left[:] = bytes(len(left))
        self.seek(len(left), os.SEEK_CUR)
        return len(left)


@contextmanager
def _no_garbage_collected() -> Iterator[None]:
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class OpenHdf5:
    """An HDF5 file to read from, on a disk or in a store; whatever is asked of it is asked within `told()`."""

    def __init__(self, path: Place) -> None:
        self.remote = GuardedRemote(path, path.length()) if isinstance(path, Remote) else None
        h5py = require("h5py", "storage")
        with self.told():
            if self.remote is None:
                self.file = h5py.File(path, "r")
            else:
                self.file = h5py.File(self.remote, "r", rdcc_nbytes=KEPT_BYTES)
        if self.remote is not None:  # the library would ask Python for it after Python's end
            weakref.finalize(self, _close, self.file, os.getpid())

    @property
    def usable(self) -> bool:
        """False once a store has failed: the library may remember zeros."""
        return self.remote is None or self.remote.error is None

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors of a store as it told them, whatever the library made of them."""
        try:
            yield
        except Exception as error:
            if self.remote is None:
                raise
            clear_frames(error.__traceback__)  # whoever keeps the error keeps no objects of the library with it
            if self.remote.error is None:
                raise
        if self.remote is not None and self.remote.error is not None:
            raise self.remote.error

    @cached_property
    def observations(self) -> Any:
        """They stay open: with them goes what the library keeps of their chunks."""
        return self.file["observations"]

    def close(self) -> None:
        self.file.close()


def _close(file: Any, owner: int) -> None:
    if os.getpid() == owner:  # and not in a process that was forked from it
        file.close()
