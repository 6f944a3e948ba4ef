"""Observations as the networks see them: stored as they came, turned into floats one minibatch at a time."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.data.dataset import ArraySteps, TrajectoryDataset
from craftrl.data.fingerprint import whole_digest
from craftrl.data.ranks import ALONE, Ranks, speaks
from craftrl.data.raw import Reader, mapped_at, memory_map
from craftrl.errors import InvalidDataError
from craftrl.oracles.network.allowance import allowed_bytes, check_room
from craftrl.oracles.network.minibatches import Feed, Minibatches
from craftrl.oracles.network.order import ENOUGH, Layout
from craftrl.oracles.network.parts import PARTS, at_once, parts_of
from craftrl.oracles.network.process_group import ranks_here
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.side_by_side import may_be_apart
from craftrl.oracles.network.streaming import DEVICE_SHARE, Stream, StreamedMinibatches, free_bytes
from craftrl.oracles.network.trunks import Trunk

__all__ = ["Frames", "HeldFrames", "StreamedFrames", "check_observations", "open_frames", "to_input"]

Ints = NDArray[np.integer]
READERS = 4  # threads that read files; where a library decodes them, one does


def open_frames(tau: TrajectoryDataset, training: Training, ranks: Ranks = ALONE) -> Frames:
    """The observations of tau: held if they are in memory already or `training.memory` allows it, streamed if not.

    What is held, every rank holds whole; what is streamed, each reads its own part of. Which of the two, and in what
    order, does not depend on how many ranks there are.
    """
    check_observations(tau.obs_shape, tau.dtype)
    device = training.to_device()
    allowed = min(ranks.every(allowed_bytes(training.memory, device)))
    n_bytes = int(np.prod(tau.steps.shape, dtype=np.int64)) * _held_dtype(tau).itemsize
    there = all(ranks.every(_is_there_already(tau)))
    if not there and n_bytes > allowed:
        return StreamedFrames(tau, device, allowed, ranks)
    check_room(0 if there else n_bytes, ranks_here())
    return HeldFrames(tau, device, ranks)


class OneStep:
    """Network inputs for this rank's share of the observations at one step, some at a time."""

    def __init__(self, inputs: Iterator[Tensor], rows: Minibatches) -> None:
        self.inputs = inputs
        self.rows = rows

    def __iter__(self) -> Iterator[Tensor]:
        return self.inputs

    def gathered(self, values: Sequence[Tensor]) -> Tensor:
        """What was made of all observations, in their order, on every rank, from what was made of this one's share."""
        return self.rows.gathered(values)


class Frames(Feed, ABC):
    """All observations of a dataset, in minibatches of whole trajectories or by (step, trajectory).

    Images stay uint8 until they are with the network.
    """

    def __init__(self, tau: TrajectoryDataset, device: torch.device, ranks: Ranks = ALONE) -> None:
        self.tau = tau
        self.device = device
        self.ranks = ranks
        self.at_once = at_once(tau.obs_shape, device)  # observations that are encoded at once

    def data(self) -> str:
        return self.ranks.from_first(lambda: whole_digest(self.tau))

    def parts_of(self, rows: Tensor, trunk: Trunk) -> int:
        """In how many parts a minibatch of these trajectories is computed."""
        least = PARTS if may_be_apart(trunk) else 1
        return parts_of(len(rows), self.tau.H, self.tau.obs_shape, self.device, least)

    @abstractmethod
    def batch(self, step: Tensor, row: Tensor) -> Tensor:
        """Network input for observations of trajectories `row` at `step` (from 0); shape (*row, C, P, P)."""

    def trajectories(self, rows: Tensor) -> Tensor:
        """Whole trajectories (n, H, *input). Quick for rows that a pass (`shuffled`, `in_order`) has just given."""
        H = self.tau.H
        step = torch.arange(H, device=rows.device).expand(len(rows), H)
        return self.batch(step, rows[:, None].expand(len(rows), H))

    @abstractmethod
    def at(self, h: int) -> AbstractContextManager[OneStep]:
        """Network input for all observations at h, in the order of the dataset, some thousands at a time."""

    @abstractmethod
    def split(self, rows: Ints, training: Training, name: str) -> tuple[Ints, Ints]:
        """Training and held-out rows among these, the latter with the same share of every agent's."""

    def sample(self, rng: np.random.Generator, size: int = 2048) -> Tensor:
        """Network input for some observations of all steps, on the CPU."""
        ends = np.cumsum(self.tau.lengths)
        chosen = np.sort(rng.choice(ends[-1], min(size, ends[-1]), replace=False))
        row = np.searchsorted(ends, chosen, side="right")
        step = chosen - (ends - self.tau.lengths)[row]
        return self.batch(torch.from_numpy(step), torch.from_numpy(row)).cpu()


class HeldFrames(Frames):
    """Observations in memory, time first.

    A memory map stays on disk, and a minibatch reads what it needs of it. On a GPU the whole dataset is copied over
    if it takes no more than half of the free memory.
    """

    def __init__(self, tau: TrajectoryDataset, device: torch.device, ranks: Ranks = ALONE) -> None:
        super().__init__(tau, device, ranks)
        self.x = torch.from_numpy(_time_first(tau))
        if device.type == "cuda" and self.x.nbytes < DEVICE_SHARE * free_bytes(device):
            self.x = self.x.to(device)

    def batch(self, step: Tensor, row: Tensor) -> Tensor:
        where = self.x.device
        x = self.x[step.to(where), row.to(where)]
        return to_input(x.to(self.device, non_blocking=True))

    @contextmanager
    def at(self, h: int) -> Iterator[OneStep]:
        rows = self.in_order([np.arange(self.tau.n)])
        parts = torch.from_numpy(rows.own[0]).split(self.at_once)
        yield OneStep((self.batch(torch.full_like(r, h - 1), r) for r in parts if len(r)), rows)

    def split(self, rows: Ints, training: Training, name: str) -> tuple[Ints, Ints]:
        order = rows[training.rng(name).permutation(len(rows))]
        held = np.zeros(len(order), dtype=bool)
        for k in np.unique(self.tau.agent[order]):
            mine = np.flatnonzero(self.tau.agent[order] == k)
            held[mine[: min(max(1, round(training.held_out * len(mine))), len(mine) - 1)]] = True
        return order[~held], order[held]


class StreamedFrames(Frames):
    """Observations on disk, of which so many bytes are in memory at a time; a pass reads them ahead in blocks."""

    def __init__(self, tau: TrajectoryDataset, device: torch.device, memory: int, ranks: Ranks = ALONE) -> None:
        super().__init__(tau, device, ranks)
        dtype = _held_dtype(tau)
        reader = Reader(tau.steps)
        readers = 1 if reader.raw is None else READERS
        row_bytes = int(np.prod(tau.obs_shape, dtype=np.int64)) * dtype.itemsize
        blocks = Layout.within(memory, row_bytes, tau.H, tau.agent, reader.rows_together, readers)
        self._warn_of_decoding(memory, reader.rows_together, int(np.diff(blocks.starts).max()), row_bytes)
        stored = torch.from_numpy(np.empty(0, dtype)).dtype
        self.stream = Stream(reader, readers, blocks, tau.obs_shape, stored, ranks)
        self.layout = f"streamed in {len(blocks.agent)} blocks, {blocks.window} trajectories at a time"
        self._pass: StreamedMinibatches | None = None

    def shuffled(self, rows: Ints, size: int, rng: np.random.Generator) -> Minibatches:
        plan = self.stream.layout.shuffled(rows, max(1, len(rows) // size), rng)
        return self._begin(StreamedMinibatches(self.stream, plan, range(self.tau.H), self.device))

    def in_order(self, chunks: Sequence[Ints]) -> Minibatches:
        plan = self.stream.layout.in_order(np.concatenate(chunks), max(map(len, chunks)))
        return self._begin(StreamedMinibatches(self.stream, plan, range(self.tau.H), self.device))

    def trajectories(self, rows: Tensor) -> Tensor:
        if self._pass is not None and rows is self._pass.rows:
            return to_input(self._pass.observations())
        return super().trajectories(rows)

    @contextmanager
    def at(self, h: int) -> Iterator[OneStep]:
        layout = self.stream.layout
        plan = layout.in_order(np.arange(self.tau.n), self.at_once, layout.window * self.tau.H)
        with StreamedMinibatches(self.stream, plan, [h - 1], self.device) as one_step:
            inputs = (to_input(one_step.observations()[:, 0]) for rows in one_step if len(rows))
            yield OneStep(inputs, one_step)

    def batch(self, step: Tensor, row: Tensor) -> Tensor:
        """One by one from disk, in their order there: slow, and for few."""
        steps, rows = (index.flatten().cpu().numpy() for index in (step, row))
        out = np.empty((len(rows), *self.tau.obs_shape), _held_dtype(self.tau))
        for i in np.lexsort((rows, steps)):
            self.stream.reader.read_into(int(steps[i]), int(rows[i]), out[i : i + 1])
        return to_input(torch.from_numpy(out).to(self.device).unflatten(0, row.shape))

    def split(self, rows: Ints, training: Training, name: str) -> tuple[Ints, Ints]:
        return self.stream.layout.split(rows, training.held_out, training.rng(name))

    def _warn_of_decoding(self, memory: int, together: int, size: int, row_bytes: int) -> None:
        if size < min(together, self.tau.n) and speaks():
            warnings.warn(
                f"The store decodes {together} trajectories at a time, and memory = {memory} has no room for several "
                f"such blocks: each is decoded {-(-together // size)} times in a pass. Allow "
                f"{2 * ENOUGH * together * self.tau.H * row_bytes} bytes or more, or write the dataset again with "
                "TrajectoryDataset.save, which does not compress.",
                stacklevel=2,
            )

    def _begin(self, minibatches: StreamedMinibatches) -> StreamedMinibatches:
        self._pass = minibatches
        return minibatches


def to_input(x: Tensor) -> Tensor:
    """Floats with channels before rows and columns; uint8 is scaled to [0, 1], vectors stay vectors."""
    x = x.movedim(-1, -3).contiguous() if x.ndim >= 4 else x
    return x.float().div_(255) if x.dtype == torch.uint8 else x.float()


def check_observations(obs_shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Images (rows, columns, channels), uint8 or floats, or feature vectors."""
    if len(obs_shape) not in (1, 3):
        raise InvalidDataError(
            "A neural oracle needs images of shape (rows, columns, channels) or feature vectors; observations of "
            f"shape {obs_shape} were given; add a channel axis to grey images."
        )
    if len(obs_shape) == 3 and dtype != np.uint8 and dtype.kind != "f":
        raise InvalidDataError(f"Images must be uint8 or floats; {dtype} was given; convert them first.")


def _held_dtype(tau: TrajectoryDataset) -> np.dtype[Any]:
    """As what observations are held: bytes as they are, everything else as float32."""
    return np.dtype(np.uint8 if tau.dtype == np.uint8 else np.float32)


def _is_there_already(tau: TrajectoryDataset) -> bool:
    """Whether torch can share the observations with an array in memory."""
    if not isinstance(tau.steps, ArraySteps):
        return False
    array = tau.steps.array
    return array.flags.writeable and array.dtype == _held_dtype(tau) and memory_map(array) is None


def _time_first(tau: TrajectoryDataset) -> NDArray[Any]:
    """All observations (H, n, *obs) as an array that torch can share, and on disk still if it is a memory map."""
    array = tau.steps.array if isinstance(tau.steps, ArraySteps) else _gathered(tau)
    if array.dtype != np.uint8:
        array = array.astype(np.float32, copy=False)
    if array.flags.writeable:
        return array
    if (place := mapped_at(array)) is not None:
        file, offset = place
        return np.memmap(file, array.dtype, "c", offset, array.shape)  # copy on write: still on disk
    return array.copy()


def _gathered(tau: TrajectoryDataset) -> NDArray[Any]:
    """The steps of another kind of store, in memory."""
    array: NDArray[Any] = np.empty((tau.H, tau.n, *tau.obs_shape), dtype=tau.dtype)
    for h in range(1, tau.H + 1):
        for rows, x in tau.blocks(h):
            array[h - 1, rows] = x
    return array
