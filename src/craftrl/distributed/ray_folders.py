"""The folder of a Ray of our own: it goes with the process that made it, or, if that was killed, with the next one.

What does not fit into memory is in there too, so that a folder that stays can be as large as the data. A process holds
a lock on its folder as long as it lives, however it ends; a folder whose lock is free belongs to nobody.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["own_folder"]

PREFIX, LOCK = "craftrl-ray-", "held"
LONGEST_TEMP = 24  # letters: Ray makes sockets below that folder, whose paths may have 107


@contextmanager
def own_folder() -> Iterator[str]:
    """A new folder within the block; those that killed processes of this user left are removed."""
    temp = tempfile.gettempdir()
    temp = temp if len(temp) <= LONGEST_TEMP else "/tmp"
    for left in Path(temp).glob(f"{PREFIX}*"):
        _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=temp))
    try:
        with open(folder / f"{LOCK}.new", "w") as lock:
            _locked(lock)
            os.rename(lock.name, folder / LOCK)  # nobody sees the lock before it is held
            yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return
        with open(folder / LOCK) as lock:
            if _locked(lock):
                shutil.rmtree(folder, ignore_errors=True)
    except (OSError, AttributeError):  # being made or removed just now, or a system without users
        return


def _locked(file: IO[str]) -> bool:
    """Whether the file could be locked; it is until the file is closed or the process has ended."""
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
