"""Pairs of observations to clusters, which values of f_h belong to one successor; and clusters to states.

The pairs of each predecessor are counted by their value of f_h. A cluster is a run of heavy bins, widened by one bin on
either side. With K agents f_h has K - 1 values, and a run is a connected component of heavy bins in a space of K - 1
axes, of which only the occupied bins are ever held. Clusters of different predecessors that cannot be told apart are
one state.

Paper: Algorithm 2, Lines 11-45
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from craftrl.arrays import Ints
from craftrl.core.labels import Labels, paired, renamed, tally
from craftrl.core.oracle import Separation
from craftrl.core.trace import Cluster, Comparison, Extent

CHANCE_HALF = 0.5  # L(g) lies in [0, 2] and chance is 1: above 1/2 the two are not separable


@dataclass(frozen=True)
class PairClusters:
    """The clusters of one step.

    cluster   int (n,): the cluster of every trajectory's pair, -1 for none
    clusters  in scan order, predecessor by predecessor
    spectra   |pred_succ[j]| of every predecessor: int (n_states, n_xi + 1), or the margins of the spectrum along
              each of its K-1 axes, (n_states, K-1, n_xi + 1), for more than two agents
    """

    cluster: Labels
    clusters: tuple[Cluster, ...]
    spectra: Ints


def heaviness_threshold(h: int, H: int, nu: float, n: int) -> float:
    """q_thresh * (|tau_A| + |tau_B|): how many pairs make a bin heavy. h counts from 1.

    Paper: Lines 11, 19
    """
    return h * nu / (8 * H) * n


def cluster_pairs(bins: Ints, label: Labels, n_states: int, grid_size: int, threshold: float) -> PairClusters:
    """Group the pairs (x_h, x_{h+1}) of each predecessor by their values of f_h.

    `bins` (n, K-1) holds f_h on every pair (-1: no pair), `label` (n,) the states at h (-1: unassigned).

    Paper: Lines 12-21
    """
    n_axes = bins.shape[1]
    if n_axes == 1:
        values, value = np.arange(grid_size)[:, None], bins[:, 0]
    else:  # only those that occur, in lexicographic order, in which no pair at all comes first
        values, value = np.unique(bins, axis=0, return_inverse=True)
        no_pair = int(len(values) > 0 and values[0, 0] < 0)
        values, value = values[no_pair:], value.reshape(-1) - no_pair
    of_pair = paired(label, value, len(values))
    counts = tally(of_pair, n_states * len(values)).reshape(n_states, len(values))
    cluster_of = np.full(counts.shape, -1, dtype=np.int64)
    found: list[Cluster] = []
    for s_pred, own in enumerate(counts):
        occupied = np.flatnonzero(own)
        for members, extent in scan(values[occupied], own[occupied], threshold, grid_size):
            cluster_of[s_pred, occupied[members]] = len(found)
            found.append(Cluster(s_pred, extent, int(own[occupied[members]].sum())))
    spectra = np.zeros((n_states, n_axes, grid_size), dtype=np.int64)
    for axis in range(n_axes):
        np.add.at(spectra[:, axis].T, values[:, axis], counts.T)
    return PairClusters(renamed(of_pair, cluster_of.ravel()), tuple(found), spectra[:, 0] if n_axes == 1 else spectra)


def scan(occupied: Ints, counts: Ints, threshold: float, grid_size: int) -> list[tuple[Ints, Extent]]:
    """The paper's scan: the clusters in the order in which it meets them, the bins of each and its extent.

    Of one predecessor, occupied (m, K-1) are the bins that pairs fall into, in lexicographic order, counts (m,) how
    many, grid_size is |Xi|.

    A cluster starts at a heavy bin none of whose neighbours is taken; it is all heavy bins connected with that one,
    widened by one bin on every side, less what an earlier cluster took. For two agents that is Lines 17-21 and 39-43
    with their corner cases: the light bin between two heavy runs goes to the first, and the scan goes on two bins after
    it, so that a heavy bin right behind it cannot start a cluster and is the next one's margin.

    Paper: Lines 17-21, 39-43
    """
    heavy = counts >= threshold
    taken, blocked = np.zeros((2, len(counts)), dtype=bool)
    found: list[tuple[Ints, Extent]] = []
    for start in np.flatnonzero(heavy).tolist():
        if blocked[start]:
            continue
        core, wide, around = np.zeros((3, len(counts)), dtype=bool)
        core[start] = True
        stack = [start]
        while stack:
            distance = np.abs(occupied - occupied[stack.pop()]).max(axis=1)
            beside = distance <= 1
            wide |= beside
            around |= distance <= 2
            new = beside & heavy & ~taken & ~core
            core |= new
            stack += np.flatnonzero(new).tolist()
        members = np.flatnonzero(wide & ~taken)
        able = occupied[core & ~blocked]  # to start a cluster; one that is not is a margin, which has none of its own
        covered = np.concatenate([able - 1, able + 1, occupied[members]]).clip(0, grid_size - 1)
        found.append((members, tuple(zip(covered.min(axis=0).tolist(), covered.max(axis=0).tolist()))))
        taken |= wide
        blocked |= around
    return found


def merge_clusters(predecessors: Sequence[int], separation: Separation) -> tuple[Labels, tuple[Comparison, ...]]:
    """The state of h+1 that each cluster is part of, and every comparison made on the way.

    `predecessors[c]` is s_pred of cluster c; clusters come in the order of the scan, predecessor by predecessor.
    A cluster joins the first state that no cluster of its own predecessor has joined and from which it cannot be
    told apart. New states wait until their predecessor is done: two successors of one predecessor differ.

    Paper: Lines 12-15, 22-45
    """
    states: list[list[int]] = []
    comparisons: list[Comparison] = []
    for s_pred in sorted(set(predecessors)):
        merged_already: set[int] = set()
        new_states: list[list[int]] = []
        for c in (c for c, pred in enumerate(predecessors) if pred == s_pred):
            for s, members in enumerate(states):
                if s in merged_already:
                    continue
                loss = float(separation(c, members))
                merged = loss > CHANCE_HALF
                comparisons.append(Comparison(cluster=c, state=s, loss=loss, merged=merged))
                if merged:
                    members.append(c)
                    merged_already.add(s)
                    break
            else:
                new_states.append([c])
        states += new_states
    state_of = np.empty(len(predecessors), dtype=np.int64)
    for s, members in enumerate(states):
        state_of[members] = s
    return state_of, tuple(comparisons)
