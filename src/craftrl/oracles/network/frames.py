"""Observations as the networks see them: stored as they came, turned into floats one minibatch at a time.

A dataset goes to a GPU if there is room for it. Otherwise each minibatch reads its trajectories, from arrays or files;
of files, the next minibatches are read while the network works on one. The order of minibatches depends on neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import ALONE, Ranks
from craftrl.errors import InvalidDataError
from craftrl.oracles.network.allowance import allowed_bytes
from craftrl.oracles.network.minibatches import Feed, Minibatches
from craftrl.oracles.network.parts import PARTS, at_once, parts_of
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.side_by_side import may_be_apart
from craftrl.oracles.network.trunks import Trunk

__all__ = ["Frames", "OneStep", "check_observations", "to_input"]

Ints = NDArray[np.integer]
DEVICE_SHARE = 0.5  # how much of a GPU's free memory observations may take; beyond that they stay with the host
AHEAD, READERS = 8, 8  # minibatches of files that are read ahead, and threads that read them


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


class Frames(Feed):
    """All observations of a dataset, in minibatches of whole trajectories, or of all trajectories at one step.

    Images stay uint8 until they are with the network.
    """

    def __init__(self, tau: TrajectoryDataset, training: Training, ranks: Ranks = ALONE) -> None:
        check_observations(tau.obs_shape, tau.dtype)
        self.tau = tau
        self.device = device = training.to_device()
        self.ranks = ranks
        self.at_once = at_once(tau.obs_shape, device)  # observations that are encoded at once
        self.dtype = torch.uint8 if tau.dtype == np.uint8 else torch.float32
        self._x: Tensor | None = None  # (n, H, *obs) on a GPU
        self._ready: tuple[Tensor, Tensor] | None = None  # rows that were read ahead, and their observations
        n_bytes = tau.n * tau.H * int(np.prod(tau.obs_shape, dtype=np.int64)) * self.dtype.itemsize
        if device.type == "cuda" and n_bytes <= min(allowed_bytes(training.memory, device), _free_bytes(device)):
            self._x = torch.empty((tau.n, tau.H, *tau.obs_shape), dtype=self.dtype, device=device)
            for rows, x in tau.blocks():
                self._x[rows] = _tensor(x).to(device, self.dtype)

    def data(self) -> str:
        return self.ranks.from_first(self.tau.digest)

    def parts_of(self, rows: Tensor, trunk: Trunk) -> int:
        """In how many parts a minibatch of these trajectories is computed."""
        least = PARTS if may_be_apart(trunk) else 1
        return parts_of(len(rows), self.tau.H, self.tau.obs_shape, self.device, least)

    def trajectories(self, rows: Tensor) -> Tensor:
        """Whole trajectories (n, H, *input). Quick for rows that a pass (`shuffled`, `in_order`) has just given."""
        if self._x is not None:
            return to_input(self._x[rows])
        if self._ready is not None and rows is self._ready[0]:
            x = self._ready[1]
        else:
            x = _tensor(self.tau.rows(rows.cpu().numpy()))
        return to_input(x.to(self.device, non_blocking=True))

    @contextmanager
    def at(self, h: int) -> Iterator[OneStep]:
        """Network input for all observations at h, in the order of the dataset, some thousands at a time."""
        rows = super().in_order([np.arange(self.tau.n)])
        parts = (rows.own[0][i : i + self.at_once] for i in range(0, len(rows.own[0]), self.at_once))
        yield OneStep((self._at(h, part) for part in parts), rows)

    def _at(self, h: int, rows: Ints) -> Tensor:
        if self._x is not None:
            return to_input(self._x[torch.from_numpy(rows).to(self.device), h - 1])
        return to_input(_tensor(self.tau.at(h, rows)).to(self.device))

    def sample(self, rng: np.random.Generator, size: int = 2048) -> Tensor:
        """Network input for some observations of all steps, on the CPU."""
        ends = np.cumsum(self.tau.lengths)
        chosen = np.sort(rng.choice(ends[-1], min(size, ends[-1]), replace=False))
        row = np.searchsorted(ends, chosen, side="right")
        step = chosen - (ends - self.tau.lengths)[row]
        return to_input(_tensor(np.stack([self.tau.episode(i)[j] for i, j in zip(row.tolist(), step.tolist())])))

    def split(self, rows: Ints, training: Training, name: str) -> tuple[Ints, Ints]:
        """Training and held-out rows among these, the latter with the same share of every agent's."""
        order = rows[training.rng(name).permutation(len(rows))]
        held = np.zeros(len(order), dtype=bool)
        for k in np.unique(self.tau.agent[order]):
            mine = np.flatnonzero(self.tau.agent[order] == k)
            held[mine[: min(max(1, round(training.held_out * len(mine))), len(mine) - 1)]] = True
        return order[~held], order[held]

    def in_order(self, chunks: Sequence[Ints]) -> Minibatches:
        plain = super().in_order(chunks)
        waits = self._x is None and (self.device.type == "cuda" or not self.tau.frames.in_memory)
        return _ReadAhead(plain, self) if waits else plain


class _ReadAhead(Minibatches):
    """The same minibatches; while one is computed, the next ones are read by other threads."""

    def __init__(self, plain: Minibatches, frames: Frames) -> None:
        super().__init__(plain.chunks, plain.ranks, plain.owners)
        self.frames = frames

    def __iter__(self) -> Iterator[Tensor]:
        def read(rows: Ints) -> Tensor:
            x = _tensor(self.frames.tau.rows(rows))
            return x.pin_memory() if self.frames.device.type == "cuda" else x

        with ThreadPoolExecutor(READERS) as pool:
            coming = deque(pool.submit(read, rows) for rows in self.own[:AHEAD])
            try:
                for i, rows in enumerate(self.own):
                    x = coming.popleft().result()
                    if i + AHEAD < len(self.own):
                        coming.append(pool.submit(read, self.own[i + AHEAD]))
                    index = torch.from_numpy(rows).to(self.frames.device)
                    self.frames._ready = index, x
                    yield index
            finally:
                self.frames._ready = None
                for future in coming:
                    future.cancel()


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


def _tensor(x: NDArray[Any]) -> Tensor:
    """A tensor of what torch knows: bytes as they are, everything else as float32; files are not written through it."""
    x = x if x.dtype == np.uint8 else x.astype(np.float32, copy=False)
    return torch.from_numpy(x if x.flags.writeable else x.copy())


def _free_bytes(device: torch.device) -> float:
    """What observations may take of a GPU: of memory that nobody uses, or that torch keeps to give out again."""
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return DEVICE_SHARE * (torch.cuda.mem_get_info(device)[0] + kept)
