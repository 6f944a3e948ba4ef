"""How far apart the clusters of one predecessor lie.

Paper: Algorithm 2, Lines 2, 16-21
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind
from craftrl.core.trace import Cluster, StepTrace, Trace

__all__ = ["cluster_gaps"]

Floats = NDArray[np.float64]


def cluster_gaps(trace: Trace) -> Floats:
    """For h = 1..H, the least distance between two clusters that became states of h, in bins of Xi.

    The distance is that of their centres of mass, along the axis on which they are furthest apart; only
    successors of one predecessor are compared. The grid's step is alpha/4, so that two true successors lie at
    least four bins apart, less the error of f_h. NaN at h = 1, and where no predecessor has two clusters.

    Paper: Lines 2, 16-21
    """
    check_kind("trace", trace, Trace, "the trace_ of a fitted CRAFT")
    return np.array([np.nan, *map(_least_gap, trace.steps)])


def _least_gap(step: StepTrace) -> float:
    centres: dict[int, list[Floats]] = {}
    for cluster in step.clusters:
        centres.setdefault(cluster.s_pred, []).append(_centre(cluster, step.spectra[cluster.s_pred]))
    gaps = [float(np.abs(a - b).max()) for siblings in centres.values() for a, b in combinations(siblings, 2)]
    return min(gaps, default=np.nan)


def _centre(cluster: Cluster, spectrum: NDArray[np.int64]) -> Floats:
    """The mean bin of a cluster's pairs, one entry per axis: of the pairs within its extent along that axis."""
    margins = np.atleast_2d(spectrum)
    extents = [np.arange(first, last + 1) for first, last in cluster.bins]
    return np.array([np.average(bins, weights=margin[bins]) for bins, margin in zip(extents, margins)])
