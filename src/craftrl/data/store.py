"""Trajectories on disk: a folder of NPY files, some episodes of one agent in each, and an index that is written last.

Frames of an episode lie together, so that any episode is one read. `dataset.json` has the agents, the lengths and the
CRC-32 of every file, and a SHA-256 of itself: what is missing, altered or unfinished is refused. A file is compared
with its checksum when it is first read. Actions and true states lie beside the frames, in files of their own that no
learner opens. While a dataset is written, `unfinished.json` says which files are complete.

Files are read and not memory-mapped: where memory is scarce, the system would read megabytes around every page that is
touched, and throw them away again; and a mapped file that is cut short ends the process.
"""

from __future__ import annotations

import fcntl
import io
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, check_source, check_target, check_whole, is_url, shown
from craftrl.data import urls
from craftrl.data.dataset import ONE_AGENT, Frames, TrajectoryDataset, as_observations
from craftrl.data.files import UNREADABLE, sealed_text, told_plainly, unsealed, written_whole
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["DatasetWriter", "StoredFrames", "is_dataset", "open_dataset", "read_actions", "read_true_states"]

FORMAT, INDEX, UNFINISHED = "craftrl dataset 1", "dataset.json", "unfinished.json"
KINDS = {"x": "{:05d}.npy", "actions": "{:05d}.actions.npy", "states": "{:05d}.states.npy"}
FILE_BYTES = 64 * 2**20  # of frames in one file
HELD_BYTES = 4 * FILE_BYTES  # of frames of all agents that are held before some are written

# -- writing ----------------------------------------------------------------------------------------------------------


class DatasetWriter:
    """Writes a dataset episode by episode, to a new folder or to a URL; use it in a `with` statement.

    The dataset is there when the statement ends. Where it ends by an error, or the process is killed, what was written
    stays for a writer with the same `run`, which goes on. Without a `run`, the next one starts over.

    path   a new folder, or a URL such as s3://bucket/name; for a URL, files lie in a cache until all are complete
    run    what is being written, as a text that differs wherever the outcome would, such as the arguments of an import
    notes  plain values on where the data comes from, kept as `TrajectoryDataset.notes`

    done      (agent, source, start) of the episodes that are on disk already; `append` leaves them out
    finished  whether this very run has come to its end before: then there is nothing to do
    """

    def __init__(self, path: str | os.PathLike[str], *, run: str = "", notes: Mapping[str, Any] | None = None) -> None:
        check_kind("run", run, str, "a text")
        check_kind("notes", {} if notes is None else notes, Mapping, "a mapping of plain values, or None")
        self.url = urls.check_url("The dataset", path) if is_url(path) else None
        self.path = check_target("The dataset", path) if self.url is None else urls.cached(self.url)
        self.given, self.run = self.url or str(self.path), run
        self.finished, unfinished = is_dataset(self.given), self.path / UNFINISHED
        found: dict[str, Any] = {}
        if self.finished:
            found = _read_index(self.given)
        elif unfinished.is_file():
            found = _unsealed(self.given, unfinished.read_bytes())
        foreign = not found and self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir()))
        same = run != "" and found.get("run") == run
        if not same and (self.finished or foreign):
            raise InvalidParameterError(f"{self.given} exists already; remove it, or choose another name.")
        empty: dict[str, Any] = {"format": FORMAT, "run": run, "dtype": "", "obs_shape": [], "agents": [], "files": []}
        self._index = found if same else empty
        self.notes: dict[str, Any] = found["notes"] if same else dict(notes or {})
        self.done = {
            (file["agent"], source, start)
            for file in self._index["files"]
            for source, start in zip(_each(file, "source"), _each(file, "start"))
        }
        self._seen = set(self.done)
        self._held: dict[Any, list[dict[str, Any]]] = {}  # episodes of each agent, and their bytes
        self._bytes: dict[Any, int] = {}
        self._growing: dict[tuple[Any, str, int], _Growing] = {}  # episodes that come in parts

    def __enter__(self) -> DatasetWriter:
        if self.finished:
            return self
        with told_plainly(self.given, "dataset"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with this process, however that ends
                if (self.path / INDEX).exists():  # since we looked
                    raise BlockingIOError
            except BlockingIOError:
                os.close(self._lock)
                raise InvalidParameterError(
                    f"One process at a time may write a dataset; another one is writing {self.given}; wait for it, or "
                    "choose another name."
                ) from None
            kept = {name for file in self._index["files"] for name in file["files"]}
            for left in (*self.path.glob("[0-9]*.npy"), *self.path.glob(".*.tmp")):
                if left.name not in kept:
                    left.unlink()
            self._write_index()
        return self

    def append(
        self,
        agent: Any,
        x: ArrayLike,
        *,
        source: str = "",
        start: int = 0,
        actions: ArrayLike | None = None,
        states: ArrayLike | None = None,
        goes_on: bool = False,
    ) -> None:
        """Add one episode (length, *obs) of an agent; agents are numbered in the order in which they first come.

        agent            its name, a text or a number
        source, start    the file or episode that it comes from, and its first frame there
        actions, states  of the episode, (length or length - 1, ...) and (length,); they are kept beside the frames
        goes_on          whether this is a part of an episode that is longer than memory is large, and the next part
                         follows; all of them with the same agent, source and start
        """
        agent = agent.item() if isinstance(agent, np.generic) else agent
        if not isinstance(agent, (str, int, float)):
            raise InvalidDataError(f"An agent must have a name, a text or a number; {shown(agent)} was given.")
        check_kind("source", source, str, "a text")
        check_whole("start", start)
        key = (agent, source, int(start))
        if agent not in self._index["agents"]:
            self._index["agents"].append(agent)
        if key in self.done:
            return
        growing = self._growing.get(key)
        if self.run and key in self._seen and growing is None:
            raise InvalidDataError(
                f"Episodes of one agent must differ in source or start, so that an interrupted run goes on; {key} was "
                "given twice; name them."
            )
        frames = as_observations(x, f"agent {agent}")
        if frames.ndim < 1 or frames.size == 0:
            raise InvalidDataError(
                f"An episode must have shape (length, ...) and hold at least one observation; shape {frames.shape} of "
                f"agent {agent} was given."
            )
        if not self._index["dtype"]:
            self._index |= {"dtype": frames.dtype.str, "obs_shape": list(frames.shape[1:])}
        dtype, shape = np.dtype(self._index["dtype"]), tuple(self._index["obs_shape"])
        if frames.shape[1:] != shape or not np.can_cast(frames.dtype, dtype, "safe"):
            raise InvalidDataError(
                f"All observations must have one shape and type; {shape} {dtype} and, of agent {agent}, "
                f"{frames.shape[1:]} {frames.dtype} were given; crop, resize or convert them first."
            )
        episode: dict[str, Any] = {"source": source, "start": int(start), "x": frames.astype(dtype)}
        for kind, given, least in (("actions", actions, len(frames) - 1), ("states", states, len(frames))):
            array = None if given is None else plain_array(given)
            if given is not None and (array is None or not array.ndim or not least <= len(array) <= len(frames)):
                raise InvalidDataError(
                    f"The {kind} of an episode must be {least} to {len(frames)} numbers; {shown(given)} was given."
                )
            episode[kind] = None if array is None else array.copy()
        self._seen.add(key)
        if growing is not None or goes_on:
            if growing is None:
                if agent in self._held:  # what came before lies before
                    self._write(agent)
                growing = self._growing[key] = _Growing(self.path / f".part{len(self._seen)}.tmp")
            with told_plainly(self.given, "dataset"):
                growing.add(episode)
            if not goes_on:
                self._close(key)
            return
        self._held.setdefault(agent, []).append(episode)
        self._bytes[agent] = self._bytes.get(agent, 0) + episode["x"].nbytes
        if self._bytes[agent] >= FILE_BYTES or sum(self._bytes.values()) >= HELD_BYTES:
            self._write(max(self._bytes, key=self._bytes.__getitem__))

    def _write(self, agent: Any) -> None:
        """What is held of one agent becomes a file, and the index says so."""
        held = self._held.pop(agent)
        del self._bytes[agent]
        file: dict[str, Any] = {"agent": agent, "n": len(held), "files": {}}
        for name in ("source", "start"):
            file[name] = _shortened([episode[name] for episode in held])
        for kind, pattern in KINDS.items():
            arrays = [episode[kind] for episode in held if episode[kind] is not None]
            if not arrays:
                continue
            if any(array.shape[1:] != arrays[0].shape[1:] or array.dtype.kind not in "biuf" for array in arrays):
                raise InvalidDataError(f"The {kind} of agent {agent} must be numbers of one shape; others were given.")
            file[kind] = _shortened([0 if episode[kind] is None else len(episode[kind]) for episode in held])
            name = pattern.format(len(self._index["files"]))
            file["files"][name] = _save(self.path / name, np.concatenate(arrays))
        self._index["files"].append(file)
        self._write_index()

    def _close(self, key: tuple[Any, str, int]) -> None:
        """An episode that came in parts is complete: it becomes a file of its own."""
        growing = self._growing.pop(key)
        number = len(self._index["files"])
        file: dict[str, Any] = {"agent": key[0], "n": 1, "source": [key[1]], "start": [key[2]], "files": {}}
        name = KINDS["x"].format(number)
        file["x"] = [growing.length]
        with told_plainly(self.given, "dataset"):
            file["files"][name] = growing.saved_as(self.path / name)
        for kind in ("actions", "states"):
            if parts := growing.beside[kind]:
                array = np.concatenate(parts)
                file[kind] = [len(array)]
                name = KINDS[kind].format(number)
                file["files"][name] = _save(self.path / name, array)
        self._index["files"].append(file)
        self._write_index()

    def _write_index(self) -> None:
        with written_whole(self.path / UNFINISHED, "dataset") as temporary:
            temporary.write_text(sealed_text({**self._index, "notes": self.notes}))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.finished:
            return
        try:
            if kind is None:
                self._finish()
        finally:
            for growing in self._growing.values():
                growing.path.unlink(missing_ok=True)
            os.close(self._lock)
            left = self.run and self._index["files"]  # that the same run can go on from
            if (self.url is not None) if self.finished else not left:
                shutil.rmtree(self.path, ignore_errors=True)

    def _finish(self) -> None:
        """Write what is held, and the index last of all."""
        for key in list(self._growing):
            self._close(key)
        for agent in list(self._held):
            self._write(agent)
        if len(self._index["agents"]) < 2:
            raise InvalidDataError(ONE_AGENT.format(len(self._index["agents"])))
        self._write_index()  # there may be new notes
        if self.url is None:
            with told_plainly(self.given, "dataset"):
                os.replace(self.path / UNFINISHED, self.path / INDEX)
        else:
            for name in (name for file in self._index["files"] for name in file["files"]):
                urls.put(self.path / name, f"{self.url}/{name}")
            urls.put(self.path / UNFINISHED, f"{self.url}/{INDEX}")
        self.finished = True


class _Growing:
    """An NPY file to which frames are added until the episode is over; NumPy leaves room for its length."""

    def __init__(self, path: Path) -> None:
        self.path, self.length = path, 0
        self.beside: dict[str, list[NDArray[Any]]] = {"actions": [], "states": []}

    def add(self, part: dict[str, Any]) -> None:
        x = np.ascontiguousarray(part["x"])
        with self.path.open("ab") as file:
            if not self.length:
                self.shape, self.dtype = x.shape[1:], x.dtype
                file.write(self._header())
            file.write(x.data)
        self.length += len(x)
        for kind, parts in self.beside.items():
            parts += [] if part[kind] is None else [part[kind]]

    def _header(self) -> bytes:
        header = io.BytesIO()
        shape = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(header, {**shape, "shape": (self.length, *self.shape)})
        return header.getvalue()

    def saved_as(self, path: Path) -> list[int]:
        """Give it its own name; how many bytes it has, and their CRC-32."""
        crc32 = 0
        with self.path.open("r+b") as file:
            file.write(self._header())
            file.seek(0)
            while part := file.read(2**20):
                crc32 = zlib.crc32(part, crc32)
            size = file.tell()
            os.fsync(file.fileno())
        os.replace(self.path, path)
        return [size, crc32]


def _save(path: Path, array: NDArray[Any]) -> list[int]:
    """Write an NPY file; how many bytes it has, and their CRC-32."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    with written_whole(path, "dataset") as temporary, temporary.open("wb") as file:
        file.write(header.getvalue())
        file.write(array.data)
    return [header.tell() + array.nbytes, zlib.crc32(array.data, zlib.crc32(header.getvalue()))]


def _shortened(values: list[Any]) -> Any:
    """Equal values as one."""
    return values[0] if len(set(values)) == 1 else values


def _each(file: Mapping[str, Any], name: str) -> list[Any]:
    """What the index says of each episode of a file, also where `_shortened` made one of it."""
    value = file.get(name, 0)
    return value if isinstance(value, list) else [value] * file["n"]


# -- reading ----------------------------------------------------------------------------------------------------------


class StoredFrames(Frames):
    """Frames in the files of a dataset. An episode is one read, which needs no memory but its own."""

    in_memory = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(urls.check_url("The dataset", path) if is_url(path) else check_source("The dataset", path))
        self.index = _read_index(self.path)
        self.obs_shape = tuple(self.index["obs_shape"])
        self.dtype = np.dtype(self.index["dtype"])
        self._files: dict[str, Path] = {}  # that were compared with their checksums
        each = int(np.prod(self.obs_shape, dtype=np.int64)) * self.dtype.itemsize
        sizes = [file["files"][KINDS["x"].format(i)][0] for i, file in enumerate(self.index["files"])]
        self._begin = [size - sum(_each(file, "x")) * each for size, file in zip(sizes, self.index["files"])]
        if not is_url(self.path):
            for number in range(len(sizes)):
                self._local(number, "x")

    def part(self, number: int, first: int, length: int) -> NDArray[Any]:
        out = np.empty((length, *self.obs_shape), dtype=self.dtype)
        self.read(number, first, out)
        return out

    def read(self, number: int, first: int, out: NDArray[Any]) -> None:
        local, left = self.file(number, "x"), out.reshape(-1).view(np.uint8).data
        at = self._begin[number] + first * out[:1].nbytes
        try:
            opened = os.open(local, os.O_RDONLY)
            try:
                while left:
                    n = os.preadv(opened, [left], at)
                    if n == 0:
                        raise EOFError("it ends too soon")
                    left, at = left[n:], at + n
            finally:
                os.close(opened)
        except (OSError, EOFError) as error:
            raise self._unreadable(local, error) from error

    def pick(self, number: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[Any]:
        x = np.empty((len(number), *self.obs_shape), dtype=self.dtype)
        for i, (own, at) in enumerate(zip(number.tolist(), first.tolist())):
            self.read(own, at, x[i : i + 1])
        return x

    def identity(self) -> Iterator[bytes | memoryview]:
        return (str(file["files"]).encode() for file in self.index["files"])

    def file(self, number: int, kind: str) -> Path:
        """A file on this machine's disk; the first time, it is compared with its checksum."""
        name, crc32 = KINDS[kind].format(number), 0
        if name not in self._files:
            local = self._local(number, kind)
            try:
                with local.open("rb") as opened:
                    while part := opened.read(2**20):
                        crc32 = zlib.crc32(part, crc32)
            except OSError as error:
                raise self._unreadable(local, error) from error
            if crc32 != self.index["files"][number]["files"][name][1]:
                raise self._unreadable(local, "its checksum does not fit")
            self._files[name] = local
        return self._files[name]

    def _unreadable(self, local: Path, why: object) -> InvalidDataError:
        return InvalidDataError(
            f"{self.path}/{local.name} must be as it was written; it is damaged or cannot be read ({why}); write or "
            "copy the dataset again."
        )

    def _local(self, number: int, kind: str) -> Path:
        """A file on this machine's disk, of the right size."""
        name = KINDS[kind].format(number)
        size = self.index["files"][number]["files"][name][0]
        remote = is_url(self.path)
        local = (urls.cached(f"{self.path} {self.index['checksum']}") if remote else Path(self.path)) / name
        if remote and not (local.is_file() and local.stat().st_size == size):
            urls.get(f"{self.path}/{name}", local)
        if not local.is_file() or local.stat().st_size != size:
            state = f"it has {local.stat().st_size} bytes of {size}" if local.is_file() else "it is missing"
            raise InvalidDataError(
                f"{self.path}/{name} must be as it was written; {state}; write or copy the dataset again."
            )
        return local


def is_dataset(path: str | os.PathLike[str]) -> bool:
    """Whether a dataset lies there that is complete."""
    index = f"{os.fspath(path)}/{INDEX}"
    return urls.exists(index) if is_url(path) else Path(index).is_file()


def open_dataset(path: str | os.PathLike[str]) -> TrajectoryDataset:
    """A dataset on disk or at a URL; only its index is read."""
    frames = StoredFrames(path)
    files, names = frames.index["files"], frames.index["agents"]
    number = np.repeat(np.arange(len(files)), [file["n"] for file in files])
    agent = np.array([names.index(file["agent"]) for file in files])[number]
    lengths, start = (np.concatenate([_each(file, name) for file in files]) for name in ("x", "start"))
    source = [source for file in files for source in _each(file, "source")]
    before = np.cumsum(lengths) - lengths
    first = before - before[np.searchsorted(number, number)]
    H, notes, known = int(lengths.max()), frames.index["notes"], any(source)
    place = (source, start) if known else (None, None)
    tau = TrajectoryDataset(frames, number, first, lengths, agent, H, names, notes, *place)
    by_agent = np.argsort(agent, kind="stable")
    return tau.like(by_agent, agent[by_agent], H, names).checked()


def read_actions(path: str | os.PathLike[str]) -> list[list[NDArray[Any]]]:
    """For every agent of a dataset, the actions of each of its episodes; an empty list where there are none at all.

    An episode of n observations has n actions, or n - 1 where the source leaves out the one after the last, or none.
    """
    return _beside(StoredFrames(path), "actions")


def read_true_states(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """The true states (n, H) of a dataset's trajectories, as `craftrl collect` writes them; -1 where unknown."""
    tau = open_dataset(path)
    assert isinstance(tau.frames, StoredFrames)
    found = [states for agent in _beside(tau.frames, "states") for states in agent]
    if not found:
        raise InvalidDataError(
            f"A dataset must know the true states, as those of craftrl collect do; {os.fspath(path)} does not; give "
            "another one."
        )
    out = np.full((tau.n, tau.H), -1, dtype=np.int64)
    for row, states in zip(out, found):
        row[: len(states)] = states
    return out


def _beside(frames: StoredFrames, kind: str) -> list[list[NDArray[Any]]]:
    """What lies beside the frames: a list for each agent, with an array for each episode."""
    files = frames.index["files"]
    found: dict[Any, list[NDArray[Any]]] = {agent: [] for agent in frames.index["agents"]}
    for number, file in enumerate(files):
        array = np.load(frames.file(number, kind), allow_pickle=False) if kind in file else np.empty(0)
        found[file["agent"]].extend(np.split(array, np.cumsum(_each(file, kind))[:-1]))
    return list(found.values()) if any(kind in file for file in files) else []


def _read_index(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The index of a dataset, if it is complete."""
    if is_dataset(path):
        index = f"{os.fspath(path)}/{INDEX}"
        return _unsealed(path, urls.read_bytes(index) if is_url(path) else Path(index).read_bytes())
    state = "nothing is there"
    if not is_url(path) and (where := check_source("The dataset", path)).exists():
        unfinished = (where / UNFINISHED).is_file()
        state = (
            "it is unfinished, and the command that writes it goes on"
            if unfinished
            else "something else is there, such as recordings for craftrl import"
        )
    raise InvalidDataError(f"There must be a dataset at {os.fspath(path)}; {state}; check the name.")


def _unsealed(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    try:
        content = unsealed(data)
        if content["format"] != FORMAT:
            raise ValueError(f"it is a {content['format']}")
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{os.fspath(path)} must be a dataset of craftrl; its index is damaged ({error}); write or copy it again."
        ) from error
    return content
