"""One pass over rows in minibatches, and in which order training asks for rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.data.ranks import ALONE, Ranks
from craftrl.oracles.network.collectives import gather_rows

__all__ = ["Feed", "Minibatches"]

Ints = NDArray[np.integer]


class Minibatches:
    """The rows of each minibatch, one after the other.

    Where several ranks work together, all of them have the same minibatches, and each iterates over its own rows of
    them: `owners` says for each minibatch whose its rows are. A rank's part may be empty.
    """

    def __init__(self, chunks: Sequence[Ints], ranks: Ranks = ALONE, owners: Sequence[Ints] | None = None) -> None:
        self.chunks = chunks
        self.ranks = ranks
        self.owners = owners
        self.own = chunks if owners is None else [c[o == ranks.rank] for c, o in zip(chunks, owners)]

    def __len__(self) -> int:
        return len(self.chunks)

    def __iter__(self) -> Iterator[Tensor]:
        return map(torch.from_numpy, self.own)

    def whole(self, i: int) -> Tensor | None:
        """All rows of minibatch i, where this rank has a part of them; None where it has all."""
        return None if self.owners is None else torch.from_numpy(self.chunks[i])

    def gathered(self, values: Sequence[Tensor]) -> Tensor:
        """Values of all rows, in the order of the minibatches, from those of this rank's own."""
        if self.owners is None:
            return torch.cat(list(values))
        return gather_rows(self.ranks, values, np.concatenate(self.owners))


class Feed:
    """Rows in a random order, in minibatches. Where several ranks work together, each takes an equal share of each."""

    ranks: Ranks = ALONE

    def data(self) -> str:
        """What the rows stand for, in a few letters, for checkpoints; "" where nobody knows."""
        return ""

    def shuffled(self, rows: Ints, size: int, rng: np.random.Generator) -> Minibatches:
        """All rows in a random order, in minibatches of this size or a little more."""
        return self.in_order(np.array_split(rng.permutation(rows), max(1, len(rows) // size)))

    def in_order(self, chunks: Sequence[Ints]) -> Minibatches:
        """The rows of these chunks, in their order."""
        world = self.ranks.world
        owners = None if world == 1 else [np.arange(len(rows)) * world // max(1, len(rows)) for rows in chunks]
        return Minibatches(chunks, self.ranks, owners)
