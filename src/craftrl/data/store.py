"""Trajectories on disk: a folder of NPY files, some episodes of one agent in each, and an index that is written last.

Frames of an episode lie together and are memory-mapped, so that any episode is one read. `dataset.json` has the agents,
the lengths and the CRC-32 of every file, and a SHA-256 of itself: what is missing, altered or unfinished is refused. A
file is compared with its checksum when it is first read. Actions and true states lie beside the frames, in files of
their own that no learner opens. While a dataset is written, `unfinished.json` says which files are complete.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, check_source, check_target, is_url, shown
from craftrl.data import urls
from craftrl.data.dataset import NAMES, ONE_AGENT, TrajectoryDataset, as_observations
from craftrl.data.files import UNREADABLE, plain_value, sealed_text, told_plainly, unsealed, written_whole
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["DatasetWriter", "is_dataset", "open_dataset", "read_actions", "read_true_states"]

FORMAT, INDEX, UNFINISHED = "craftrl dataset 1", "dataset.json", "unfinished.json"
FILE_BYTES = 64 * 2**20  # of frames in one file
HELD_BYTES = 4 * FILE_BYTES  # of frames of all agents that are held before some are written
MAPPED_BYTES = 256 * 2**20  # of mapped files: so much counts as this process's memory, at most

# -- writing ----------------------------------------------------------------------------------------------------------


class _Episode(NamedTuple):
    x: NDArray[Any]
    source: str
    start: int
    actions: NDArray[Any] | None
    states: NDArray[Any] | None


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
        self.url = urls.check_url("The dataset", path) if is_url(path) else None
        self.path = check_target("The dataset", path) if self.url is None else urls.cached(self.url)
        self.given, self.run, self.notes = self.url or str(self.path), run, dict(notes or {})
        self.dtype: np.dtype[Any] | None = None
        self.obs_shape: tuple[int, ...] = ()
        self._agents: list[Any] = []  # in the order in which they first came, which need not be that of their files
        self._files: list[dict[str, Any]] = []
        self._held: dict[Any, list[_Episode]] = {}
        self._bytes: dict[Any, int] = {}
        self._seen: set[tuple[Any, str, int]] = set()
        unfinished = self.path / UNFINISHED
        self.finished = is_dataset(self.given)
        found: dict[str, Any] = {}
        if self.finished:
            found = _read_index(self.given)
        elif unfinished.is_file():
            found = _unsealed(self.given, unfinished.read_bytes())
        same = bool(run) and found.get("run") == run
        foreign = self.path.exists() and not unfinished.is_file() and not (self.path.is_dir() and _is_empty(self.path))
        if not same and (self.finished or foreign):
            raise InvalidParameterError(f"{self.given} exists already; remove it, or choose another name.")
        if same:
            self._agents, self._files, self.notes = found["agents"], found["files"], found["notes"]
            self.obs_shape = tuple(found["obs_shape"])
            self.dtype = np.dtype(found["dtype"]) if found["dtype"] else None
        self.done = {
            (file["agent"], source, start)
            for file in self._files
            for source, start in zip(_each(file, "sources"), _each(file, "starts"))
        }

    def __enter__(self) -> DatasetWriter:
        if self.finished:
            return self
        with told_plainly(self.given, "dataset"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with this process, however that ends
            except BlockingIOError:
                os.close(self._lock)
                raise InvalidParameterError(
                    f"One process at a time may write a dataset; another one is writing {self.given}; wait for it, or "
                    "choose another name."
                ) from None
            kept = {name for file in self._files for name in file["files"]}
            for left in (*self.path.glob("[0-9]*.npy"), *self.path.glob(".*.tmp")):
                if left.name not in kept:
                    left.unlink()
            self._write_index(UNFINISHED)
        return self

    def append(
        self,
        agent: str,
        x: ArrayLike,
        *,
        source: str = "",
        start: int = 0,
        actions: ArrayLike | None = None,
        states: ArrayLike | None = None,
    ) -> None:
        """Add one episode (length, *obs) of an agent; agents are numbered in the order in which they first come.

        source, start    the file or episode that it comes from, and its first frame there
        actions, states  of the episode, (length or length - 1, ...) and (length,); they are kept beside the frames
        """
        if not isinstance(agent, NAMES):
            raise InvalidDataError(f"An agent must have a name, a text or a number; {shown(agent)} was given.")
        agent = plain_value(agent) if isinstance(agent, np.generic) else agent
        if agent not in self._agents:
            self._agents.append(agent)
        key = (agent, source, int(start))
        if key in self.done:
            return
        if self.run and key in self._seen:
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
        if self.dtype is None:
            self.dtype, self.obs_shape = frames.dtype, frames.shape[1:]
        if frames.shape[1:] != self.obs_shape or not np.can_cast(frames.dtype, self.dtype, "safe"):
            raise InvalidDataError(
                f"All observations must have one shape and type; {self.obs_shape} {self.dtype} and, of agent {agent}, "
                f"{frames.shape[1:]} {frames.dtype} were given; crop, resize or convert them first."
            )
        beside = _beside("actions", actions, len(frames)), _beside("states", states, len(frames))
        episode = _Episode(frames.astype(self.dtype), source, int(start), *beside)
        self._seen.add(key)
        self._held.setdefault(agent, []).append(episode)
        self._bytes[agent] = self._bytes.get(agent, 0) + episode.x.nbytes
        if self._bytes[agent] >= FILE_BYTES or sum(self._bytes.values()) >= HELD_BYTES:
            self._write(max(self._bytes, key=self._bytes.__getitem__))

    def _write(self, agent: Any) -> None:
        """What is held of one agent becomes a file, and the index says so."""
        held, number = self._held.pop(agent), f"{len(self._files):05d}"
        del self._bytes[agent]
        file: dict[str, Any] = {"agent": agent, "n": len(held), "files": {}}
        file["lengths"] = _shortened([len(episode.x) for episode in held])
        file["sources"] = _shortened([episode.source for episode in held])
        file["starts"] = _shortened([episode.start for episode in held])
        with told_plainly(self.given, "dataset"):
            for kind, name in (("x", f"{number}.npy"), *((kind, f"{number}.{kind}.npy") for kind in BESIDE)):
                arrays = [getattr(episode, kind) for episode in held]
                known = [array for array in arrays if array is not None]
                if len({array.shape[1:] for array in known}) > 1:
                    raise InvalidDataError(f"The {kind} of agent {agent} must have one shape; several were given.")
                if known:
                    file[kind] = _shortened([0 if array is None else len(array) for array in arrays])
                    file["files"][name] = _save(self.path / name, np.concatenate(known))
            self._files.append(file)
            self._write_index(UNFINISHED)

    def _write_index(self, name: str) -> None:
        content = {
            "format": FORMAT,
            "run": self.run,
            "obs_shape": list(self.obs_shape),
            "dtype": "" if self.dtype is None else self.dtype.str,
            "notes": self.notes,
            "agents": self._agents,
            "files": self._files,
        }
        with written_whole(self.path / name, "dataset") as temporary:
            temporary.write_text(sealed_text(content))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.finished:
            return
        try:
            if kind is None:
                self._finish()
        finally:
            os.close(self._lock)
            if (self.url is not None) if self.finished else not self.run:
                shutil.rmtree(self.path, ignore_errors=True)

    def _finish(self) -> None:
        """Write what is held, and the index last of all."""
        for agent in list(self._held):
            self._write(agent)
        agents = {file["agent"] for file in self._files}
        if len(agents) < 2:
            raise InvalidDataError(ONE_AGENT.format(len(agents)))
        with told_plainly(self.given, "dataset"):
            if self.url is not None:
                for file in self._files:
                    for name in file["files"]:
                        urls.put(self.path / name, f"{self.url}/{name}")
            self._write_index(INDEX)
            if self.url is not None:
                urls.put(self.path / INDEX, f"{self.url}/{INDEX}")
            (self.path / UNFINISHED).unlink()
        self.finished = True


BESIDE = ("actions", "states")


def _beside(name: str, values: ArrayLike | None, length: int) -> NDArray[Any] | None:
    """Actions or states of an episode of this length, as an array."""
    if values is None:
        return None
    array = plain_array(values)
    least = length - (name == "actions")
    if array is None or array.dtype.kind not in "biuf" or array.ndim < 1 or not least <= len(array) <= length:
        raise InvalidDataError(
            f"The {name} of an episode must be numbers, {least} to {length} of them; {shown(values)} was given."
        )
    return array.copy()


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
    """What the index says of each episode of a file, where `_shortened` made one of it too."""
    value = file.get(name, 0)
    return value if isinstance(value, list) else [value] * file["n"]


def _is_empty(folder: Path) -> bool:
    return not any(folder.iterdir())


# -- reading ----------------------------------------------------------------------------------------------------------


class StoredFrames:
    """Frames in the files of a dataset, memory-mapped when they are first read, and by each process anew."""

    in_memory = False

    def __init__(self, path: str, index: Mapping[str, Any]) -> None:
        self.path, self.index = path, index
        self.obs_shape: tuple[int, ...] = tuple(index["obs_shape"])
        self.dtype: np.dtype[Any] = np.dtype(index["dtype"])
        self._maps: dict[int, NDArray[Any]] = {}
        self._used = 0

    def __getitem__(self, number: int) -> NDArray[Any]:
        if number not in self._maps:
            self._maps[number] = _mapped(self.path, self.index, number, "x")
        return self._maps[number]

    def used(self, n_bytes: int) -> None:
        """What is mapped and was read counts as this process's memory; from time to time it is given back."""
        self._used += n_bytes
        if self._used >= MAPPED_BYTES:
            self._used = 0
            for frames in self._maps.values():
                if isinstance(frames.base, mmap.mmap):
                    frames.base.madvise(mmap.MADV_DONTNEED)

    def identity(self) -> Iterator[bytes | memoryview]:
        return (str(file["files"]).encode() for file in self.index["files"])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maps": {}}


def is_dataset(path: str | os.PathLike[str]) -> bool:
    """Whether a dataset lies there that is complete."""
    given = os.fspath(path)
    return urls.exists(f"{given}/{INDEX}") if is_url(path) else (Path(given) / INDEX).is_file()


def open_dataset(path: str | os.PathLike[str]) -> TrajectoryDataset:
    """A dataset on disk or at a URL; only its index is read."""
    index, given = _read_index(path), os.fspath(path)
    files = index["files"]
    if not is_url(given):
        for number in range(len(files)):
            _local(given, index, number, "x")
    names = index["agents"]
    holder = np.repeat(np.arange(len(files)), [file["n"] for file in files])
    agent = np.array([names.index(file["agent"]) for file in files])[holder]
    lengths, starts = (np.concatenate([_each(file, name) for file in files]) for name in ("lengths", "starts"))
    sources = [source for file in files for source in _each(file, "sources")]
    before = np.cumsum(lengths) - lengths
    first = before - before[np.searchsorted(holder, holder)]
    order = np.argsort(agent, kind="stable")
    return TrajectoryDataset(
        StoredFrames(given, index),
        (holder[order], first[order]),
        lengths[order],
        agent[order],
        names=names,
        notes=index["notes"],
        source=[sources[i] for i in order] if any(sources) else None,
        start=starts[order] if any(sources) else None,
    )


def read_actions(path: str | os.PathLike[str]) -> list[list[NDArray[Any]]]:
    """For every agent of a dataset, the actions of each of its episodes; an empty list where there are none at all.

    An episode of n observations has n actions, or n - 1 where the source leaves out the one after the last, or none.
    """
    return _by_agent(path, "actions")


def read_true_states(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """The true states (n, H) of a dataset's trajectories, as `craftrl collect` writes them; -1 where unknown."""
    found = [states for agent in _by_agent(path, "states") for states in agent]
    if not found:
        raise InvalidDataError(
            f"A dataset must know the true states, as those of craftrl collect do; {os.fspath(path)} does not; give "
            "another one."
        )
    tau = open_dataset(path)
    out = np.full((tau.n, tau.H), -1, dtype=np.int64)
    for row, states in zip(out, found):
        row[: len(states)] = states
    return out


def _by_agent(path: str | os.PathLike[str], kind: str) -> list[list[NDArray[Any]]]:
    """What lies beside the frames: a list for each agent, with an array for each episode."""
    index = _read_index(path)
    found: dict[Any, list[NDArray[Any]]] = {agent: [] for agent in index["agents"]}
    for number, file in enumerate(index["files"]):
        array = _mapped(os.fspath(path), index, number, kind) if kind in file else np.empty(0)
        found[file["agent"]].extend(np.split(array, np.cumsum(_each(file, kind))[:-1]))
    return list(found.values()) if any(kind in file for file in index["files"]) else []


def _read_index(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The index of a dataset, if it is complete."""
    if is_dataset(path):
        file = f"{os.fspath(path)}/{INDEX}"
        return _unsealed(path, urls.read_bytes(file) if is_url(path) else Path(file).read_bytes())
    state = "nothing is there"
    if not is_url(path) and (where := check_source("The dataset", path)).exists():
        unfinished = (where / UNFINISHED).is_file()
        state = "it is unfinished, and the command that writes it goes on" if unfinished else "something else is there"
    raise InvalidDataError(f"There must be a dataset at {os.fspath(path)}; {state}; check the name.")


def _unsealed(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    try:
        content = unsealed(data)
        if content["format"] != FORMAT:
            raise ValueError(f"it is a {content['format']}")
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{os.fspath(path)} must be a dataset of craftrl; its index is unreadable ({error}); write or copy it again."
        ) from error
    return content


def _local(path: str, index: Mapping[str, Any], number: int, kind: str) -> Path:
    """A file of a dataset on this machine's disk, of the right size: a mapped file that is too short ends a process."""
    name = f"{number:05d}.npy" if kind == "x" else f"{number:05d}.{kind}.npy"
    size = index["files"][number]["files"][name][0]
    local = (urls.cached(f"{path} {index['checksum']}") if is_url(path) else Path(path)) / name
    found = local.stat().st_size if local.is_file() else None
    if found != size and is_url(path):
        urls.get(f"{path}/{name}", local)
        found = local.stat().st_size
    if found != size:
        state = "it is missing" if found is None else f"it has {found} bytes of {size}"
        raise InvalidDataError(f"{path}/{name} must be as it was written; {state}; write or copy the dataset again.")
    return local


def _mapped(path: str, index: Mapping[str, Any], number: int, kind: str) -> NDArray[Any]:
    """The array of a file, memory-mapped, once the file was compared with its checksum."""
    local = _local(path, index, number, kind)
    file, crc32 = index["files"][number], 0
    try:
        with local.open("rb") as opened:
            while part := opened.read(2**20):
                crc32 = zlib.crc32(part, crc32)
        if crc32 != file["files"][local.name][1]:
            raise ValueError("its checksum does not fit")
        array: NDArray[Any] = np.load(local, mmap_mode="r", allow_pickle=False)
        if len(array) != sum(_each(file, kind)):
            raise ValueError(f"it holds {len(array)} rows")
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{path}/{local.name} must be as it was written; it was damaged or cannot be read ({error}); write or copy "
            "the dataset again."
        ) from error
    return array
