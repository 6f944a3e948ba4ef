"""Where data, models and results lie: on a disk of this machine, or in a store that has a URL.

A place is a `pathlib.Path` or a `Remote`, and most code takes either. Only text becomes a Remote, and only where it
begins with a scheme of two letters or more and ://; file:// is a disk.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from craftrl.arguments import check_source, check_target, is_url, shown
from craftrl.data.remote import Remote
from craftrl.errors import InvalidParameterError

__all__ = ["Place", "place", "source", "target"]

Place = Path | Remote
DISKS = ("file://", "local://")


def place(value: str | os.PathLike[str]) -> Place:
    """A path or URL as it is given on a command line; whoever uses it checks it."""
    if isinstance(value, Remote):
        return value
    if not isinstance(value, (str, os.PathLike)):
        raise InvalidParameterError(f"A path or URL must be a text or a pathlib.Path; {shown(value)} was given.")
    if not is_url(value):
        return Path(value)
    text = os.fspath(value)
    disk = next((disk for disk in DISKS if text.startswith(disk)), None)
    return Remote(text) if disk is None else Path(text.removeprefix(disk))


def source(name: str, value: Any) -> Place:
    """A place that something can be read from."""
    found = _named(name, value)
    return found if isinstance(found, Remote) else check_source(name, found)


def target(name: str, value: Any) -> Place:
    """A place that something can be written to: it ends in a name, which is not that of a bucket."""
    found = _named(name, value)
    if not isinstance(found, Remote):
        return check_target(name, found)
    if found.scheme != "memory" and len(found.parts) < 2:
        raise InvalidParameterError(
            f"{name} must have a name in a bucket, such as {found.scheme}://bucket/name; {shown(found.url)} was given."
        )
    return found


def _named(name: str, value: Any) -> Any:
    """A Remote, or what stands for a path and is still to be checked."""
    found = place(value) if is_url(value) else value
    if isinstance(found, Remote) and (not found.parts or "\0" in found.url or ".." in found.parts):
        raise InvalidParameterError(
            f"{name} must be a path or a URL such as s3://bucket/name; {shown(found.url)} was given."
        )
    return found
