"""Data is a list of parts, and a count is a sum over parts: here a list of one, on a cluster one for each core.

Whoever counts says what, as a function of one part's bit planes; where the parts lie makes no difference to any sum.
Labels of trajectories are plain arrays of the whole dataset, and are cut to each part's trajectories on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from craftrl.core.labels import Labels
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.packing import Pack, Part, View

__all__ = ["Parts"]

Answer = TypeVar("Answer")


class Parts:
    """All trajectories of a dataset, packed here in one part."""

    def __init__(self, tau: TrajectoryDataset, pack: Pack) -> None:
        self.n = tau.n
        self.rows: Sequence[NDArray[np.int64] | slice] = [slice(None)]
        self._part = Part(tau).pack(pack)

    def each(self, count: Callable[..., Answer], *args: Any, label: Labels | None = None) -> Iterator[Answer]:
        """What every part answers to count(part, *args), or to count(part, *args, its rows of label), in order."""
        yield count(self._part, *args) if label is None else count(self._part, *args, label)

    def total(self, count: Callable[..., Any], *args: Any, label: Labels | None = None) -> Any:
        """The sum of these."""
        return sum(self.each(count, *args, label=label))

    def values(self, view: View) -> NDArray[np.int16]:
        """One encoder's values in the order of the dataset, -1 where there is no observation: (n,)."""
        found = np.empty(self.n, dtype=np.int16)
        for rows, values in zip(self.rows, self.each(_values, view)):
            found[rows] = values
        return found


def _values(part: Part, view: View) -> NDArray[np.int16]:
    values = _bits(part.present(view)) - np.int16(1)
    for v, plane in enumerate(part.planes(view)[:, 0], start=1):
        values += np.int16(v) * _bits(plane)
    return np.concatenate([values[64 * word :][:n] for word, n in zip(part.segments, part.counts)])


def _bits(plane: NDArray[np.uint64]) -> NDArray[np.int16]:
    return np.unpackbits(plane.view(np.uint8), bitorder="little").astype(np.int16)
