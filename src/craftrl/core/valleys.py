"""Clusters between valleys: for log-odds that are spread about their value, as a network's are.

The paper's scan needs an empty bin between two successors and takes every heavy bin for one. That suits an f_h
from a finite class, which has few values. A network's f_h scatters about each of them: a few stray pairs bridge
two successors where little is asked of a heavy bin (small h), and a dent splits one successor in two. Here a
cluster is a hill of the spectrum instead. On a grid as coarse as the paper's (alpha/4) no smoothing is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_number
from craftrl.core.occupied import near_pairs
from craftrl.core.saved import Savable

__all__ = ["Valleys"]


@dataclass(frozen=True)
class Valleys(Savable):
    """Cluster every bin with the hill that it lies on; a stand-in for `find_clusters`.

    depth      two hills are one unless the pass between them is lower than this share of the lower summit
    min_share  a hill with less than this share of the predecessor's pairs is no cluster
    """

    depth: float = 0.6
    min_share: float = 0.03

    def __post_init__(self) -> None:
        for name in ("depth", "min_share"):
            check_number(name, getattr(self, name), "a number from 0 to 1", lambda share: 0 <= share <= 1)

    def __call__(
        self, spectrum: NDArray[np.integer], threshold: float, n_pairs: int | None = None
    ) -> NDArray[np.int64]:
        """The cluster of every bin, -1 for none, numbered in the order of the bins; as in `find_clusters`.

        `n_pairs` is the number of the predecessor's pairs; None takes those in the spectrum.
        """
        occupied = np.argwhere(spectrum > 0)
        cluster = np.full(spectrum.shape, -1, dtype=np.int64)
        cluster[tuple(occupied.T)] = self.on_occupied(occupied, spectrum[tuple(occupied.T)], threshold, n_pairs)
        return cluster

    def on_occupied(
        self,
        occupied: NDArray[np.integer],
        counts: NDArray[np.integer],
        threshold: float,
        n_pairs: int | None = None,
    ) -> NDArray[np.int64]:
        """The same for occupied bins (m, axes) in lexicographic order, with their counts (m,)."""
        near = near_pairs(occupied, 1)
        hill = self._merged(_summits(near, counts), near, counts)
        share = self.min_share * float(counts.sum() if n_pairs is None else n_pairs)
        least = max(threshold, share, 1.0)
        kept = [s for s in np.unique(hill) if counts[hill == s].sum() >= least]
        cluster = np.full(len(occupied), -1, dtype=np.int64)
        for c, s in enumerate(sorted(kept, key=lambda s: int(np.argmax(hill == s)))):
            cluster[hill == s] = c
        return cluster

    def _merged(
        self, hill: NDArray[np.int64], near: NDArray[np.int64], height: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Join hills, highest pass first, whose pass is not a valley."""
        while True:
            passes = _passes(hill, near, height)
            peak = {s: int(height[hill == s].max()) for s in np.unique(hill)}
            shallow = [(level, a, b) for (a, b), level in passes.items() if level >= self.depth * min(peak[a], peak[b])]
            if not shallow:
                return hill
            _, a, b = max(shallow)
            hill = np.where(hill == b, a, hill)


def _summits(near: NDArray[np.int64], height: NDArray[np.integer]) -> NDArray[np.int64]:
    """The summit that steepest ascent reaches from each occupied bin; of equally high neighbours, the first.

    `near` (pairs, 2) lists the bins that touch. Every bin points to the highest bin that it touches, unless it is a
    summit itself; pointers are then followed to their end.
    """
    m = len(height)
    rank = np.empty(m, dtype=np.int64)  # 0: the highest bin
    rank[np.lexsort((np.arange(m), -height))] = np.arange(m)
    best = rank.copy()
    np.minimum.at(best, near[:, 0], rank[near[:, 1]])
    np.minimum.at(best, near[:, 1], rank[near[:, 0]])
    hill = np.argsort(rank)[best]
    while (hill[hill] != hill).any():
        hill = hill[hill]
    return hill


def _passes(
    hill: NDArray[np.int64], near: NDArray[np.int64], height: NDArray[np.integer]
) -> dict[tuple[int, int], int]:
    """For each two hills that touch, the height of the highest pass between them."""
    ends = np.sort(hill[near], axis=1)
    level = height[near].min(axis=1)
    passes: dict[tuple[int, int], int] = {}
    for i in np.flatnonzero(ends[:, 0] != ends[:, 1]):
        a, b = int(ends[i, 0]), int(ends[i, 1])
        passes[a, b] = max(int(level[i]), passes.get((a, b), 0))
    return passes
