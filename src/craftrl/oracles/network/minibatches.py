"""One pass over rows in minibatches: the common shape of what is in memory and of what is read ahead from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.data.ranks import ALONE, Ranks
from craftrl.oracles.network.collectives import gather_rows

__all__ = ["Feed", "Minibatches"]

Ints = NDArray[np.integer]


class Minibatches:
    """The rows of each minibatch, one after the other; use it in a `with` statement, which ends what runs beside.

    Where several ranks work together, all of them have the same minibatches, and each iterates over its own rows of
    them: `owners` says for each minibatch whose its rows are. A rank's part may be empty.
    """

    def __init__(self, chunks: Sequence[Ints], ranks: Ranks = ALONE, owners: Sequence[Ints] | None = None) -> None:
        self.chunks = chunks
        self.ranks = ranks
        self.owners = owners
        self.own = chunks if self.owners is None else [c[o == ranks.rank] for c, o in zip(chunks, self.owners)]

    def __len__(self) -> int:
        return len(self.chunks)

    def __iter__(self) -> Iterator[Tensor]:
        return map(torch.from_numpy, self.own)

    def whole(self, i: int) -> Tensor | None:
        """All rows of minibatch i, where this rank has a part of them; None where it has all."""
        return None if self.owners is None else torch.from_numpy(self.chunks[i])

    def gathered(self, values: Sequence[Tensor]) -> Tensor:
        """Values of all rows, in the order of the minibatches, from those of this rank's own."""
        return (
            torch.cat(list(values))
            if self.owners is None
            else gather_rows(self.ranks, values, np.concatenate(self.owners))
        )

    def __enter__(self) -> Minibatches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Feed:
    """In which order training asks for rows. This one is for what lies in memory: any order is as good as another.

    Where several ranks work together, each takes an equal share of every minibatch.
    """

    layout = ""  # what the order depends on beside the seed, for checkpoints
    ranks: Ranks = ALONE

    def data(self) -> str:
        """What the rows stand for, in a few letters, for checkpoints; "" where nobody knows."""
        return ""

    def shuffled(self, rows: Ints, size: int, rng: np.random.Generator) -> Minibatches:
        """All rows in a random order, in minibatches of this size or a little more."""
        return self.in_order(np.array_split(rng.permutation(rows), max(1, len(rows) // size)))

    def in_order(self, chunks: Sequence[Ints]) -> Minibatches:
        """The rows of these chunks for reading alone; in what order and in what chunks is left to the store."""
        world = self.ranks.world
        owners = None if world == 1 else [np.arange(len(rows)) * world // max(1, len(rows)) for rows in chunks]
        return Minibatches(chunks, self.ranks, owners)
