"""Arguments, checked where they enter the library: one place for what a number, a flag or a path must be.

Every check raises InvalidParameterError in one sentence: what must hold, what was given, what to do.
"""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from craftrl.errors import InvalidParameterError

__all__ = [
    "check_choice",
    "check_flag",
    "check_function",
    "check_kind",
    "check_method",
    "check_number",
    "check_path",
    "check_room_in_memory",
    "check_source",
    "check_target",
    "check_whole",
    "is_number",
    "is_url",
    "is_whole",
    "natural",
    "positive",
    "shown",
]

MOST = 2**63 - 1  # what NumPy, torch and file formats take as a whole number
LONGEST_NAME = 255  # bytes in one part of a path, on every common file system
DIGITS = 18  # of a whole number on the command line: 64 bits hold these
WIDTH = 80  # letters of a value in a message
# A scheme has two letters at least: C:// is a drive. pathlib makes one slash of two.
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]+://")
COLLAPSED = re.compile(r"(s3a?|gcs|gs|abfss?|az|adl|hdfs|webhdfs|s?ftp|ssh|smb|https?|memory|file|local):/(?!/)")


def is_number(value: object) -> bool:
    """A real number of Python's or NumPy's; neither True nor NaN."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def is_whole(value: object) -> bool:
    """An integer of Python's or NumPy's, and not True."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A value as a message shows it: on one line, and not longer than a line."""
    try:
        text = " ".join(repr(os.fspath(value) if isinstance(value, os.PathLike) else value).split())
    except Exception:  # whole numbers of 5000 digits have no text, and a caller's class may fail at anything
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def check_number(name: str, value: Any, what: str, holds: Callable[[Any], bool], advice: str = "") -> None:
    """A finite number for which `holds`, which `what` says in words."""
    if not (is_number(value) and holds(value) and _is_finite(value)):
        raise _wrong(name, what, value, advice)


def check_whole(name: str, value: Any, least: int = 0, most: int | None = None, advice: str = "") -> None:
    """A whole number from `least` to `most`; without `most`, as large as 64 bits hold."""
    if not (is_whole(value) and least <= value <= (MOST if most is None else most)):
        what = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
        what += ", below 2**63" if most is None and is_whole(value) and value > MOST else ""
        raise _wrong(name, what, value, advice)


def check_flag(name: str, value: Any, advice: str = "") -> None:
    """True or False, NumPy's among them."""
    if not (isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")):
        raise _wrong(name, "True or False", value, advice)


def check_choice(name: str, value: Any, choices: Sequence[str], advice: str = "") -> None:
    """One of these texts."""
    if not (isinstance(value, str) and value in choices):
        raise _wrong(name, f"one of {', '.join(map(repr, choices))}", value, advice)


def check_kind(name: str, value: Any, kind: type | tuple[type, ...], what: str, advice: str = "") -> None:
    """An instance of a class, which `what` names; the class itself is none."""
    if not isinstance(value, kind):
        raise _wrong(name, what, value, advice)


def check_function(name: str, value: Any, what: str) -> None:
    """Something that can be called, which `what` describes; a class is none."""
    if isinstance(value, type) or not callable(value):
        raise _wrong(name, what, value, "")


def check_method(name: str, value: Any, method: str, what: str) -> None:
    """An object with this method, which `what` describes; texts and classes are none, whatever they can do."""
    if isinstance(value, (str, type)) or not callable(getattr(value, method, None)):
        raise _wrong(name, what, value, "")


def natural(text: str) -> int:
    """A whole number of at least 0 on the command line: seeds, and counts of what may be absent."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """A whole number of at least 1 on the command line."""
    return _whole(text, 1)


def _whole(text: str, least: int) -> int:
    digits = text.isascii() and text.isdigit()  # of which int reads 4300 at most
    if not digits or len(text) > DIGITS or int(text) < least:
        limit = f", below 10**{DIGITS}" if digits and len(text) > DIGITS else ""
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}{limit}; {text!r} was given")
    return int(text)


def is_url(value: Any) -> bool:
    """Whether it names something in a store, such as s3://bucket/data, rather than on a disk."""
    return isinstance(value, (str, os.PathLike)) and URL.match(str(value)) is not None


def check_path(name: str, value: Any) -> Path:
    """A path that a file system of this machine can have; URLs are for `craftrl.data.places`."""
    if is_url(value):
        advice = "use a local file, and copy it to or from the store yourself"
        raise _wrong(name, "on a disk of this machine", str(value), advice)
    if isinstance(value, (str, os.PathLike)) and COLLAPSED.match(str(value)):
        advice = "a URL has two slashes; pathlib, which has none, takes one away"
        raise _wrong(name, "a URL as a text, such as 's3://bucket/name', or a path on a disk", value, advice)
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise _wrong(name, "a path: a text that is not empty and holds no NUL, or a pathlib.Path", value, "")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in Path(path).parts):
        advice = f"no name in it may be longer than {LONGEST_NAME} bytes"
        raise _wrong(name, "a path that a disk can hold", value, advice)
    return Path(path)


def check_target(name: str, value: Any) -> Path:
    """A path that something can be written to: it ends in a name, and no device or pipe is there."""
    path = check_path(name, value)
    if path.name in ("", ".."):
        raise _wrong(name, "a path that ends in a name", value, "")
    _check_ordinary(name, path)
    return path


def check_source(name: str, value: Any) -> Path:
    """A path that something can be read from: reading a pipe would wait for ever."""
    path = check_path(name, value)
    _check_ordinary(name, path)
    return path


def _check_ordinary(name: str, path: Path) -> None:
    try:
        ordinary = not path.exists() or path.is_file() or path.is_dir()
    except OSError as error:  # a folder on the way that may not be entered
        raise InvalidParameterError(
            f"{name} must be within reach; {path} is not ({error.strerror}); check the name, and the rights to its "
            "folders."
        ) from error
    if not ordinary:
        raise InvalidParameterError(f"{name} must be a file or a folder; {path} is a device or a pipe; choose another.")


def check_room_in_memory(what: str, n_bytes: float, advice: str) -> None:
    """Raise where something would not fit into this machine's memory, before it is tried."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if n_bytes > there:
        raise InvalidParameterError(
            f"{what} must fit into memory; that needs {n_bytes / 2**30:.3g} GiB, and this machine has "
            f"{there / 2**30:.3g} GiB; {advice}."
        )


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _wrong(name: str, what: str, value: object, advice: str) -> InvalidParameterError:
    return InvalidParameterError(f"{name} must be {what}; {shown(value)} was given{'; ' if advice else ''}{advice}.")
