"""What a kind of file is to the campaign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Format"]


@dataclass(frozen=True)
class Format:
    """make(folder) writes the files; read(folder) returns what a user would see, as text.

    sealed  whether the file has checksums, so that damage must be noticed; in tables, pictures and videos of others a
            changed number is a number
    """

    make: Callable[[Path], None]
    read: Callable[[Path], str]
    sealed: bool = True
