"""Clusters that hold two successors, taken apart by how these go with other predecessors.

Line 17 reads the successors of s_pred off f_h beside s_pred alone. Where f_h is learned from little data, two of them
may come out too close to be told apart there. Beside other predecessors they seldom do: f_h depends on x_{h+1} through
its state alone, so the *profile* of x_{h+1}, its values beside every state of h, is the same for all observations of one
state, and two states have two profiles. A cluster whose profiles are of two kinds is therefore two clusters.

Paper: Lines 17-21, for log-odds that scatter
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import FoundCluster, PairClusters

__all__ = ["split_by_profile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
APART = 4.0  # distance of two kinds, in their own deviation; the halves of a normal distribution have 2.6, of an even 3.5
LEAST_SHARE = 0.1  # of a cluster that makes a kind of its own: what is rarer may be strays
LEAST_ROWS = 10  # the same, in observations


def split_by_profile(found: PairClusters, profiles: Floats) -> PairClusters:
    """The same clusters, those with profiles (n, D) of several kinds taken apart; rows of no cluster may be NaN."""
    cluster = np.full_like(found.cluster, -1)
    clusters: list[FoundCluster] = []
    order = np.argsort(found.cluster, kind="stable")
    ends = np.searchsorted(found.cluster[order], np.arange(len(found.clusters) + 1))
    for whole, first, last in zip(found.clusters, ends, ends[1:]):
        for rows in _kinds(order[first:last], profiles):
            cluster[rows] = len(clusters)
            clusters.append(replace(whole, size=len(rows)))
    return replace(found, cluster=cluster, clusters=tuple(clusters))


def _kinds(rows: Ints, profiles: Floats) -> list[Ints]:
    """Rows whose profiles are of one kind each: halved along the main axis, again and again, as long as a gap shows."""
    if len(rows) < 2 * LEAST_ROWS:
        return [rows]
    centred = profiles[rows] - profiles[rows].mean(axis=0)
    axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    axis = axis * (1 if axis[np.abs(axis).argmax()] > 0 else -1)  # either sign is an eigenvector's: take one
    along = centred @ axis
    border = _border(np.sort(along))
    if border is None:
        return [rows]
    return _kinds(rows[along <= border], profiles) + _kinds(rows[along > border], profiles)


def _border(value: Floats) -> float | None:
    """Between the two parts of sorted values that vary least; None where they do not stand apart."""
    m = len(value)
    low = np.arange(1, m)
    sums, squares = np.cumsum(value), np.cumsum(value**2)
    mean = np.stack([sums[:-1] / low, (sums[-1] - sums[:-1]) / (m - low)])
    variance = np.stack([squares[:-1] / low, (squares[-1] - squares[:-1]) / (m - low)]) - mean**2
    cut = int((low * variance[0] + (m - low) * variance[1]).argmin())
    deviation = np.sqrt(max(float(variance[:, cut].mean()), 0.0))
    rarer = min(cut + 1, m - cut - 1)
    apart = mean[1, cut] - mean[0, cut] > APART * deviation + 1e-6 * np.abs(value).max(initial=0.0)
    if not apart or rarer < max(LEAST_SHARE * m, LEAST_ROWS):
        return None
    return float(value[cut] + value[cut + 1]) / 2
