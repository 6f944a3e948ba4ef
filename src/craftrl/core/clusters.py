"""Pairs of observations to clusters: which values of f_h belong to one successor.

The pairs of each predecessor are counted by their value of f_h. A cluster is a run of heavy bins, widened by one bin on
either side. With K agents f_h has K - 1 values, and a run is a connected component of heavy bins in a space of K - 1
axes, of which only the occupied bins are ever held.

Paper: Algorithm 2, Lines 11-21 and 39-43
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.labels import Labels, paired, renamed, tally

__all__ = [
    "Clusterer",
    "Extent",
    "FoundCluster",
    "PairClusters",
    "cluster_pairs",
    "heaviness_threshold",
    "near",
    "scan",
]

Ints = NDArray[np.integer]
Extent = tuple[tuple[int, int], ...]  # (first, last) bin along each axis

# From the occupied bins (m, K-1) of one predecessor in lexicographic order, their counts (m,), the heaviness threshold
# and |Xi| to the clusters: the occupied bins of each, and its extent.
Clusterer = Callable[[Ints, Ints, float, int], list[tuple[NDArray[np.int64], Extent]]]


@dataclass(frozen=True)
class FoundCluster:
    """One D_new_pairs: whose successors, which bins (first, last) along each axis, how many pairs."""

    s_pred: int
    bins: Extent
    size: int


@dataclass(frozen=True)
class PairClusters:
    """The clusters of all predecessors at one step.

    cluster   int (n,): the cluster of every trajectory's pair, -1 for none
    clusters  in scan order, predecessor by predecessor
    spectra   |pred_succ[j]| of every predecessor: int (n_states, n_xi + 1), or the margins of the spectrum along
              each of its K-1 axes, (n_states, K-1, n_xi + 1), for more than two agents
    """

    cluster: Labels
    clusters: tuple[FoundCluster, ...]
    spectra: NDArray[np.int64]


def heaviness_threshold(h: int, H: int, nu: float, n: int) -> float:
    """q_thresh * (|tau_A| + |tau_B|): how many pairs make a bin heavy. h counts from 1.

    Paper: Lines 11, 19
    """
    return h * nu / (8 * H) * n


def cluster_pairs(
    bins: Ints, label: Labels, n_states: int, grid_size: int, threshold: float, clusterer: Clusterer
) -> PairClusters:
    """Group the pairs (x_h, x_{h+1}) of each predecessor by their values of f_h.

    `bins` (n, K-1) holds f_h on every pair (-1: no pair), `label` (n,) the states at h (-1: unassigned).

    Paper: Lines 12-21
    """
    values, value = _values(bins, grid_size)
    of_pair = paired(label, value, len(values))
    counts = tally(of_pair, n_states * len(values)).reshape(n_states, len(values))
    cluster_of = np.full(counts.shape, -1, dtype=np.int64)
    found: list[FoundCluster] = []
    for s_pred, own in enumerate(counts):
        occupied = np.flatnonzero(own)
        for members, extent in clusterer(values[occupied], own[occupied], threshold, grid_size):
            cluster_of[s_pred, occupied[members]] = len(found)
            found.append(FoundCluster(s_pred, extent, int(own[occupied[members]].sum())))
    spectra = np.zeros((n_states, bins.shape[1], grid_size), dtype=np.int64)
    for axis in range(bins.shape[1]):
        np.add.at(spectra[:, axis].T, values[:, axis], counts.T)
    if bins.shape[1] == 1:
        spectra = spectra[:, 0]
    return PairClusters(renamed(of_pair, cluster_of.ravel()), tuple(found), spectra)


def _values(bins: Ints, grid_size: int) -> tuple[Ints, Labels]:
    """The values (m, K-1) of f_h that occur, in lexicographic order, and which of them each pair has, -1 for none."""
    if bins.shape[1] == 1:
        return np.arange(grid_size)[:, None], bins[:, 0]
    values, value = np.unique(bins, axis=0, return_inverse=True)
    none = int(len(values) > 0 and values[0, 0] < 0)  # where there is no pair, which comes first
    return values[none:], value.reshape(-1) - none


def scan(occupied: Ints, counts: Ints, threshold: float, grid_size: int) -> list[tuple[NDArray[np.int64], Extent]]:
    """The paper's scan: its clusters in the order in which it meets them.

    A cluster starts at a heavy bin none of whose neighbours is taken; it is all heavy bins connected with that one,
    widened by one bin on every side, less what an earlier cluster took. For two agents that is Lines 17-21 and 39-43
    with their corner cases: the light bin between two heavy runs goes to the first, and the scan goes on two bins after
    it, so that a heavy bin right behind it cannot start a cluster and is the next one's margin.

    Paper: Lines 17-21, 39-43
    """
    if occupied.shape[1] == 1:
        return _scan_line(occupied[:, 0], counts >= threshold, grid_size)
    heavy = np.flatnonzero(counts >= threshold)
    beside, too_near = near(occupied, occupied[heavy], 1), near(occupied[heavy], occupied[heavy], 2)
    place = {int(bin_): i for i, bin_ in enumerate(heavy)}
    taken = np.zeros(len(occupied), dtype=bool)
    blocked = np.zeros(len(heavy), dtype=bool)
    found = []
    for start in range(len(heavy)):
        if blocked[start]:
            continue
        component, stack = {start}, [start]
        while stack:
            for bin_ in beside[stack.pop()].tolist():
                i = place.get(bin_)
                if i is not None and i not in component and not taken[bin_]:
                    component.add(i)
                    stack.append(i)
        core = sorted(component)
        wide = np.unique(np.concatenate([beside[i] for i in core]))
        members = wide[~taken[wide]]
        taken[members] = True
        blocked[np.concatenate([too_near[i] for i in core])] = True
        first, last = occupied[heavy[core]].min(axis=0), occupied[heavy[core]].max(axis=0)
        found.append(
            (members, tuple((max(int(a) - 1, 0), min(int(b) + 1, grid_size - 1)) for a, b in zip(first, last)))
        )
    return found


def _scan_line(position: Ints, heavy: NDArray[np.bool_], grid_size: int) -> list[tuple[NDArray[np.int64], Extent]]:
    """The same for two agents: j, j' and the bins from j - 1 to j' as in Lines 17-21."""
    bins = position.tolist()
    found: list[tuple[NDArray[np.int64], Extent]] = []
    j_next, n_xi = 0, grid_size - 1
    for i in np.flatnonzero(heavy).tolist():
        j = bins[i]
        if j < j_next:
            continue
        end = i
        while end + 1 < len(bins) and heavy[end + 1] and bins[end + 1] == bins[end] + 1:
            end += 1
        j_prime = min(bins[end] + 1, n_xi)
        first = max(0, j - 1)
        covered = range(np.searchsorted(position, first), np.searchsorted(position, j_prime, side="right"))
        found.append((np.array(covered, dtype=np.int64), ((first, j_prime),)))
        j_next = j_prime + 2
    return found


def near(bins: Ints, centres: Ints, distance: int) -> list[NDArray[np.int64]]:
    """For every centre the bins (m, axes) within a distance of it along every axis, ascending."""
    from scipy.spatial import cKDTree

    if not len(centres):
        return []
    found = cKDTree(bins).query_ball_point(centres, distance, p=np.inf, return_sorted=True)
    return [np.array(each, dtype=np.int64) for each in found]
