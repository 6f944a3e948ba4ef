"""Folders in a store, whole or not there: parts first, and last the index that names them.

A store cannot rename a folder. So a folder is what its index says, a manifest, which appears in one request. Every part
bears a piece of its checksum in its name: other content has another name, so that two writers never write into one
another's parts, and the same content written again replaces itself. Parts that no index names are of a writer that was
killed. Nobody reads them, and the next writer removes them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from craftrl.data.files import local_part
from craftrl.data.places import Place
from craftrl.data.remote import Remote
from craftrl.data.seals import file_digest
from craftrl.errors import InvalidParameterError, RemoteError

__all__ = ["Publication", "publishing", "taken"]

# Parts, and what a store that renames files still had under a temporary name.
PART = re.compile(r".+\.[0-9a-f]{12}\.(npz|npy)|\..+\.[0-9a-f]{8}\.tmp")


def taken(where: Place) -> bool:
    """Whether something lies there. In a store, parts that no index names do not count: nobody finished them."""
    if not isinstance(where, Remote):
        return os.path.lexists(where)  # a link that leads nowhere is somebody's, too
    return where.is_file() or any(PART.fullmatch(name) is None for name in where.files())


class Publication:
    """A folder on its way into a store; `local` is where its files are made."""

    def __init__(self, folder: Remote, local: Path) -> None:
        self.folder = folder
        self.local = local
        self.sent: set[str] = set()

    def send(self, name: str) -> dict[str, Any]:
        """Upload one file of `local` and remove it there; returns what the index should say of it."""
        file = self.local / name
        digest, n_bytes = file_digest(file), file.stat().st_size
        stored = f"{file.stem}.{digest[:12]}{file.suffix}"
        self.sent.add(stored)
        (self.folder / stored).upload(file)
        file.unlink()
        return {"file": stored, "bytes": n_bytes, "sha256": digest}

    def publish(self, index: str) -> None:
        """Write the index, and remove what nobody needs any more."""
        last, data = self.folder / index, (self.local / index).read_bytes()
        try:
            last.write_new(data)
        except FileExistsError as error:
            raise InvalidParameterError(
                f"Only one may write to a name; {self.folder} was finished by somebody else meanwhile, and is as they "
                "left it; choose another name."
            ) from error
        there, now = self.folder.files(), _text(last)
        for name in there:
            if PART.fullmatch(name) is not None and name != index and not _names(name, now):
                there[name].unlink()

    def discard(self, index: str) -> None:
        """Remove what was uploaded, unless an index names it."""
        with suppress(RemoteError):
            now = _text(self.folder / index)
            for name in self.sent:
                if not _names(name, now):
                    (self.folder / name).unlink()


@contextmanager
def publishing(folder: Remote, index: str) -> Iterator[Publication]:
    """A local folder to write files to; parts are sent within the block, and the file `index` at its end.

    An error in the block leaves nothing behind. An index that somebody else wrote meanwhile is an error.
    """
    local = local_part(folder)
    local.mkdir(parents=True)
    work = Publication(folder, local)
    try:
        yield work
        work.publish(index)
    except BaseException:
        work.discard(index)
        raise
    finally:
        shutil.rmtree(local, ignore_errors=True)


def _text(file: Remote) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _names(name: str, index: str) -> bool:
    """Whether an index, which is JSON, names this file."""
    return f'"{name}"' in index
