"""Data is a list of parts, and a count is a sum over parts: here a list of one, on a cluster one for each core.

Whoever counts says what, as a function of one part's bit planes; where the parts lie makes no difference to any sum.
Labels of trajectories are plain arrays of the whole dataset, and are cut to each part's trajectories on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from craftrl.core.labels import Labels
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.packing import Packed, Share, View, Words

__all__ = ["Parts", "rows_of"]

Pack = Callable[[Share, int], Words]
Count = TypeVar("Count")


class Parts:
    """All trajectories of a dataset, packed here in one part."""

    def __init__(self, tau: TrajectoryDataset, pack: Pack) -> None:
        self.n = tau.n
        self.rows: Sequence[NDArray[np.int64] | slice] = [slice(None)]
        self._here = Packed(Share.of(tau), pack)

    def total(self, count: Callable[..., Count], *args: Any, label: Labels | None = None) -> Count:
        """The sum over all parts of count(part, *args), or of count(part, *args, its rows of label)."""
        return reduce(_add, self.each(count, *args, label=label))

    def values(self, view: View) -> NDArray[np.int16]:
        """One encoder's values in the order of the dataset, -1 where there is no observation: (n,)."""
        found = np.empty(self.n, dtype=np.int16)
        for rows, values in zip(self.rows, self.each(_values, view)):
            found[rows] = values
        return found

    def each(self, count: Callable[..., Count], *args: Any, label: Labels | None = None) -> Iterator[Count]:
        """What every part answers, in their order."""
        yield count(self._here, *args) if label is None else count(self._here, *args, label)


def rows_of(tau: TrajectoryDataset, number: int, out_of: int) -> NDArray[np.int64]:
    """The trajectories of a part, as numbers within the whole dataset."""
    begin = [tau.agent_slice(k).start for k in range(tau.K)]
    return np.concatenate(
        [b + np.arange(number * int(n) // out_of, (number + 1) * int(n) // out_of) for b, n in zip(begin, tau.counts)]
    )


def _values(part: Packed, view: View) -> NDArray[np.int16]:
    from craftrl.engine.kernels import unpack_values

    values = np.empty(len(part.share.lengths), dtype=np.int16)
    unpack_values(part.planes(view)[:, 0], part.present(view), part.share.counts, part.segments, values)
    return values


def _add(a: Any, b: Any) -> Any:
    return tuple(map(_add, a, b)) if isinstance(a, tuple) else add(a, b)
