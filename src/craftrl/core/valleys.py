"""Clusters between valleys: for log-odds that are spread about their value, as a network's are.

The paper's scan needs an empty bin between two successors and takes every heavy bin for one. That suits an f_h
from a finite class, which has few values. A network's f_h scatters about each of them: a few stray pairs bridge
two successors where little is asked of a heavy bin (small h), and a dent splits one successor in two. Here a
cluster is a hill of the spectrum instead. On a grid as coarse as the paper's (alpha/4) no smoothing is needed.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from craftrl.arrays import Ints
from craftrl.core.trace import Extent

__all__ = ["hills"]

DEPTH = 0.6  # two hills are one unless the pass between them is lower than this share of the lower summit
MIN_SHARE = 0.03  # a hill with less than this share of the predecessor's pairs is no cluster


def hills(
    occupied: Ints,
    counts: Ints,
    threshold: float,
    grid_size: int,
    depth: float = DEPTH,
    min_share: float = MIN_SHARE,
) -> list[tuple[Ints, Extent]]:
    """Every occupied bin (m, axes) with the hill that it lies on; in the place of `craftrl.core.clusters.scan`."""
    pairs = cKDTree(occupied).query_pairs(1, p=np.inf, output_type="ndarray")
    hill = _merged(_summits(pairs, counts), pairs, counts, depth)
    least = max(threshold, min_share * float(counts.sum()), 1.0)
    found: list[tuple[Ints, Extent]] = []
    for s in dict.fromkeys(hill.tolist()):
        members = np.flatnonzero(hill == s)
        if counts[members].sum() >= least:
            first, last = occupied[members].min(axis=0), occupied[members].max(axis=0)
            found.append((members, tuple((int(a), int(b)) for a, b in zip(first, last))))
    return found


def _merged(hill: Ints, pairs: Ints, height: Ints, depth: float) -> Ints:
    """Join hills, highest pass first, whose pass is not a valley."""
    while True:
        peak = {s: int(height[hill == s].max()) for s in np.unique(hill)}
        ends, level = np.sort(hill[pairs], axis=1), height[pairs].min(axis=1)
        passes: dict[tuple[int, int], int] = {}
        for i in np.flatnonzero(ends[:, 0] != ends[:, 1]):
            a, b = int(ends[i, 0]), int(ends[i, 1])
            passes[a, b] = max(int(level[i]), passes.get((a, b), 0))
        shallow = [(level, a, b) for (a, b), level in passes.items() if level >= depth * min(peak[a], peak[b])]
        if not shallow:
            return hill
        _, a, b = max(shallow)
        hill = np.where(hill == b, a, hill)


def _summits(pairs: Ints, height: Ints) -> Ints:
    """The summit that steepest ascent reaches from each occupied bin; of equally high neighbours, the first.

    `pairs` (pairs, 2) lists the bins that touch. Every bin points to the highest bin that it touches, unless it is a
    summit itself; pointers are then followed to their end.
    """
    m = len(height)
    rank = np.empty(m, dtype=np.int64)  # 0: the highest bin
    rank[np.lexsort((np.arange(m), -height))] = np.arange(m)
    best = rank.copy()
    np.minimum.at(best, pairs[:, 0], rank[pairs[:, 1]])
    np.minimum.at(best, pairs[:, 1], rank[pairs[:, 0]])
    hill = np.argsort(rank)[best]
    while (hill[hill] != hill).any():
        hill = hill[hill]
    return hill
