"""One pass over rows in minibatches: the common shape of what is in memory and of what is read ahead from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Feed", "Minibatches"]

Ints = NDArray[np.integer]


class Minibatches:
    """The rows of each minibatch, one after the other; use it in a `with` statement, which ends what runs beside."""

    def __init__(self, chunks: Sequence[Ints]) -> None:
        self.chunks = chunks

    def __len__(self) -> int:
        return len(self.chunks)

    def __iter__(self) -> Iterator[Tensor]:
        return map(torch.from_numpy, self.chunks)

    def __enter__(self) -> Minibatches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Feed:
    """In which order training asks for rows. This one is for what lies in memory: any order is as good as another."""

    layout = ""  # what the order depends on beside the seed, for checkpoints

    def shuffled(self, rows: Ints, size: int, rng: np.random.Generator) -> Minibatches:
        """All rows in a random order, in minibatches of this size or a little more."""
        return Minibatches(np.array_split(rng.permutation(rows), max(1, len(rows) // size)))

    def in_order(self, chunks: Sequence[Ints]) -> Minibatches:
        """The rows of these chunks for reading alone; in what order and in what chunks is left to the store."""
        return Minibatches(chunks)
