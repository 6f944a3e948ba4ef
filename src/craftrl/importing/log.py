"""What an import has read so far, safe against a kill at any moment: two files that only ever grow.

`data` has the arrays of one episode after the other, as plain bytes. `episodes.jsonl` says which episode lies where; a
line is written once its bytes are on disk. Whatever a kill leaves behind them, half a line or bytes without one, is cut
off when the import goes on. (An HDF5 file cannot be used so: killed between two writes, it may not open again.)
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import CraftError, InvalidParameterError

__all__ = ["ImportLog", "Place", "Record"]

LINES, DATA = "episodes.jsonl", "data"
HEADER = {"format": "craftrl import 1"}
COMMIT_SECONDS = 1.0  # a kill loses at most this much reading, and the episode that is being read


@dataclass(frozen=True)
class Place:
    """Where an array lies in `data`."""

    offset: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def end(self) -> int:
        return self.offset + np.dtype(self.dtype).itemsize * int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Record:
    """One episode that was read; `digest` is the same for equal observations."""

    key: str
    stamp: str
    observations: Place
    actions: Place | None
    lossy: str
    digest: str


class ImportLog:
    """The log of one import, in a folder of its own; use it in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: dict[tuple[str, str], Record] = {}
        self._pending: list[Record] = []
        self._committed = monotonic()

    def __enter__(self) -> ImportLog:
        with ExitStack() as opened:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._lines = opened.enter_context((self.folder / LINES).open("ab+", buffering=0))
                self._data = opened.enter_context((self.folder / DATA).open("ab+", buffering=0))
            except OSError as error:
                raise self._cannot_write(error) from error
            _lock(self._lines, self.folder)
            self._recover()
            opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.commit()
        except CraftError:
            if kind is None:
                raise
        finally:
            self._data.close()
            self._lines.close()
            if kind is not None and not self.records:
                self.remove()  # nothing to go on from

    def add(self, key: tuple[str, str], x: NDArray[Any], actions: NDArray[Any] | None, lossy: str) -> Record:
        """Write an episode down; it is safe after the next `commit`."""
        aside = None if actions is None else self._write(actions)
        digest = hashlib.blake2b(np.ascontiguousarray(x).tobytes(), digest_size=12).hexdigest()
        record = Record(*key, self._write(x), aside, lossy, digest)
        self.records[key] = record
        self._pending.append(record)
        if monotonic() - self._committed >= COMMIT_SECONDS:
            self.commit()
        return record

    def commit(self) -> None:
        """Make all episodes safe that were added."""
        try:
            os.fsync(self._data.fileno())
            text = "".join(json.dumps(asdict(record)) + "\n" for record in self._pending)
            _write_all(self._lines, text.encode())
            os.fsync(self._lines.fileno())
        except OSError as error:
            raise self._cannot_write(error) from error
        self._pending.clear()
        self._committed = monotonic()

    def array(self, place: Place) -> NDArray[Any]:
        """An array that was written down."""
        self._data.seek(place.offset)
        array = np.fromfile(self._data, dtype=place.dtype, count=int(np.prod(place.shape, dtype=np.int64)))
        return array.reshape(place.shape)

    def remove(self) -> None:
        """Forget everything: the store is whole, or nothing was read. Files of others stay, and their folder."""
        with suppress(OSError):
            for name in (LINES, DATA):
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()

    def _write(self, array: NDArray[Any]) -> Place:
        try:
            offset = self._data.seek(0, os.SEEK_END)
            _write_all(self._data, np.ascontiguousarray(array).tobytes())
        except OSError as error:
            raise self._cannot_write(error) from error
        return Place(offset, array.dtype.str, array.shape)

    def _recover(self) -> None:
        """Read what is there, and cut off what a kill left unfinished."""
        self._lines.seek(0)
        lines = self._lines.read().split(b"\n")[:-1]
        if not lines:
            self._start()
            return
        if _parsed(lines[0]) != HEADER:
            raise InvalidParameterError(
                f"{self.folder} must be what an unfinished import left; it is something else, or of another version; "
                "remove it, or choose another name."
            )
        size, end, good = self._data.seek(0, os.SEEK_END), 0, len(lines[0]) + 1
        for line in lines[1:]:
            record = _record(_parsed(line))
            if record is None or record.observations.end > size:
                break
            self.records[record.key, record.stamp] = record
            end, good = record.observations.end, good + len(line) + 1
        self._lines.truncate(good)
        self._data.truncate(end)

    def _start(self) -> None:
        self._lines.truncate(0)
        self._data.truncate(0)
        try:
            _write_all(self._lines, (json.dumps(HEADER) + "\n").encode())
        except OSError as error:
            raise self._cannot_write(error) from error

    def _cannot_write(self, error: OSError) -> CraftError:
        return CraftError(
            f"There must be room for what is imported; {self.folder} could not be written ({error.strerror or error}); "
            "free some space and give the same command again: what was read so far is kept."
        )


def _write_all(file: Any, data: bytes) -> None:
    left = memoryview(data)
    while len(left):
        left = left[file.write(left) :]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _record(value: Any) -> Record | None:
    try:
        x, actions = value["observations"], value["actions"]
        return Record(
            value["key"],
            value["stamp"],
            _place(x),
            _place(actions) if actions else None,
            value["lossy"],
            value["digest"],
        )
    except (KeyError, TypeError):
        return None


def _place(value: Any) -> Place:
    return Place(value["offset"], value["dtype"], tuple(value["shape"]))


def _lock(file: Any, folder: Path) -> None:
    """Two imports into one store would mix their bytes; the second one is refused."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InvalidParameterError(
            f"Only one import may write to a store; another one is at work in {folder}; wait for it."
        ) from error
