"""Trajectories from disk, ahead of time: while the network works on one window of them, the next one is read.

Two windows lie side by side in one buffer, on the GPU if there is room for it and with the host otherwise. Reading and
decoding happen in background threads; what goes to a GPU passes through pinned memory, and its copies overlap with
the network's work. An error there is raised here, where the window is waited for.

Where several ranks work together, each reads and holds its own blocks of every window alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.data.ranks import ALONE, Ranks
from craftrl.data.raw import Reader
from craftrl.oracles.network.minibatches import Minibatches
from craftrl.oracles.network.order import Layout, Plan

__all__ = ["DEVICE_SHARE", "Stream", "StreamedMinibatches", "free_bytes"]

Ints = NDArray[np.integer]
DEVICE_SHARE = 0.5  # how much of a GPU's free memory observations may take; beyond that they stay with the host


def free_bytes(device: torch.device) -> int:
    """Memory of a GPU that nobody uses, and what torch keeps of it to give out again."""
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + kept


class Stream:
    """What all passes over one dataset share: where it lies, in which blocks, and for which device."""

    def __init__(
        self,
        reader: Reader,
        readers: int,
        layout: Layout,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        ranks: Ranks = ALONE,
    ) -> None:
        self.reader = reader
        self.readers = readers  # threads
        self.layout = layout
        self.shape = shape  # of one observation
        self.dtype = dtype
        self.ranks = ranks
        self.owners = layout.owners(ranks.world)  # the rank of each block
        self.peak_bytes = 0  # the most that a pass has held
        self.waited = 0.0  # seconds for which passes had nothing to give


class StreamedMinibatches(Minibatches):
    """One pass along a plan, over the given steps (from 0).

    Iterating gives the rows of each minibatch, on the device. `observations()` are those of the rows given last.
    """

    def __init__(self, stream: Stream, plan: Plan, steps: Sequence[int], device: torch.device) -> None:
        several = stream.ranks.world > 1
        owners = [stream.owners[stream.layout.blocks_of(rows)] for rows in plan.minibatches] if several else None
        super().__init__(plan.minibatches, stream.ranks, owners)
        if several:
            plan = plan.part(stream.owners == stream.ranks.rank, stream.layout)
        self.stream, self.plan, self.steps, self.device = stream, plan, steps, device
        self.rows: Tensor | None = None
        sizes = [stream.layout.sizes(blocks) for blocks in plan.windows]
        self.half = max((int(size.sum()) for size in sizes), default=0)  # trajectories in one of the two windows
        self.place = np.full(len(stream.layout.agent), -1)  # where each block begins in the buffer
        for w, (blocks, size) in enumerate(zip(plan.windows, sizes)):
            self.place[blocks] = (w % 2) * self.half + np.cumsum(size) - size
        self.longest = max((int(size.max()) for size in sizes), default=0)

    def __enter__(self) -> StreamedMinibatches:
        stream = self.stream
        self.buffer = self._new_buffer((len(self.steps), 2 * self.half, *stream.shape))
        self.copies = torch.cuda.Stream(self.device) if self.buffer.is_cuda else None
        rooms = [_Staging(self) for _ in range(stream.readers)] if self.copies is not None else []
        stream.peak_bytes = max(stream.peak_bytes, self.buffer.nbytes + sum(room.x.nbytes for room in rooms))
        self.staging: SimpleQueue[_Staging] = SimpleQueue()
        for room in rooms:
            self.staging.put(room)
        self.loading: list[list[Future[None]]] = []
        self.pool = ThreadPoolExecutor(stream.readers, thread_name_prefix="craftrl-frames")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        if self.copies is not None:
            self.copies.synchronize()
        self.rows = None
        del self.buffer, self.staging, self.loading

    def __iter__(self) -> Iterator[Tensor]:
        arrived = 0
        for rows, (first, last) in zip(self.plan.minibatches, self.plan.needs):
            while len(self.loading) < min(first + 2, len(self.plan.windows)):  # whatever came before `first` is used up
                self._load(self.plan.windows[len(self.loading)])
            while arrived <= last:
                self._wait_for(self.loading[arrived])
                arrived += 1
            block = self.stream.layout.blocks_of(rows)
            slots = self.place[block] + rows - self.stream.layout.starts[block]
            self.rows = torch.from_numpy(rows).to(self.device, non_blocking=True)
            self.slots = torch.from_numpy(slots).to(self.buffer.device, non_blocking=True)
            yield self.rows

    def observations(self) -> Tensor:
        """Those of the present rows, as they are stored, on the device: shape (rows, steps, *obs)."""
        where = self.buffer.device
        step = torch.arange(len(self.steps), device=where) * (2 * self.half)
        index = (self.slots[:, None] + step).flatten()
        shape = (len(index), *self.stream.shape)
        pinned = self.device.type == "cuda" and not self.buffer.is_cuda
        x = torch.empty(shape, dtype=self.buffer.dtype, device=where, pin_memory=pinned)
        torch.index_select(self.buffer.flatten(0, 1), 0, index, out=x)
        return x.to(self.device, non_blocking=True).unflatten(0, (-1, len(self.steps)))

    def _new_buffer(self, shape: tuple[int, ...]) -> Tensor:
        n_bytes = int(np.prod(shape, dtype=np.int64)) * self.stream.dtype.itemsize
        fits = self.device.type == "cuda" and n_bytes < DEVICE_SHARE * free_bytes(self.device)
        return torch.empty(shape, dtype=self.stream.dtype, device=self.device if fits else "cpu")

    def _load(self, blocks: Ints) -> None:
        """Have a window read into its half of the buffer, once all that was asked of that half is done."""
        if self.copies is not None:
            self.copies.wait_stream(torch.cuda.current_stream(self.device))
        self.loading.append([self.pool.submit(self._read, int(block)) for block in blocks])

    def _wait_for(self, window: list[Future[None]]) -> None:
        begun = time.perf_counter()
        for block in window:
            block.result()
        self.stream.waited += time.perf_counter() - begun
        if self.copies is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.copies)

    def _read(self, block: int) -> None:
        """One block; runs in a background thread."""
        start, stop = self.stream.layout.starts[block : block + 2].tolist()
        target = self.buffer[:, self.place[block] : self.place[block] + stop - start]
        if self.copies is None:
            for step, x in zip(self.steps, target):
                self.stream.reader.read_into(step, start, x.numpy())
            return
        room = self.staging.get()
        try:
            room.free.synchronize()
            for step, x, through in zip(self.steps, target, room.x[:, : stop - start]):
                self.stream.reader.read_into(step, start, through.numpy())
                with torch.cuda.stream(self.copies):
                    x.copy_(through, non_blocking=True)
            room.free.record(self.copies)
        finally:
            self.staging.put(room)


class _Staging:
    """Pinned memory for one block on its way to a GPU, and when the last copy out of it is over."""

    def __init__(self, of: StreamedMinibatches) -> None:
        shape = (len(of.steps), of.longest, *of.stream.shape)
        self.x = torch.empty(shape, dtype=of.stream.dtype, pin_memory=True)
        self.free = torch.cuda.Event()
