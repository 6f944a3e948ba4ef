"""Where datasets and models lie: on a disk, as paths, or at URLs such as s3://bucket/name, through fsspec.

Whole files are put and fetched; trying again is left to the library of the store. What is fetched lies in a cache on
this machine's disk: the folder CRAFTRL_CACHE, or `craftrl` in XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from craftrl.arguments import check_source, check_target, is_url, quoted
from craftrl.data.files import check_writable, written_whole
from craftrl.errors import CraftError, InvalidParameterError, MissingDependencyError, RemoteError, require

Place = Path | str  # a path on a disk, or a URL

# Stores without folders, where an object appears whole; elsewhere files get a temporary name first.
WHOLE_OBJECTS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "memory")


def check_url(name: str, value: Any) -> str:
    """A URL that something can be written to: it ends in a name, which is not that of a bucket."""
    scheme, _, path = os.fspath(value).rstrip("/").partition("://")
    parts = path.split("/")
    bucket = scheme in WHOLE_OBJECTS and scheme != "memory"
    if not path or "\0" in path or ".." in parts or (bucket and len(parts) < 2):
        raise InvalidParameterError(
            f"{name} must be a path, or a URL with a name in a bucket such as s3://bucket/name; {quoted(value)} was "
            "given."
        )
    return f"{scheme}://{path}"


def source(name: str, value: Any) -> Place:
    """A place that something can be read from, checked."""
    return check_url(name, value) if is_url(value) else check_source(name, value)


def target(name: str, value: Any) -> Place:
    """A place that something can be written to, checked."""
    return check_url(name, value) if is_url(value) else check_target(name, value)


def cached(name: str) -> Path:
    """The folder of the cache for what has this name."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "craftrl"
    return Path(os.environ.get("CRAFTRL_CACHE") or home) / hashlib.sha256(name.encode()).hexdigest()[:16]


def exists(where: Place) -> bool:
    """Whether a file is there."""
    if not is_url(where):
        return Path(where).is_file()
    with _asked(str(where), "found") as (fs, path):
        fs.invalidate_cache()
        try:
            return bool(fs.info(path)["type"] == "file")
        except FileNotFoundError:
            return False


def read_bytes(where: Place) -> bytes:
    """All of a file; FileNotFoundError where there is none."""
    if not is_url(where):
        return Path(where).read_bytes()
    with _asked(str(where), "read") as (fs, path):
        return bytes(fs.cat_file(path))


def get(url: str, local: Path) -> None:
    """Copy a file to this machine's disk, whole or not at all."""
    with written_whole(local, "cache") as temporary, _asked(url, "fetched") as (fs, path):
        fs.get_file(path, str(temporary))


def put(local: Path, url: str) -> None:
    """Copy a file of this machine to a URL, whole or not at all; what was there is replaced."""
    with _placed(url) as (fs, path):
        fs.put_file(str(local), path)


def write_bytes(where: Place, data: bytes, what: str) -> None:
    """Put these bytes at a place, whole or not at all; what was there is replaced."""
    if isinstance(where, Path):
        with written_whole(where, what) as temporary:
            temporary.write_bytes(data)
        return
    with _placed(where) as (fs, path):
        fs.pipe_file(path, data)


def check_place_writable(where: Place) -> None:
    """Raise where nothing can be put beside this name."""
    if isinstance(where, Path):
        check_writable(where.parent)
        return
    probe = f"{where.rpartition('/')[0]}/.craftrl-{secrets.token_hex(4)}"
    write_bytes(probe, b"", "probe")
    with _asked(probe, "removed") as (fs, path):
        fs.rm_file(path)


@contextmanager
def _placed(url: str) -> Iterator[tuple[Any, str]]:
    """fsspec's view of the store and a path there to write to, which becomes that of the URL in the end."""
    with _asked(url, "written") as (fs, path):
        if url.partition("://")[0] in WHOLE_OBJECTS:
            yield fs, path
            return
        folder, _, name = path.rpartition("/")
        part = f"{folder}/.{name}.{secrets.token_hex(4)}.tmp"
        fs.makedirs(folder, exist_ok=True)
        yield fs, part
        fs.mv(part, path)


@contextmanager
def _asked(url: str, doing: str) -> Iterator[tuple[Any, str]]:
    """fsspec's view of the store and the path there. What it raises becomes one sentence."""
    scheme = url.partition("://")[0]
    core = require("fsspec.core", "remote")
    try:
        if scheme in ("s3", "s3a"):
            require("s3fs", "remote")
        yield core.url_to_fs(url)
    except CraftError:
        raise
    except FileNotFoundError as error:
        if doing == "read":
            raise
        raise RemoteError(
            f"The bucket, folder or file must exist in the store; {url} could not be {doing}; check the name."
        ) from error
    except ImportError as error:
        raise MissingDependencyError(f"{scheme}:// needs a package that is not installed ({error}).") from error
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise RemoteError(
            f"The store must answer; {url} could not be {doing} ({reason}); check the name, rights and the network."
        ) from error
