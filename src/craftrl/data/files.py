"""Files that are whole or not there at all: the one way in which anything is written.

What is written gets its own name only when it is complete and on the disk, in one move. Until then it lies beside it
under a hidden name that no other process uses, so that a kill leaves the last whole file, and two equal commands at
once do not write into one another.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from craftrl.arguments import check_flag, check_target
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]  # several machines may write into one folder


@contextmanager
def written_whole(path: str | os.PathLike[str], what: str = "file") -> Iterator[Path]:
    """A temporary name to write to; what is there at the end of the block becomes `path`, in one move.

    An error in the block leaves neither a part of the new file nor a change in the old one. Errors of the operating
    system become one sentence, with `what` as the name of what is written. Missing folders are created. A link
    stays, and what it points to is replaced.
    """
    final = Path(os.path.realpath(check_target(f"The {what}", path)))
    if final.is_symlink() or (final.exists() and not final.is_file()):  # all links were followed: it leads to itself
        kind = "a link that leads to itself" if final.is_symlink() else "a folder"
        raise InvalidParameterError(f"The {what} must become a file; {path} is {kind}; choose another name.")
    temporary = final.with_name(f".{final.name}.{HOST}-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with plain_os_errors(path, what):
        final.parent.mkdir(parents=True, exist_ok=True)
        for part in final.parent.glob(f".{glob.escape(final.name)}.{HOST}-*.tmp"):
            if not _runs(part.name.split("-")[-2]):
                part.unlink(missing_ok=True)  # of a process that was killed
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(temporary, final)
        finally:
            temporary.unlink(missing_ok=True)


def _runs(process: str) -> bool:
    """Whether a process of this machine is there, whoever's it is."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except (PermissionError, ValueError):
        pass
    return True


@contextmanager
def plain_os_errors(path: str | os.PathLike[str], what: str = "file") -> Iterator[None]:
    """Errors of the operating system while `path` is written, in one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            raise CraftError(
                f"There must be room for the {what}; {path} could not be written ({reason}); free some space or "
                "choose another place. Nothing that was there is lost."
            ) from error
        raise InvalidParameterError(
            f"The {what}'s folder must be writable; {path} could not be written ({reason}); choose another place."
        ) from error


@contextmanager
def readable(path: object, what: str, advice: str = "copy it again") -> Iterator[None]:
    """Whatever goes wrong where a file is missing, cut off, damaged or of another kind, in one sentence: libraries of
    formats raise anything. Errors that are sentences already stay as they are."""
    try:
        yield
    except CraftError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or (str(error).splitlines() or [repr(error)])[0]
        raise InvalidDataError(f"{path} must be {what}; it cannot be read ({reason}); {advice}.") from error


def check_new(path: str | os.PathLike[str], what: str, replace: bool, suffixes: tuple[str, ...] = ()) -> None:
    """Raise, before any work is done, where a file lies already that nobody asked to replace, or where the name ends in
    none of the suffixes.

    A link is never replaced: what it points to may be anything, and was not named.
    """
    if suffixes:
        check_suffix(path, what, suffixes)
    check_flag("overwrite", replace)
    where = check_target(f"The {what}", path)
    if where.is_symlink():
        raise InvalidParameterError(
            f"The {what} must be a file of its own; {where} is a link to {os.readlink(where)}; choose another name."
        )
    if where.exists() and not replace:
        raise InvalidParameterError(
            f"The {what} must be a new file; {os.fspath(path)} is there already; choose another name, or replace it "
            "with --force (overwrite=True)."
        )
    if where.is_dir():
        raise InvalidParameterError(f"The {what} must become a file; {where} is a folder; choose another name.")


def check_suffix(path: str | os.PathLike[str], what: str, suffixes: tuple[str, ...]) -> None:
    """Raise where the name does not say that it is such a file: a dataset is never taken for an old picture."""
    if check_target(f"The {what}", path).suffix.lower() not in suffixes:
        raise InvalidParameterError(
            f"The {what} must be named NAME{' or NAME'.join(suffixes)}; {os.fspath(path)} was given; choose that name."
        )


def check_writable(folder: Path) -> None:
    """Create the folder where missing, and make sure that files can be put there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".writable.{HOST}-{os.getpid()}.tmp"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidParameterError(
            f"The output folder must be writable; {folder} is not ({error.strerror}); choose another folder."
        ) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text, whole or not at all."""
    with written_whole(path) as temporary:
        temporary.write_text(text)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON, whole or not at all; NumPy's numbers and arrays become plain ones."""
    write_text(path, json.dumps(value, indent=1, default=plain_value) + "\n")


def plain_value(value: Any) -> Any:
    """NumPy scalars and arrays as plain numbers and lists: `default` of `json.dumps`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no plain value; give numbers, text or lists.")


def sealed_text(content: dict[str, Any]) -> str:
    """The content as JSON with a SHA-256 of all of it: against damage and slips of the hand, not against malice."""
    plain = json.loads(json.dumps(content, default=plain_value))
    return json.dumps({**plain, "checksum": _checksum(plain)}) + "\n"


def unsealed(data: bytes) -> dict[str, Any]:
    """What `sealed_text` was made of, and its checksum; an error where it is no longer that."""
    content: dict[str, Any] = json.loads(data)
    if content["checksum"] != _checksum(content):
        raise ValueError("its checksum does not fit: it was damaged or edited")
    return content


def _checksum(content: dict[str, Any]) -> str:
    rest = {name: value for name, value in content.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
