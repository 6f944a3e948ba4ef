"""Pairs of observations to clusters: counted by predecessor and value of f_h, clustered, and named by their cluster.

Paper: Algorithm 2, Lines 12-21
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import Clusterer, FoundCluster, clusters_in_space, clusters_on_line
from craftrl.core.labels import Labels, paired, renamed, tally

__all__ = ["PairClusters", "cluster_pairs"]


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


def cluster_pairs(
    bins: NDArray[np.integer],
    label: Labels,
    n_states: int,
    grid_size: int,
    threshold: float,
    clusterer: Clusterer,
) -> PairClusters:
    """Group the pairs (x_h, x_{h+1}) of each predecessor by their values of f_h.

    `bins` (n, K-1) holds f_h on every pair (-1: no pair), `label` (n,) the states at h (-1: unassigned). `clusterer`
    is `find_clusters`, or what stands in for it.

    Pairs are counted first, by predecessor and value; the clusters are read off the counts alone, and then say what
    the cluster of each predecessor and value is. So it makes no difference where the pairs lie.

    Paper: Lines 12-21
    """
    if bins.shape[1] == 1:
        return _cluster_on_line(bins[:, 0], label, n_states, grid_size, threshold, clusterer)
    kinds, kind = np.unique(bins, axis=0, return_inverse=True)
    none = int(len(kinds) > 0 and kinds[0, 0] < 0)  # where there is no pair, which comes first
    of_pair = paired(label, kind.reshape(-1) - none, len(kinds) - none)
    counts = tally(of_pair, n_states * (len(kinds) - none)).reshape(n_states, len(kinds) - none)
    cluster_of, found, spectra = clusters_in_space(counts, kinds[none:], grid_size, threshold, clusterer)
    return PairClusters(renamed(of_pair, cluster_of.ravel()), found, spectra)


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
    cell += bins
    cell += grid_size + 2
    counts = np.bincount(cell, minlength=(n_states + 1) * (grid_size + 1)).reshape(n_states + 1, grid_size + 1)
    spectra = np.ascontiguousarray(counts[1:, 1:])
    cluster_of, found = clusters_on_line(spectra, threshold, clusterer)
    cluster_of_cell = np.full((n_states + 1, grid_size + 1), -1, dtype=np.int64)
    cluster_of_cell[1:, 1:] = cluster_of
    return PairClusters(cluster_of_cell.ravel().take(cell), found, spectra)
