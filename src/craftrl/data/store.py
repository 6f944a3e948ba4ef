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
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_flag, check_kind, check_source, check_target, check_whole, is_url, quoted
from craftrl.arrays import Ints
from craftrl.data import urls
from craftrl.data.dataset import ONE_AGENT, Frames, TrajectoryDataset, as_observations
from craftrl.data.files import plain_os_errors, readable, sealed_text, unsealed, written_whole
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError

FORMAT, INDEX, UNFINISHED = "craftrl dataset 1", "dataset.json", "unfinished.json"
KINDS = {"x": "{:05d}.npy", "actions": "{:05d}.actions.npy", "states": "{:05d}.states.npy"}
FILE_BYTES = 64 * 2**20  # of frames in one file

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
        self._parts = map(".part{}.tmp".format, count())
        # Of each agent, the file to which its episodes are added; and of each episode that comes in parts, its own.
        self._open: dict[Any, _File] = {}

    def __enter__(self) -> DatasetWriter:
        if self.finished:
            return self
        with plain_os_errors(self.given, "dataset"):
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
            raise InvalidDataError(f"An agent must have a name, a text or a number; {quoted(agent)} was given.")
        check_kind("source", source, str, "a text")
        check_whole("start", start)
        check_flag("goes_on", goes_on)
        key = (agent, source, int(start))
        if agent not in self._index["agents"]:
            self._index["agents"].append(agent)
        if key in self.done:
            return
        grows = key in self._open
        if self.run and key in self._seen and not grows:
            raise InvalidDataError(
                f"Episodes of one agent must differ in source or start, so that an interrupted run goes on; {key} was "
                "given twice; name them."
            )
        part = {"x": self._fitting(agent, x)}
        n = len(part["x"])
        for kind, given, least in (("actions", actions, n - 1), ("states", states, n)):
            if given is None:
                continue
            array = plain_array(given)
            if array is None or not array.ndim or not least <= len(array) <= n or array.dtype.kind not in "biuf":
                raise InvalidDataError(
                    f"The {kind} of an episode must be {least} to {n} numbers; {quoted(given)} was given."
                )
            part[kind] = array.copy()
        name = key if goes_on or grows else agent
        if goes_on and not grows and agent in self._open:  # what came before lies before
            self._close(agent)
        with plain_os_errors(self.given, "dataset"):
            if name not in self._open:
                self._open[name] = _File(agent, self.path / next(self._parts), part["x"][:0])
            if not grows:
                self._open[name].begin(source, int(start))
                self._seen.add(key)
            self._open[name].add(part)
        if not goes_on and (grows or self._open[name].bytes >= FILE_BYTES):
            self._close(name)

    def _fitting(self, agent: Any, x: ArrayLike) -> NDArray[Any]:
        """The frames of an episode, of the shape and type of those before."""
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
        return frames.astype(dtype)

    def _close(self, *names: Any) -> None:
        """Files are complete, and the index says so."""
        with plain_os_errors(self.given, "dataset"):
            for name in names:
                self._index["files"].append(self._open.pop(name).closed(len(self._index["files"])))
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
            for left in self.path.glob(".part*.tmp"):
                left.unlink()
            os.close(self._lock)
            stays = self.run and self._index["files"]  # the same run can go on from it
            if (self.url is not None) if self.finished else not stays:
                shutil.rmtree(self.path, ignore_errors=True)

    def _finish(self) -> None:
        """Close what is open, and write the index last of all."""
        self._close(*self._open)
        if len(self._index["agents"]) < 2:
            raise InvalidDataError(ONE_AGENT.format(len(self._index["agents"])))
        if self.url is None:
            with plain_os_errors(self.given, "dataset"):
                os.replace(self.path / UNFINISHED, self.path / INDEX)
        else:
            for name in (name for file in self._index["files"] for name in file["files"]):
                urls.put(self.path / name, f"{self.url}/{name}")
            urls.put(self.path / UNFINISHED, f"{self.url}/{INDEX}")
        self.finished = True


class _File:
    """An NPY file of some episodes of one agent, to which frames are added; and what lies beside them."""

    def __init__(self, agent: Any, path: Path, like: NDArray[Any]) -> None:
        self.agent, self.path, self.like, self.bytes = agent, path, like, 0
        self.source: list[str] = []
        self.start: list[int] = []
        self.lengths: dict[str, list[int]] = {kind: [] for kind in KINDS}
        self.beside: dict[str, list[NDArray[Any]]] = {"actions": [], "states": []}
        path.write_bytes(_header(0, like))

    def begin(self, source: str, start: int) -> None:
        """The next part is the first of an episode."""
        self.source.append(source)
        self.start.append(start)
        for lengths in self.lengths.values():
            lengths.append(0)

    def add(self, part: Mapping[str, NDArray[Any]]) -> None:
        """Frames of the episode that was begun last, and what lies beside them."""
        for kind, array in part.items():
            self.lengths[kind][-1] += len(array)
            if kind != "x":
                self.beside[kind].append(array)
        with self.path.open("ab") as file:  # not kept open: there may be any number of agents
            file.write(part["x"].data)
        self.bytes += part["x"].nbytes

    def closed(self, number: int) -> dict[str, Any]:
        """Give it the name of this number; what the index says of it."""
        found: dict[str, Any] = {"agent": self.agent, "n": len(self.source), "files": {}}
        found |= {"source": _shortened(self.source), "start": _shortened(self.start)}
        with self.path.open("r+b") as file:
            file.write(_header(sum(self.lengths["x"]), self.like))
        paths = {"x": self.path}
        for kind, arrays in self.beside.items():
            if any(array.shape[1:] != arrays[0].shape[1:] for array in arrays):
                raise InvalidDataError(
                    f"The {kind} of agent {self.agent} must be numbers of one shape; others were given."
                )
            if any(self.lengths[kind]):
                paths[kind] = self.path.with_suffix(f".{kind}.tmp")
                with paths[kind].open("wb") as file:
                    np.save(file, np.concatenate(arrays))
        for kind, path in paths.items():
            name = KINDS[kind].format(number)
            with path.open("rb") as file:
                found["files"][name] = [path.stat().st_size, _crc32(file)]
                os.fsync(file.fileno())
            os.replace(path, path.with_name(name))
            found[kind] = _shortened(self.lengths[kind])
        return found


def _crc32(file: BinaryIO) -> int:
    found = 0
    while part := file.read(2**20):
        found = zlib.crc32(part, found)
    return found


def _header(length: int, like: NDArray[Any]) -> bytes:
    """The header of an NPY file of so many frames, always as long: NumPy leaves room for any length."""
    header = io.BytesIO()
    shape = {"descr": np.lib.format.dtype_to_descr(like.dtype), "fortran_order": False}
    np.lib.format.write_array_header_1_0(header, {**shape, "shape": (length, *like.shape[1:])})
    return header.getvalue()


def _shortened(values: list[Any]) -> Any:
    """Equal values as one: the index of a million trajectories stays small, and is written with every file."""
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
        self.path = str(urls.source("The dataset", path))
        self.index = _read_index(self.path)
        self.obs_shape = tuple(self.index["obs_shape"])
        self.dtype = np.dtype(self.index["dtype"])
        self._known = {name: known for file in self.index["files"] for name, known in file["files"].items()}
        self._whole: dict[str, Path] = {}  # files that were compared with their checksums
        self._frame_bytes = int(np.prod(self.obs_shape, dtype=np.int64)) * self.dtype.itemsize
        self._begin = []
        for number, file in enumerate(self.index["files"]):
            name = KINDS["x"].format(number)
            self._begin.append(self._known[name][0] - sum(_each(file, "x")) * self._frame_bytes)
            if not is_url(self.path):
                self._local(name)

    def part(self, number: int, first: int, length: int) -> NDArray[Any]:
        x = np.empty((length, *self.obs_shape), dtype=self.dtype)
        local, left = self.file(number, "x"), x.reshape(-1).view(np.uint8).data
        try:
            with local.open("rb", buffering=0) as file:
                file.seek(self._begin[number] + first * self._frame_bytes)
                while left:
                    if not (n := file.readinto(left)):
                        raise EOFError("it ends too soon")
                    left = left[n:]
        except (OSError, EOFError) as error:
            raise self._unreadable(local, error) from error
        return x

    def pick(self, number: Ints, first: Ints) -> NDArray[Any]:
        x = np.empty((len(number), *self.obs_shape), dtype=self.dtype)
        for i, (own, at) in enumerate(zip(number.tolist(), first.tolist())):
            x[i] = self.part(own, at, 1)[0]
        return x

    def identity(self) -> Iterator[bytes | memoryview]:
        return (str(file["files"]).encode() for file in self.index["files"])

    def file(self, number: int, kind: str) -> Path:
        """A file on this machine's disk; the first time, it is compared with its checksum."""
        name = KINDS[kind].format(number)
        if name not in self._whole:
            local = self._local(name)
            try:
                with local.open("rb") as opened:
                    crc32 = _crc32(opened)
            except OSError as error:
                raise self._unreadable(local, error) from error
            if crc32 != self._known[name][1]:
                raise self._unreadable(local, "its checksum does not fit")
            self._whole[name] = local
        return self._whole[name]

    def _unreadable(self, local: Path, why: object) -> InvalidDataError:
        return InvalidDataError(
            f"{self.path}/{local.name} must be as it was written; it is damaged or cannot be read ({why}); write or "
            "copy the dataset again."
        )

    def _local(self, name: str) -> Path:
        """A file on this machine's disk, of the right size."""
        size, remote = self._known[name][0], is_url(self.path)
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
    return urls.exists(f"{os.fspath(path)}/{INDEX}")


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
        return _unsealed(path, urls.read_bytes(f"{os.fspath(path)}/{INDEX}"))
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
    with readable(f"{os.fspath(path)}/{INDEX}", "the index of a dataset of craftrl", "write or copy it again"):
        content = unsealed(data)
        if content["format"] != FORMAT:
            raise ValueError(f"it is a {content['format']}")
    return content
