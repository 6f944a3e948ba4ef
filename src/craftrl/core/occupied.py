"""Clusters among occupied bins alone: with K agents a bin has 3^(K-1) neighbours, and hardly any of them is occupied.

The same rules as `clusters.find_clusters` and `valleys.Valleys`, bin for bin, in time that grows with the number of
occupied bins and agents instead of the number of bins. Occupied bins (m, K-1) come in lexicographic order, as
`numpy.unique` has them, and distances are the largest difference along any axis.

Paper: Algorithm 2, Lines 17-21 and 39-43, for more than two agents
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["near_pairs", "neighbours", "scan_occupied"]

Ints = NDArray[np.integer]


def near_pairs(bins: Ints, distance: int) -> NDArray[np.int64]:
    """Which bins (m, K-1) lie within a distance of one another: int (pairs, 2), each pair once, the lower first."""
    if len(bins) < 2:
        return np.empty((0, 2), dtype=np.int64)
    if bins.shape[1] == 1:  # ascending along the only axis, so a bin within the distance is as few places on
        line = bins[:, 0]
        lower = [np.flatnonzero(line[k:] - line[:-k] <= distance) for k in range(1, min(distance + 1, len(line)))]
        return np.concatenate([np.stack([low, low + k], axis=1) for k, low in enumerate(lower, 1)])
    from scipy.spatial import cKDTree

    pairs: NDArray[np.int64] = cKDTree(bins).query_pairs(distance, p=np.inf, output_type="ndarray").astype(np.int64)
    return pairs


def neighbours(bins: Ints, distance: int = 1) -> list[NDArray[np.int64]]:
    """For every bin those within a distance of it, itself included, ascending."""
    if not len(bins):
        return []
    pairs = near_pairs(bins, distance)
    own = np.arange(len(bins), dtype=np.int64)
    ends = np.concatenate([np.stack([own, own], axis=1), pairs, pairs[:, ::-1]])
    ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
    return np.split(ends[:, 1], np.searchsorted(ends[:, 0], own[1:]))


def scan_occupied(occupied: Ints, counts: Ints, threshold: float, n_pairs: int | None = None) -> NDArray[np.int64]:
    """The cluster of every occupied bin, -1 for none: what `find_clusters` says of them.

    There, a cluster may not begin at a bin beside one that is taken. Taken are the heavy bins of a cluster and all
    bins beside them, so no cluster begins within two bins of another one's heavy bins.
    """
    cluster = np.full(len(occupied), -1, dtype=np.int64)
    heavy = np.flatnonzero(counts >= threshold)
    heavy_near = [heavy[near] for near in neighbours(occupied[heavy])]
    heavy_far = [heavy[near] for near in neighbours(occupied[heavy], 2)]
    beside = dict(zip(heavy.tolist(), heavy_near))
    too_near = dict(zip(heavy.tolist(), heavy_far))
    blocked: set[int] = set()
    n_clusters = 0
    for start in heavy.tolist():
        if start in blocked:
            continue
        component = _component(start, beside, cluster)
        wide = (np.abs(occupied[:, None] - occupied[component]).max(axis=2) <= 1).any(axis=1)
        cluster[wide & (cluster < 0)] = n_clusters
        blocked.update(near for bin_ in component for near in too_near[bin_].tolist())
        n_clusters += 1
    return cluster


def _component(start: int, beside: dict[int, NDArray[np.int64]], cluster: NDArray[np.int64]) -> list[int]:
    """The heavy bins connected with one, less those that an earlier cluster took."""
    stack, component = [start], {start}
    while stack:
        for near in beside[stack.pop()].tolist():
            if near not in component and cluster[near] < 0:
                component.add(near)
                stack.append(near)
    return sorted(component)
