"""Files and folders in stores that fsspec reaches: S3 and its like, and whatever else has a URL.

A `Remote` offers the part of `pathlib.Path` that this library uses, so that most of the code does not know where things
lie. It holds a URL and nothing else: connections are fsspec's, made when they are needed and in each process anew, so
that a Remote can be sent to any worker. An object is uploaded whole, in one request or in several that the store puts
together at the end; until then nobody sees it.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
from pathlib import Path, PurePosixPath
from typing import Any

from craftrl.arguments import check_whole, is_url, shown
from craftrl.data.attempts import attempted
from craftrl.data.filesystems import filesystem, patience
from craftrl.data.ranges import read_ranges
from craftrl.errors import InvalidParameterError, RemoteError

__all__ = ["Remote"]

# Stores without folders, where an object appears whole: others get folders, and files under a temporary name first.
WHOLE_OBJECTS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "memory")


class Remote(os.PathLike[str]):
    """A file or folder of a store; `size` is how many bytes it must have, where a manifest says so."""

    def __init__(self, url: str, size: int | None = None) -> None:
        if not isinstance(url, str) or not is_url(url):
            raise InvalidParameterError(f"A URL must be a text such as s3://bucket/name; {shown(url)} was given.")
        if size is not None:
            check_whole("size", size)
        scheme, _, path = url.partition("://")
        self.url = f"{scheme}://{path.rstrip('/')}"
        self.size = size

    # -- names, as pathlib has them --------------------------------------------------------------------------

    @property
    def scheme(self) -> str:
        return self.url.partition("://")[0]

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket or host, and the names below it."""
        return tuple(part for part in self.url.partition("://")[2].split("/") if part)

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else ""

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Remote:
        return Remote(self.url.rpartition("/")[0]) if len(self.parts) > 1 else self

    def with_name(self, name: str) -> Remote:
        return Remote(f"{self.url.rpartition('/')[0]}/{name}")

    def resolve(self) -> Remote:
        return self

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url.rstrip('/')}/{name}")

    def __fspath__(self) -> str:
        return self.url

    __str__ = __fspath__

    def __repr__(self) -> str:
        return f"Remote({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    # -- reading ----------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        return self._info() is not None

    def is_file(self) -> bool:
        return (self._info() or {}).get("type") == "file"

    def is_dir(self) -> bool:
        return (self._info() or {}).get("type") == "directory"

    def length(self) -> int:
        """How many bytes it has: as its manifest says, or as the store does."""
        if self.size is not None:
            return self.size
        found = self._info()
        if found is None or found["type"] != "file":
            raise FileNotFoundError(errno.ENOENT, f"{self.url} is no file of the store")
        return int(found["size"])

    def read_bytes(self) -> bytes:
        fs, path = filesystem(self.url)
        return bytes(attempted(self.url, "read", lambda: fs.cat_file(path)))

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def read_range(self, start: int, stop: int) -> bytes:
        """The bytes from start to stop, in one request; EOFError where the object ends before."""
        return read_ranges([(self, start, stop)])[0]

    def open(self, mode: str = "rb") -> io.RawIOBase:
        """A file to read from, at any place; what is written goes through `upload`."""
        from craftrl.data.remote_file import RemoteFile

        if mode != "rb":
            raise ValueError(f"a remote file is opened to be read, and mode {mode!r} was given")
        return RemoteFile(self, self.length())

    def files(self) -> dict[str, Remote]:
        """What lies in this folder, by name, with sizes; empty where there is no such folder."""
        fs, path = filesystem(self.url)

        def listed() -> list[Any]:
            fs.invalidate_cache()
            return list(fs.ls(path, detail=True))

        try:
            found = attempted(self.url, "listed", listed)
        except FileNotFoundError:
            return {}
        paths = [(entry["name"].rstrip("/"), entry.get("size")) for entry in found]
        inside = [(own.rpartition("/")[2], size) for own, size in paths if own != path.rstrip("/")]
        return {name: Remote((self / name).url, size) for name, size in inside}

    def _info(self) -> dict[str, Any] | None:
        fs, path = filesystem(self.url)

        def info() -> dict[str, Any]:
            fs.invalidate_cache()
            return dict(fs.info(path))

        try:
            return attempted(self.url, "found", info)
        except FileNotFoundError:
            return None

    # -- writing ----------------------------------------------------------------------------------------------

    def upload(self, file: Path) -> None:
        """Put a local file here, whole or not at all; what was here is replaced."""
        fs, path = filesystem(self.url)
        self._put(fs, path, lambda to: fs.put_file(str(file), to, **patience(fs, file.stat().st_size)))

    def write_bytes(self, data: bytes) -> None:
        """Put these bytes here, whole or not at all; what was here is replaced."""
        fs, path = filesystem(self.url)
        self._put(fs, path, lambda to: fs.pipe_file(to, data, **patience(fs, len(data))))

    def write_new(self, data: bytes) -> None:
        """Put these bytes here, unless something is here: FileExistsError then.

        S3 and some others decide that themselves, so that of two writers at once one is refused. With the rest, two
        that come within one round trip may both go on, and the last one's bytes stay.
        """
        fs, path = filesystem(self.url)
        limit = patience(fs, len(data))

        def create() -> None:
            if fs.exists(path):
                raise FileExistsError(errno.EEXIST, f"{self.url} is there already")
            try:
                fs.pipe_file(path, data, mode="create", **limit)
            except (NotImplementedError, TypeError):
                fs.pipe_file(path, data, **limit)
            except OSError as error:
                if error.errno != errno.ENOSYS:
                    raise
                fs.pipe_file(path, data, **limit)

        if self.scheme not in WHOLE_OBJECTS:
            if self.exists():
                raise FileExistsError(errno.EEXIST, f"{self.url} is there already")
            self.write_bytes(data)
            return
        try:
            self._put(fs, path, lambda to: create())
        except FileExistsError:
            if self.read_bytes() != data:  # else our own: the store had done it when the connection broke
                raise

    def unlink(self) -> None:
        """Remove this object; that it is gone already is fine."""
        fs, path = filesystem(self.url)

        def remove() -> None:
            fs.invalidate_cache()
            fs.rm_file(path)

        try:
            attempted(self.url, "removed", remove)
        except FileNotFoundError:
            return

    def _put(self, fs: Any, path: str, put: Any) -> None:
        def act() -> None:
            if self.scheme in WHOLE_OBJECTS:
                put(path)
                return
            folder, _, name = path.rpartition("/")
            fs.makedirs(folder, exist_ok=True)
            part = f"{folder}/.{name}.{secrets.token_hex(4)}.tmp"
            put(part)
            fs.mv(part, path)

        try:
            attempted(self.url, "written", act)
        except FileNotFoundError as error:
            raise RemoteError(
                f"The bucket or folder must exist in the store; nothing can be written to {self.parent} ({error}); "
                "create it, or check the name."
            ) from error
