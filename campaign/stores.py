"""Files in a store: written there, damaged on a disk, and read in the store again.

The store is one that fsspec keeps in memory. What is read from it takes the same way as what is read over a network:
ranges of bytes, sizes from listings, and folders that are what their index says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec

from campaign.format import Format

__all__ = ["in_store"]

URL = "memory://campaign/things"


def in_store(write: Callable[[str], None], read: Callable[[str], str]) -> Format:
    """A format of things in a store; `write` and `read` are given the URL of a folder for them."""

    def make(folder: Path) -> None:
        _empty()
        write(URL)
        store, path = fsspec.core.url_to_fs(URL)
        for name in store.find(path):
            target = folder / name.removeprefix(path).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(store.cat_file(name))

    def read_again(folder: Path) -> str:
        _empty()
        store, path = fsspec.core.url_to_fs(URL)
        for file in folder.rglob("*"):
            if file.is_file():
                store.pipe_file(f"{path}/{file.relative_to(folder)}", file.read_bytes())
        return read(URL)

    return Format(make, read_again)


def _empty() -> None:
    store: Any = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
