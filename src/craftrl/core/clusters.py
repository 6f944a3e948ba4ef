"""Heavy bins to clusters: which values of f_h belong to one successor.

Paper: Algorithm 2, Lines 16-21 and 39-43
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Clusterer",
    "FoundCluster",
    "PairClusters",
    "cluster_pairs",
    "find_clusters",
    "heaviness_threshold",
    "neighbourhood",
]

WHOLE_GRID = 2**14  # spectra of up to so many bins are held whole

# From a spectrum, the heaviness threshold and the number of the predecessor's pairs to the cluster of every bin, -1
# for none. The spectrum is one predecessor's, or the part of it in one box of a large grid: it may hold fewer pairs.
Clusterer = Callable[[NDArray[np.integer], float, int], NDArray[np.int64]]


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
    spectra   |pred_succ[j]| of every predecessor: int (n_states, n_xi + 1), or the margins of the spectrum along
              each of its K-1 axes, (n_states, K-1, n_xi + 1), for more than two agents
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
    on_axes = _cluster_on_line if bins.shape[1] == 1 else _cluster_in_space
    return on_axes(bins, label, n_states, grid_size, threshold, clusterer)


def _cluster_on_line(
    bins: NDArray[np.integer],
    label: NDArray[np.integer],
    n_states: int,
    grid_size: int,
    threshold: float,
    clusterer: Clusterer,
) -> PairClusters:
    """Two agents: one count for all predecessors' spectra."""
    # One row and one column more than there are predecessors and bins, in front: they take the -1s.
    cell = label * (grid_size + 1)
    cell += bins[:, 0]
    cell += grid_size + 2
    counts = np.bincount(cell, minlength=(n_states + 1) * (grid_size + 1)).reshape(n_states + 1, grid_size + 1)
    spectra = np.ascontiguousarray(counts[1:, 1:])
    cluster_of_cell = np.full((n_states + 1, grid_size + 1), -1, dtype=np.int64)
    found: list[FoundCluster] = []
    for s_pred, spectrum in enumerate(spectra):
        cluster_of_bin = clusterer(spectrum, threshold, int(spectrum.sum()))
        for c in range(int(cluster_of_bin.max()) + 1):
            covered = np.flatnonzero(cluster_of_bin == c)
            cluster_of_cell[s_pred + 1, covered + 1] = len(found)
            extent = ((int(covered[0]), int(covered[-1])),)
            found.append(FoundCluster(s_pred, extent, int(spectrum[covered].sum())))
    return PairClusters(cluster_of_cell.ravel().take(cell), tuple(found), spectra)


def _cluster_in_space(
    bins: NDArray[np.integer],
    label: NDArray[np.integer],
    n_states: int,
    grid_size: int,
    threshold: float,
    clusterer: Clusterer,
) -> PairClusters:
    """More agents: (n_xi + 1)^(K-1) bins are too many to hold, so only boxes about the occupied ones are."""
    n_axes = bins.shape[1]
    cluster = np.full(len(bins), -1, dtype=np.int64)
    spectra = np.zeros((n_states, n_axes, grid_size), dtype=np.int64)
    found: list[FoundCluster] = []
    for s_pred in range(n_states):
        mine = np.flatnonzero((label == s_pred) & (bins[:, 0] >= 0))
        for axis in range(n_axes):
            spectra[s_pred, axis] = np.bincount(bins[mine, axis], minlength=grid_size)
        occupied, which, counts = np.unique(bins[mine], axis=0, return_inverse=True, return_counts=True)
        cluster_of_bin = np.full(len(occupied), -1, dtype=np.int64)
        for some, corner, shape in _boxes(occupied.astype(np.int64), grid_size):
            local = tuple((occupied[some] - corner).T)
            spectrum = np.zeros(shape, dtype=np.int64)
            spectrum[local] = counts[some]
            of_box = clusterer(spectrum, threshold, len(mine))
            for c in range(int(of_box.max()) + 1):
                members = some[of_box[local] == c]
                cluster_of_bin[members] = len(found)
                found.append(
                    FoundCluster(s_pred, _extent(np.argwhere(of_box == c) + corner), int(counts[members].sum()))
                )
        cluster[mine] = cluster_of_bin[which.reshape(-1)]
    return PairClusters(cluster, tuple(found), spectra)


def _boxes(
    occupied: NDArray[np.int64], grid_size: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64], tuple[int, ...]]]:
    """Occupied bins (m, K-1) in boxes, each with its lowest corner and its shape: the whole grid where it is small.

    Else bins that are three or more apart go to boxes of their own: no rule for clusters looks further than
    two bins, one for the margin of either.
    """
    n_axes = occupied.shape[1]
    if grid_size**n_axes <= WHOLE_GRID:
        yield np.arange(len(occupied)), np.zeros(n_axes, dtype=np.int64), (grid_size,) * n_axes
        return
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    near = cKDTree(occupied).query_pairs(2, p=np.inf, output_type="ndarray") if len(occupied) else np.empty((0, 2), int)
    graph = coo_matrix((np.ones(len(near)), (near[:, 0], near[:, 1])), shape=(len(occupied),) * 2)
    n_groups, group = connected_components(graph, directed=False)
    for g in range(n_groups):
        some = np.flatnonzero(group == g)
        corner = np.maximum(occupied[some].min(axis=0) - 1, 0)
        end = np.minimum(occupied[some].max(axis=0) + 2, grid_size)
        yield some, corner, tuple(end - corner)


def _extent(covered: NDArray[np.integer]) -> tuple[tuple[int, int], ...]:
    """(first, last) along each axis of bins (m, K-1)."""
    return tuple((int(first), int(last)) for first, last in zip(covered.min(axis=0), covered.max(axis=0)))


def heaviness_threshold(h: int, H: int, nu: float, n: int) -> float:
    """q_thresh * (|tau_A| + |tau_B|): how many pairs make a bin heavy. h counts from 1.

    Paper: Lines 11, 19
    """
    return h * nu / (8 * H) * n


def find_clusters(spectrum: NDArray[np.integer], threshold: float, n_pairs: int | None = None) -> NDArray[np.int64]:
    """The cluster of every bin, -1 for none; clusters are numbered in the order in which the scan meets them.

    `spectrum` counts the pairs of one predecessor in each bin: shape (n_xi + 1,) for two agents, and one axis more
    for each further agent. `n_pairs` is there for other clusterers: the paper's threshold does not depend on it.

    A cluster starts at a heavy bin none of whose neighbours is taken; it is all heavy bins connected with that
    one, widened by one bin on every side, less what an earlier cluster took. With one axis that is the paper's
    scan, its corner cases included: the light bin between two heavy runs goes to the first, the scan goes on
    two bins after it (so that a heavy bin right behind it cannot start a cluster, only be the second's
    margin), and a run may end on the last bin.

    Paper: Lines 17-21, 39-43
    """
    heavy = dict.fromkeys(map(tuple, np.argwhere(spectrum >= threshold).tolist()))
    taken: dict[tuple[int, ...], int] = {}
    n_clusters = 0
    for start in heavy:
        if any(bin_ in taken for bin_ in neighbourhood(start, spectrum.shape)):
            continue
        stack, component = [start], {start}
        while stack:
            for bin_ in neighbourhood(stack.pop(), spectrum.shape):
                if bin_ in heavy and bin_ not in taken and bin_ not in component:
                    component.add(bin_)
                    stack.append(bin_)
        for bin_ in component:
            for wide in neighbourhood(bin_, spectrum.shape):
                taken.setdefault(wide, n_clusters)
        n_clusters += 1
    cluster = np.full(spectrum.shape, -1, dtype=np.int64)
    if taken:
        cluster[tuple(np.array(list(taken)).T)] = list(taken.values())
    return cluster


def neighbourhood(bin_: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The bin and all bins next to it, diagonals included."""
    axes = [range(max(0, b - 1), min(size, b + 2)) for b, size in zip(bin_, shape)]
    return list(product(*axes))
