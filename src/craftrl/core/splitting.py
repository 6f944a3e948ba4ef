"""Clusters that hold two successors, taken apart by how these go with other predecessors and with what follows them.

Line 17 reads the successors of s_pred off f_h beside s_pred alone. Where f_h is learned from little data, two of them
may come out too close to be told apart there. Beside other predecessors they seldom do: f_h depends on x_{h+1} through
its state alone, so the *profile* of x_{h+1}, its log-odds beside every state of h, is the same for all observations of
one state, and two states have two profiles. A cluster whose profiles are of two kinds is therefore two clusters.

Beside a state that never leads there, the log-odds are a guess, and may depend on anything. So a predecessor has a say
only if trajectories do come from it to observations of one of the two kinds.

f_{h+1}, too, depends on x_{h+1} through its state alone. So a profile goes on with the log-odds of x_{h+1} beside a few
observations of h+2, where the oracle gives them. Which of those can follow is not known yet, so all have a say.

Paper: Lines 17-21, for log-odds that scatter
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from craftrl.arrays import Bools, Floats, Ints
from craftrl.core.clusters import PairClusters
from craftrl.core.learned import Profiles
from craftrl.core.trace import Cluster

__all__ = ["split_by_profile"]

# Distance of two kinds, in their own deviation; the halves of a normal distribution have 2.6, of an even one 3.5.
APART = 4.0
LEAST_SHARE = 0.1  # of a cluster that makes a kind of its own: what is rarer may be strays
LEAST_ROWS = 10  # the same in observations; and how many of a predecessor's give it a say
CORE = 0.9  # share of a kind's own observations that lie as near to its mean as another's must to be of it


def split_by_profile(found: PairClusters, profiles: Profiles, gap: float) -> PairClusters:
    """The same clusters, those with profiles of several kinds taken apart.

    Two kinds differ by `gap` or more beside something that has a say: what may follow, their own predecessor, and those
    that lead to either. Rows of no cluster may be NaN.
    """
    values, s_pred = profiles.values, np.array([c.s_pred for c in found.clusters], dtype=np.int64)

    def leads_to(kind: Ints) -> Bools:
        """Which predecessors (S,) have observations of this kind among their successors."""
        distance = np.linalg.norm((values - values[kind].mean(axis=0)).reshape(len(values), -1), axis=1)
        near = (found.cluster >= 0) & (distance <= np.quantile(distance[kind], CORE))
        return np.bincount(s_pred[found.cluster[near]], minlength=profiles.n_before) >= LEAST_ROWS

    def kinds(rows: Ints, own: int) -> list[Ints]:
        """Rows of one kind each: halved along the main axis, again and again, as long as the halves stand apart."""
        if len(rows) < 2 * LEAST_ROWS:
            return [rows]
        centred = values[rows].reshape(len(rows), -1)
        centred = centred - centred.mean(axis=0)
        axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        along = centred @ (axis * np.sign(axis[np.abs(axis).argmax()]))  # either sign would do: always the same
        border = _border(np.sort(along))
        if border is None:
            return [rows]
        low, high = rows[along <= border], rows[along > border]
        has_say = np.ones(values.shape[1], dtype=bool)
        has_say[: profiles.n_before] = leads_to(low) | leads_to(high)
        has_say[own] = True
        if np.abs(values[low].mean(axis=0) - values[high].mean(axis=0))[has_say].max() < gap:
            return [rows]
        return kinds(low, own) + kinds(high, own)

    cluster = np.full_like(found.cluster, -1)
    clusters: list[Cluster] = []
    order = np.argsort(found.cluster, kind="stable")
    ends = np.searchsorted(found.cluster[order], np.arange(len(found.clusters) + 1))
    for whole, first, last in zip(found.clusters, ends, ends[1:]):
        for rows in kinds(order[first:last], whole.s_pred):
            cluster[rows] = len(clusters)
            clusters.append(replace(whole, size=len(rows)))
    return replace(found, cluster=cluster, clusters=tuple(clusters))


def _border(value: Floats) -> float | None:
    """The last value of the lower of two parts of sorted values that vary least; None where they do not stand apart."""
    m = len(value)
    low = np.arange(1, m)
    sums, squares = np.cumsum(value), np.cumsum(value**2)
    mean = np.stack([sums[:-1] / low, (sums[-1] - sums[:-1]) / (m - low)])
    variance = np.stack([squares[:-1] / low, (squares[-1] - squares[:-1]) / (m - low)]) - mean**2
    cut = int((low * variance[0] + (m - low) * variance[1]).argmin())
    deviation = np.sqrt(max(float(variance[:, cut].mean()), 0.0))
    rarer = min(cut + 1, m - cut - 1)
    apart = value[cut] < value[cut + 1] and mean[1, cut] - mean[0, cut] >= APART * deviation
    return float(value[cut]) if apart and rarer >= max(LEAST_SHARE * m, LEAST_ROWS) else None
