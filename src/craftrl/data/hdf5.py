"""One HDF5 file: `observations` (H, n, *obs) in chunks of one time step, `agent` (n,) and `lengths` (n,).

Every byte that matters carries a checksum: the data by HDF5's fletcher32 filter and by sums of our own (`chunk_sums`),
what describes it by the newer layout of the file (`libver="latest"`). Nothing has a variable length: a damaged
reference to such a thing can make the HDF5 library wait for ever. So a damaged file is refused, and is never read with
other numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from craftrl.data.chunk_sums import CheckedChunks, ChunkSums, array_sum
from craftrl.data.hdf5_files import GuardedFile, OpenHdf5
from craftrl.data.places import Place, place
from craftrl.data.raw import RawRows, Run
from craftrl.data.seals import UNREADABLE, check_memory
from craftrl.data.storage import DatasetWriter
from craftrl.errors import InvalidDataError, require

__all__ = ["Hdf5Steps", "Hdf5Writer", "open_hdf5", "read_notes"]

FORMAT = "craftrl trajectories 3"
WITHOUT_SUMS = ("craftrl trajectories 2", "craftrl trajectories 1")  # the first had no checksums at all
SUMS = "crc32"  # of chunks: a dataset; of agents, lengths and notes: an attribute of theirs
FLETCHER32 = 3  # HDF5's number of the filter
CHUNK_BYTES = 2**20
FEWEST_ROWS = 256  # of a chunk, for writers that append a few trajectories at a time


class Hdf5Steps:
    """Observations in an HDF5 file, opened anew in every process that reads it."""

    def __init__(self, path: Place) -> None:
        self.path = path
        self._file: OpenHdf5 | None = None
        self._owner = -1
        with self._reading() as observations:
            self.shape: tuple[int, ...] = tuple(observations.shape)
            self.dtype: np.dtype[Any] = observations.dtype
            self._checked = _checked_chunks(observations)

    def read(self, step: int, start: int, stop: int) -> NDArray[Any]:
        try:
            with self._reading() as observations:
                if self._checked is not None and start < stop:
                    return self._checked.read(observations, step, start, min(stop, self.shape[1]))
                return np.asarray(observations[step, start:stop])
        except UNREADABLE as error:
            row_bytes = int(np.prod(self.shape[2:], dtype=np.int64)) * self.dtype.itemsize
            check_memory(error, self.path, (stop - start) * row_bytes)
            raise InvalidDataError(
                f"{self.path} cannot be read to its end ({error}); write or copy it again."
            ) from error

    @property
    def rows_together(self) -> int:
        """How many trajectories a chunk holds: to read one of them, all are decoded."""
        with self._reading() as observations:
            chunks = observations.chunks
        return 1 if chunks is None else int(chunks[1])

    def raw(self) -> RawRows | None:
        """Where the chunks lie in the file, if they are as we write them, uncompressed and all there.

        Whoever reads past the HDF5 library sees no checksums, so all of them are checked first, in one pass.
        """
        with self._reading() as observations:
            return self._found_runs(observations)

    def _found_runs(self, x: Any) -> RawRows | None:
        created = x.id.get_create_plist()
        filters = [created.get_filter(i)[0] for i in range(created.get_nfilters())]
        if x.chunks is None or x.chunks != (1, x.chunks[1], *x.shape[2:]) or filters not in ([], [FLETCHER32]):
            return None
        (H, n), m = x.shape[:2], x.chunks[1]
        for step in range(H if filters else 0):
            for row in range(0, n, m):
                self.read(step, row, row + m)
        corner = (0,) * len(x.shape[2:])
        infos = [[x.id.get_chunk_info_by_coord((h, row, *corner)) for row in range(0, n, m)] for h in range(H)]
        offsets = np.array([[-1 if i.byte_offset is None else i.byte_offset for i in step] for step in infos])
        if x.file.userblock_size or (offsets < 0).any():
            return None
        row_bytes = int(np.prod(x.shape[2:], dtype=np.int64)) * x.dtype.itemsize

        def find(step: int, row: int) -> Run:
            chunk, within = divmod(row, m)
            return Run(self.path, int(offsets[step, chunk]) + within * row_bytes, m - within)

        return RawRows(find, self.path, row_bytes)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """The observations, in a file that this process opened and that has not failed."""
        if self._file is None or self._owner != os.getpid() or not self._file.usable:
            self._file, self._owner = OpenHdf5(self.path), os.getpid()
        with self._file.told():
            yield self._file.observations

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None, "_owner": -1}


@contextmanager
def _reading(path: Place) -> Iterator[Any]:
    opened = OpenHdf5(path)
    try:
        with opened.told():
            yield opened.file
    finally:
        opened.close()


def open_hdf5(path: Place) -> tuple[Hdf5Steps, NDArray[np.int64], NDArray[np.int64]]:
    """Steps, agent labels and lengths of a file that `Hdf5Writer` wrote."""
    try:
        with _reading(path) as file:
            if _text(file.attrs.get("format")) not in (FORMAT, *WITHOUT_SUMS):
                raise InvalidDataError(f"{path} must be a dataset written by craftrl; it is another kind of HDF5 file.")
            agent, lengths = _labels(file["agent"]), _labels(file["lengths"])
        steps = Hdf5Steps(path)
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{path} must be a dataset written by craftrl; it is truncated, damaged or no HDF5 file ({error}); write "
            "or copy it again."
        ) from error
    if len(steps.shape) < 2 or not agent.shape == lengths.shape == steps.shape[1:2] or steps.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{path} must hold numbers (steps, trajectories, ...) and one agent and one length for each trajectory; "
            f"it has shape {steps.shape} of {steps.dtype}, {agent.size} agents and {lengths.size} lengths; write or "
            "copy it again."
        )
    return steps, agent, lengths


def _checked_chunks(observations: Any) -> CheckedChunks | None:
    """The sums of the chunks, if the file has them."""
    file = observations.file
    if _text(file.attrs.get("format")) in WITHOUT_SUMS:
        return None
    rows, table = int(observations.chunks[1]), np.asarray(file[SUMS][...])
    if table.shape != (observations.shape[0], -(-observations.shape[1] // rows)) or table.dtype != np.uint32:
        raise ValueError(f"the table of checksums holds {table.dtype} of shape {table.shape}")
    return CheckedChunks(table, rows)


def _whole(data: Any) -> NDArray[Any]:
    """All of a small dataset; ValueError where it is not what was written."""
    values = np.asarray(data[...])
    if SUMS in data.attrs and array_sum(values) != int(data.attrs[SUMS]):
        raise ValueError(f"the checksum of {data.name} does not fit")
    return values


def _labels(data: Any) -> NDArray[np.int64]:
    """Whole numbers, one for each trajectory; anything else is damage."""
    if data.ndim != 1 or data.dtype.kind not in "iu":
        raise ValueError(f"{data.name} holds {data.dtype} of shape {data.shape}")
    return np.asarray(_whole(data), dtype=np.int64)


def _text(value: Any) -> str:
    """An attribute as text: bytes of a fixed length, or a text of the first version."""
    return value.decode() if isinstance(value, bytes) else str(value)


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the writer noted about where the data comes from; empty for a store without notes, and for shards."""
    where = place(path)
    if not where.is_file():
        return {}
    try:
        with _reading(where) as file:
            text = _whole(file["notes"]).tobytes().decode() if "notes" in file else _text(file.attrs.get("notes", "{}"))
            notes = json.loads(text)
    except UNREADABLE as error:
        raise InvalidDataError(
            f"The notes in {path} cannot be read ({error}); write or copy the file again."
        ) from error
    return notes if isinstance(notes, dict) else {}


class Hdf5Writer(DatasetWriter):
    """Appends blocks of trajectories to one HDF5 file; see `DatasetWriter`.

    `notes` are plain values about where the data comes from, such as the agents' names; no learner reads them.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        H: int,
        obs_shape: Sequence[int],
        dtype: DTypeLike,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(path, H, obs_shape, dtype)
        self.notes = dict(notes or {})

    def _begin(self) -> None:
        h5py = require("h5py", "storage")
        self._guard = GuardedFile(self.part, "w+")
        self._file = h5py.File(self._guard, "w", libver="latest")
        self._observations: Any = None
        self._sums: ChunkSums | None = None
        self._agent: list[NDArray[np.int64]] = []
        self._lengths: list[NDArray[np.int64]] = []

    def _create(self, n_first: int) -> Any:
        """The dataset, in chunks no longer than its first block: the last chunk of each step takes its full room."""
        m = min(max(1, CHUNK_BYTES // self.row_bytes), max(n_first, FEWEST_ROWS))
        return self._file.create_dataset(
            "observations",
            shape=(self.H, 0, *self.obs_shape),
            maxshape=(None, None, *self.obs_shape),  # with one open axis HDF5 2.0 misreports where chunks lie
            chunks=(1, m, *self.obs_shape),
            dtype=self.dtype,
            fletcher32=True,
        )

    def _store(self, name: str, values: NDArray[Any]) -> None:
        stored = self._file.create_dataset(name, data=values, chunks=values.shape, fletcher32=True)
        stored.attrs[SUMS] = np.uint32(array_sum(values))

    def _append(self, agent: int, x: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        if self._observations is None or self._sums is None:
            self._observations = self._create(len(x))
            self._sums = ChunkSums(self.H, self._observations.chunks[1], self.obs_shape, self.dtype)
        start = self._observations.shape[1]
        stop = start + len(x)
        self._observations.resize(stop, axis=1)
        for step in range(x.shape[1]):
            self._observations[step, start:stop] = x[:, step]
            self._guard.check()
        self._sums.add(x)
        self._agent.append(np.full(len(x), agent))
        self._lengths.append(lengths)

    def _end(self) -> None:
        try:
            if self._sums is not None:
                self._store(SUMS, self._sums.table())
                self._store("agent", np.concatenate(self._agent))
                self._store("lengths", np.concatenate(self._lengths))
            if self.notes:
                self._store("notes", np.frombuffer(json.dumps(self.notes).encode(), dtype=np.uint8))
            self._file.attrs["format"] = np.bytes_(FORMAT)
        finally:
            self._file.close()
            self._guard.close()
        self._guard.check()
