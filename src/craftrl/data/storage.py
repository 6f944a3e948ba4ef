"""Datasets on disk: written whole or not at all, read one time step at a time.

Two formats. One HDF5 file, chunked by time (`hdf5`), and a folder of NPZ shards with a small JSON manifest (`shards`),
which needs no package beyond NumPy. Both are read through the `Steps` protocol, so that nothing else in the
library knows where observations lie.

A writer takes the agents' trajectories block by block and holds one block at a time. It writes under a temporary
name beside the target, which gets its own name only when it is complete. In a store with a URL, a folder of shards is
there once its manifest is (`publishing`), and an HDF5 file is written locally and uploaded at the end.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from craftrl.data.dataset import BLOCK_BYTES, TrajectoryDataset, as_observations
from craftrl.data.files import replacing, told_plainly
from craftrl.data.places import Place, source, target
from craftrl.data.publishing import taken
from craftrl.data.remote import Remote
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError

__all__ = ["HDF5_SUFFIXES", "DatasetWriter", "check_room", "open_dataset", "save_dataset", "write_hdf5", "write_shards"]

HDF5_SUFFIXES = (".h5", ".hdf5")
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


class DatasetWriter(ABC):
    """Writes a dataset of H steps block by block; use it in a `with` statement.

    An error inside the statement leaves nothing behind.
    """

    def __init__(self, path: str | os.PathLike[str], H: int, obs_shape: Sequence[int], dtype: DTypeLike) -> None:
        self.path = target("The dataset", path)
        self.H = int(H)
        self.obs_shape = tuple(map(int, obs_shape))
        self.dtype = np.dtype(dtype)
        self.row_bytes = max(1, self.dtype.itemsize * int(np.prod(self.obs_shape, dtype=np.int64)))
        self.block = max(1, BLOCK_BYTES // (self.H * self.row_bytes))  # trajectories to hold at a time
        self.last_agent = -1
        if taken(self.path):
            raise InvalidParameterError(f"{self.path} exists already; remove it, or choose another name.")

    def append(self, agent: int, x: ArrayLike, lengths: ArrayLike | None = None) -> None:
        """Add trajectories (m, steps, *obs) of one agent; agents come in order 0, 1, ..., each in any number of blocks.

        With fewer than H steps, or with `lengths` (m,), trajectories end early.
        """
        array = as_observations(x, f"agent {agent}")
        if array.ndim < 2 or array.shape[2:] != self.obs_shape or not 1 <= array.shape[1] <= self.H:
            raise InvalidDataError(
                f"Trajectories must have shape (m, up to {self.H}, {', '.join(map(str, self.obs_shape))}); "
                f"shape {array.shape} was given."
            )
        if not np.can_cast(array.dtype, self.dtype, "safe"):
            raise InvalidDataError(
                f"This dataset holds {self.dtype}; observations of dtype {array.dtype} were given; convert them first."
            )
        if not self.last_agent <= agent <= self.last_agent + 1:
            raise InvalidDataError(
                f"Agents must come in order 0, 1, ...; agent {agent} was given after {max(self.last_agent, 0)}."
            )
        ends = np.full(len(array), array.shape[1]) if lengths is None else np.asarray(lengths, dtype=np.int64)
        if ends.shape != (len(array),) or (ends < 1).any() or (ends > array.shape[1]).any():
            raise InvalidDataError(
                f"There must be one length in 1..{array.shape[1]} for each of the {len(array)} trajectories; lengths "
                f"of shape {ends.shape} from {ends.min(initial=0)} to {ends.max(initial=0)} were given."
            )
        over = np.arange(array.shape[1]) >= ends[:, None]
        if over.any():  # what lies beyond a trajectory's end is no observation
            array = array.copy()
            array[over] = 0
        if not len(array):
            return
        self.last_agent = agent
        with told_plainly(self.path, "dataset"):
            self._append(agent, array, ends)

    def __enter__(self) -> DatasetWriter:
        with told_plainly(self.path, "dataset"), ExitStack() as begun:
            self.part = begun.enter_context(self._room())
            self._begin()
            self._begun = begun.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with told_plainly(self.path, "dataset"):
                self._end()
            if kind is None and self.last_agent < 1:
                raise InvalidDataError(
                    f"There must be trajectories of at least two agents; those of {self.last_agent + 1} were given."
                )
        except Exception as failed:
            self._begun.__exit__(type(failed), failed, failed.__traceback__)
            if kind is None:  # else the first error is the one to tell
                raise
        else:
            with told_plainly(self.path, "dataset"):
                self._begun.__exit__(kind, error, trace)

    def _room(self) -> AbstractContextManager[Path]:
        """A temporary name to write to, which gets its own at the end."""
        return replacing(self.path, "dataset")

    @abstractmethod
    def _begin(self) -> None:
        """Create `self.part`."""

    @abstractmethod
    def _append(self, agent: int, x: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        """Write one block."""

    @abstractmethod
    def _end(self) -> None:
        """Write what is still held, and close."""


def save_dataset(tau: TrajectoryDataset, path: str | os.PathLike[str]) -> None:
    """tau as one HDF5 file where the name ends in .h5 or .hdf5, else as a folder of NPZ shards."""
    write = write_hdf5 if target("The dataset", path).suffix in HDF5_SUFFIXES else write_shards
    write(tau, path)


def write_hdf5(tau: TrajectoryDataset, path: str | os.PathLike[str]) -> None:
    """tau as one HDF5 file, chunked by time."""
    from craftrl.data.hdf5 import Hdf5Writer

    notes = {} if tau.names == tuple(range(tau.K)) else {"agents": [str(name) for name in tau.names]}
    _copy(tau, Hdf5Writer(path, tau.H, tau.obs_shape, tau.dtype, notes))


def write_shards(tau: TrajectoryDataset, path: str | os.PathLike[str]) -> None:
    """tau as a folder of NPZ shards."""
    from craftrl.data.shards import ShardWriter

    _copy(tau, ShardWriter(path, tau.H, tau.obs_shape, tau.dtype))


def _copy(tau: TrajectoryDataset, writer: DatasetWriter) -> None:
    check_room(writer.path, tau.n * tau.H * writer.row_bytes)
    with writer:
        for k in range(tau.K):
            mine = tau.agent_slice(k)
            for start in range(mine.start, mine.stop, writer.block):
                stop = min(start + writer.block, mine.stop)
                x = np.stack([tau.steps.read(step, start, stop) for step in range(tau.H)])
                writer.append(k, np.moveaxis(x, 0, 1), tau.lengths[start:stop])


def check_room(path: Place, needed: int) -> None:
    """Raise before writing what cannot fit. A store has room; an HDF5 file is made in the temporary folder first."""
    if isinstance(path, Remote):
        if path.suffix not in HDF5_SUFFIXES:
            return
        folder = Path(tempfile.gettempdir())
    else:
        folder = next(p for p in path.absolute().parents if p.exists())
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise CraftError(
            f"There must be room for the dataset; {path} needs {_in_units(needed)} and {_in_units(free)} are free; "
            "free some space or choose another place."
        )


def _in_units(n_bytes: int) -> str:
    """In the largest unit of which there is one: small disks fill up as well."""
    name, size = next((unit for unit in UNITS if n_bytes >= unit[1]), UNITS[-1])
    return f"{n_bytes / size:.2f} {name}"


def open_dataset(path: str | os.PathLike[str]) -> TrajectoryDataset:
    """A dataset on disk or in a store, an HDF5 file or a folder of shards; only labels and lengths are loaded."""
    where = source("The dataset", path)
    if not where.exists():
        raise InvalidDataError(f"There must be a dataset at {where}; nothing is there; check the name.")
    if where.is_dir():
        from craftrl.data.shards import open_shards

        return TrajectoryDataset(*open_shards(where))
    from craftrl.data.hdf5 import open_hdf5, read_notes

    return TrajectoryDataset(*open_hdf5(where), names=read_notes(where).get("agents"))
