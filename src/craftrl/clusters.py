"""Heavy bins to clusters: which values of f_h belong to one successor.

Paper: Algorithm 2, Lines 16-21 and 39-43
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clusterer", "FoundCluster", "PairClusters", "cluster_pairs", "find_clusters", "heaviness_threshold"]

# From one predecessor's spectrum and the heaviness threshold to the cluster of every bin, -1 for none.
Clusterer = Callable[[NDArray[np.integer], float], NDArray[np.int64]]


@dataclass(frozen=True)
class FoundCluster:
    """One D_new_pairs: whose successors, which bins (first, last) along each axis, how many pairs."""

    s_pred: int
    bins: tuple[tuple[int, int], ...]
    size: int


@dataclass(frozen=True)
class PairClusters:
    """The clusters of all predecessors at one step.

    cluster   int (n,): the cluster of every trajectory's pair, -1 for none
    clusters  in scan order, predecessor by predecessor
    spectra   int (n_states, n_xi + 1, ...): |pred_succ[j]| of every predecessor
    """

    cluster: NDArray[np.int64]
    clusters: tuple[FoundCluster, ...]
    spectra: NDArray[np.int64]


def cluster_pairs(
    bins: NDArray[np.integer],
    label: NDArray[np.integer],
    n_states: int,
    grid_size: int,
    threshold: float,
    clusterer: Clusterer,
) -> PairClusters:
    """Group the pairs (x_h, x_{h+1}) of each predecessor by their values of f_h.

    `bins` (n, K-1) holds f_h on every pair (-1: no pair), `label` (n,) the states at h (-1: unassigned). `clusterer`
    is `find_clusters`, or what stands in for it.

    Paper: Lines 12-21
    """
    shape = (grid_size,) * bins.shape[1]
    n_bins = grid_size ** bins.shape[1]
    flat = bins[:, 0] if bins.shape[1] == 1 else _flat_bins(bins, grid_size)
    # One row and one column more than there are predecessors and bins, in front: they take the -1s.
    cell = (label + 1) * (n_bins + 1) + (flat + 1)
    counts = np.bincount(cell, minlength=(n_states + 1) * (n_bins + 1)).reshape(n_states + 1, n_bins + 1)
    spectra = np.ascontiguousarray(counts[1:, 1:]).reshape(n_states, *shape)
    cluster_of_cell = np.full((n_states + 1, n_bins + 1), -1, dtype=np.int64)
    found: list[FoundCluster] = []
    for s_pred, spectrum in enumerate(spectra):
        cluster_of_bin = clusterer(spectrum, threshold)
        for c in range(int(cluster_of_bin.max()) + 1):
            where = np.nonzero(cluster_of_bin == c)
            extent = tuple((int(axis.min()), int(axis.max())) for axis in where)
            cluster_of_cell[s_pred + 1, np.ravel_multi_index(where, shape) + 1] = len(found)
            found.append(FoundCluster(s_pred, extent, int(spectrum[where].sum())))
    return PairClusters(cluster_of_cell.ravel()[cell], tuple(found), spectra)


def _flat_bins(bins: NDArray[np.integer], grid_size: int) -> NDArray[np.int64]:
    """One number for each vector of bins, -1 where there is no pair."""
    flat = bins.astype(np.int64) @ grid_size ** np.arange(bins.shape[1])[::-1]
    return np.where(bins[:, 0] < 0, -1, flat)


def heaviness_threshold(h: int, H: int, nu: float, n: int) -> float:
    """q_thresh * (|tau_A| + |tau_B|): how many pairs make a bin heavy. h counts from 1.

    Paper: Lines 11, 19
    """
    return h * nu / (8 * H) * n


def find_clusters(spectrum: NDArray[np.integer], threshold: float) -> NDArray[np.int64]:
    """The cluster of every bin, -1 for none; clusters are numbered in the order in which the scan meets them.

    `spectrum` counts the pairs of one predecessor in each bin: shape (n_xi + 1,) for two agents, and one axis more
    for each further agent.

    A cluster starts at a heavy bin none of whose neighbours is taken; it is all heavy bins connected with that
    one, widened by one bin on every side, less what an earlier cluster took. With one axis that is the paper's
    scan, its corner cases included: the light bin between two heavy runs goes to the first, the scan goes on
    two bins after it (so that a heavy bin right behind it cannot start a cluster, only be the second's
    margin), and a run may end on the last bin.

    Paper: Lines 17-21, 39-43
    """
    heavy = spectrum >= threshold
    cluster = np.full(spectrum.shape, -1, dtype=np.int64)
    n_clusters = 0
    for start in map(tuple, np.argwhere(heavy)):
        if any(cluster[bin_] >= 0 for bin_ in _neighbourhood(start, spectrum.shape)):
            continue
        stack, component = [start], {start}
        while stack:
            for bin_ in _neighbourhood(stack.pop(), spectrum.shape):
                if heavy[bin_] and cluster[bin_] < 0 and bin_ not in component:
                    component.add(bin_)
                    stack.append(bin_)
        for bin_ in component:
            for wide in _neighbourhood(bin_, spectrum.shape):
                if cluster[wide] < 0:
                    cluster[wide] = n_clusters
        n_clusters += 1
    return cluster


def _neighbourhood(bin_: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The bin and all bins next to it, diagonals included."""
    axes = [range(max(0, b - 1), min(size, b + 2)) for b, size in zip(bin_, shape)]
    return list(product(*axes))
