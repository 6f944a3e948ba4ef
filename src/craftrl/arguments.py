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

MAX_INTEGER = 2**63 - 1  # what NumPy, torch and file formats take as a whole number
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


def is_url(value: object) -> bool:
    """Whether it names something in a store, such as s3://bucket/data, rather than on a disk."""
    return isinstance(value, (str, os.PathLike)) and URL.match(str(value)) is not None


def quoted(value: object) -> str:
    """A value as a message quotes it: on one line, and not longer than a line; of a long path its end."""
    try:
        text = " ".join(repr(os.fspath(value) if isinstance(value, os.PathLike) else value).split())
    except Exception:  # whole numbers of 5000 digits have no text, and a caller's class may fail at anything
        text = f"a value of type {type(value).__name__}"
    if len(text) > WIDTH:
        return f"...{text[3 - WIDTH :]}" if isinstance(value, os.PathLike) else f"{text[: WIDTH - 3]}..."
    return text


def _check(holds: bool, name: str, what: str, value: object, advice: str = "") -> None:
    if not holds:
        said = f"{name} must be {what}; {quoted(value)} was given"
        raise InvalidParameterError(f"{said}; {advice}." if advice else f"{said}.")


def check_number(name: str, value: Any, what: str, holds: Callable[[Any], bool], advice: str = "") -> None:
    """A finite number for which `holds`, which `what` says in words."""
    try:
        finite = is_number(value) and math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        finite = False
    _check(finite and holds(value), name, what, value, advice)


def check_whole(name: str, value: Any, least: int = 0, most: int | None = None, advice: str = "") -> None:
    """A whole number from `least` to `most`; without `most`, as large as 64 bits hold."""
    what = f"an integer from {least} to {most}" if most is not None else f"an integer of at least {least}"
    what += ", below 2**63" if most is None and is_whole(value) and value > MAX_INTEGER else ""
    _check(is_whole(value) and least <= value <= (MAX_INTEGER if most is None else most), name, what, value, advice)


def check_flag(name: str, value: Any, advice: str = "") -> None:
    """True or False, NumPy's among them."""
    _check(type(value).__name__ in ("bool", "bool_"), name, "True or False", value, advice)


def check_choice(name: str, value: Any, choices: Sequence[str], advice: str = "") -> None:
    """One of these texts."""
    what = f"one of {', '.join(map(repr, choices))}"
    _check(isinstance(value, str) and value in choices, name, what, value, advice)


def check_kind(name: str, value: Any, kind: type | tuple[type, ...], what: str, advice: str = "") -> None:
    """An instance of a class, which `what` names; the class itself is none."""
    _check(isinstance(value, kind), name, what, value, advice)


def check_function(name: str, value: Any, what: str) -> None:
    """Something that can be called, which `what` describes; a class is none."""
    _check(callable(value) and not isinstance(value, type), name, what, value)


def check_method(name: str, value: Any, method: str, what: str) -> None:
    """An object with this method, which `what` describes; texts and classes are none, whatever they can do."""
    _check(callable(getattr(value, method, None)) and not isinstance(value, (str, type)), name, what, value)


def natural(text: str, least: int = 0) -> int:
    """A whole number of at least 0 on a command line."""
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < least:
        what = f"a whole number of at least {least}, below 10**18"
        raise argparse.ArgumentTypeError(f"must be {what}; {text!r} was given")
    return int(text)


def positive(text: str) -> int:
    """A whole number of at least 1 on the command line of a study."""
    return natural(text, 1)


def check_path(name: str, value: Any) -> Path:
    """A path that a file system of this machine can have."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    local = "on a disk of this machine"
    _check(not is_url(text), name, local, text, "use a local file, and copy it to or from the store yourself")
    lost = isinstance(text, str) and COLLAPSED.match(text)
    _check(not lost, name, local, text, "a URL is a text and has two slashes; pathlib, which has none, takes one away")
    what = "a path: a text that is not empty and holds no NUL, or a pathlib.Path"
    _check(isinstance(text, str) and text != "" and "\0" not in text, name, what, value)
    return Path(str(text))


def check_source(name: str, value: Any) -> Path:
    """A path that something can be read from: reading a pipe would wait for ever."""
    path = check_path(name, value)
    try:
        ordinary = not path.exists() or path.is_file() or path.is_dir()
    except OSError as error:  # a folder on the way that may not be entered, or a name that is too long
        raise InvalidParameterError(
            f"{name} must be within reach; {path} is not ({error.strerror}); check the name, and the rights to its "
            "folders."
        ) from error
    _check(ordinary, name, "a file or a folder", path, "devices and pipes are none")
    return path


def check_target(name: str, value: Any) -> Path:
    """A path that something can be written to: it ends in a name, and no device or pipe is there."""
    path = check_source(name, value)
    _check(path.name not in ("", ".."), name, "a path that ends in a name", value)
    return path


def check_room_in_memory(what: str, n_bytes: float, advice: str) -> None:
    """Raise where something would not fit into this machine's memory, before it is tried."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if n_bytes > there:
        raise InvalidParameterError(
            f"{what} must fit into memory; that needs {n_bytes / 2**30:.3g} GiB, and this machine has "
            f"{there / 2**30:.3g} GiB; {advice}."
        )
