"""Files that are whole or not there at all: the one way in which anything is written.

What is written gets its own name only when it is complete, in one move. Until then it lies beside it under a hidden
name that no other process uses, so that a kill leaves the last whole file, and two equal commands at once do not write
into one another. What goes to a store with a URL is written to a local temporary file and uploaded from there, whole.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from craftrl.arguments import check_flag
from craftrl.data.places import Place, target
from craftrl.data.remote import Remote
from craftrl.errors import CraftError, InvalidParameterError, RemoteError

__all__ = [
    "check_new",
    "check_suffix",
    "check_writable",
    "json_text",
    "local_part",
    "plain_value",
    "replacing",
    "temporary_name",
    "told_plainly",
    "write_json",
    "write_text",
    "written_whole",
]

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextmanager
def written_whole(path: str | os.PathLike[str], what: str = "file") -> Iterator[Path]:
    """A temporary local name to write to; what is there at the end of the block becomes `path`, in one move.

    An error in the block leaves neither a part of the new file nor a change in the old one. Errors of the operating
    system are told in one sentence, with `what` as the name of what is written. Missing folders are created.
    """
    with told_plainly(path, what), replacing(path, what) as temporary:
        yield temporary


@contextmanager
def replacing(path: str | os.PathLike[str], what: str = "file") -> Iterator[Path]:
    """`written_whole` for blocks that do more than write: errors pass as they are.

    The block may write a file, or a folder where nothing lies at `path` yet. A link stays, and what it points to is
    replaced.
    """
    where = target(f"The {what}", path)
    final = where if isinstance(where, Remote) else _ready(Path(os.path.realpath(where)), path, what)
    temporary = local_part(final)
    try:
        yield temporary
        if isinstance(final, Remote):
            final.upload(temporary)
        else:
            os.replace(temporary, final)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def _ready(final: Path, given: str | os.PathLike[str], what: str) -> Path:
    """The path itself, once its folder is there and nothing but a file lies in its place."""
    if final.is_symlink():  # after all links were followed
        raise InvalidParameterError(
            f"What is written must become a file; {given} is a link that leads to itself; choose another name."
        )
    if final.exists() and not final.is_file():
        raise InvalidParameterError(f"The {what} must become a file; {given} is {_kind(final)}; choose another name.")
    final.parent.mkdir(parents=True, exist_ok=True)
    return final


def local_part(final: Place) -> Path:
    """A temporary name for what will lie at `final`: beside it, or where this machine keeps temporary files."""
    return temporary_name(Path(tempfile.gettempdir()) / final.name if isinstance(final, Remote) else final)


@contextmanager
def told_plainly(path: str | os.PathLike[str], what: str = "file") -> Iterator[None]:
    """Errors of the operating system while `path` is written, in one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            raise CraftError(
                f"There must be room for the {what}; {path} could not be written ({reason}); free some space or "
                "choose another place. Nothing was left behind."
            ) from error
        raise InvalidParameterError(
            f"The {what}'s folder must be writable; {path} could not be written ({reason}); choose another place."
        ) from error


def temporary_name(path: Path) -> Path:
    """A hidden name beside `path` that nobody else uses.

    What processes of this machine that are gone have left under such names is removed first: a kill leaves a part of
    a file, which nobody would ever look for.
    """
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if _abandoned(part):
            with suppress(OSError):  # it may be somebody else's, where temporary files of all users lie
                shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _abandoned(part: Path) -> bool:
    host, _, rest = part.name.removesuffix(".tmp").rpartition(".")[2].partition("-")
    owner = rest.partition("-")[0]
    if host != _host() or not owner.isdigit() or int(owner) == os.getpid():
        return False
    try:
        os.kill(int(owner), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:  # it is there, and somebody else's
        pass
    return False


def _host() -> str:
    """The machine, in letters that a file name may hold: several may write into one folder."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def check_new(path: str | os.PathLike[str], what: str, replace: bool) -> None:
    """Raise, before any work is done, where a file lies already that nobody asked to replace.

    A link is never replaced: what it points to may be anything, and was not named.
    """
    check_flag("overwrite", replace)
    where = target(f"The {what}", path)
    if isinstance(where, Path) and where.is_symlink():
        raise InvalidParameterError(
            f"The {what} must be a file of its own; {where} is a link to {os.readlink(where)}; choose another name."
        )
    if where.exists() and not replace:
        raise InvalidParameterError(
            f"The {what} must be a new file; {os.fspath(path)} is there already; choose another name, or replace it "
            "with --force (overwrite=True)."
        )
    if isinstance(where, Path) and where.is_dir():
        raise InvalidParameterError(f"The {what} must become a file; {where} is a folder; choose another name.")


def check_suffix(path: str | os.PathLike[str], what: str, suffixes: tuple[str, ...]) -> None:
    """Raise where the name does not say that it is such a file: a dataset is never taken for an old picture."""
    if target(f"The {what}", path).suffix.lower() not in suffixes:
        raise InvalidParameterError(
            f"The {what} must be named NAME{' or NAME'.join(suffixes)}; {os.fspath(path)} was given; choose that name."
        )


def check_writable(folder: Place) -> None:
    """Create the folder where missing, and make sure that files can be put there."""
    if isinstance(folder, Remote):
        probe = folder / f".craftrl-{secrets.token_hex(4)}"
        probe.write_bytes(b"")
        with suppress(RemoteError):  # some may write, and not remove
            probe.unlink()
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        local = temporary_name(folder / "writable")
        local.touch()
        local.unlink()
    except OSError as error:
        raise InvalidParameterError(
            f"The output folder must be writable; {folder} is not ({error.strerror}); choose another folder."
        ) from error


def write_text(path: Place, text: str) -> None:
    """Write a text, whole or not at all."""
    with written_whole(path) as temporary:
        temporary.write_text(text)


def write_json(path: Place, value: Any) -> None:
    """Write JSON, whole or not at all; NumPy's numbers and arrays become plain ones."""
    write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """What `write_json` writes."""
    return json.dumps(value, indent=1, default=plain_value) + "\n"


def plain_value(value: Any) -> Any:
    """NumPy scalars and arrays as plain numbers and lists: `default` of `json.dumps`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no plain value; give numbers, text or lists.")


def _kind(path: Path) -> str:
    return "a folder" if path.is_dir() else "a device or a pipe"
