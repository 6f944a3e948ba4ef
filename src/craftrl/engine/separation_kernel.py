"""Compiled separation: starved of data, CRAFT compares hundreds of small clusters, two at a time."""

from __future__ import annotations

from craftrl.engine.compiled import compiled

__all__ = ["least_overlap"]


@compiled
def least_overlap(counts, new, state):  # type: ignore[no-untyped-def]
    """The numerator and the denominator of `losses.separation_loss`, for cluster `new` and the union of `state`.

    counts (n_clusters, |Phi|, N_s) holds every encoder's value counts on every cluster; `state` (m,) are indices.
    """
    n_new, n_state = 0, 0
    for v in range(counts.shape[2]):
        n_new += counts[new, 0, v]
        for c in state:
            n_state += counts[c, 0, v]
    least = -1
    for i in range(counts.shape[1]):
        overlap = 0
        for v in range(counts.shape[2]):
            in_state = 0
            for c in state:
                in_state += counts[c, i, v]
            overlap += min(counts[new, i, v] * n_state, in_state * n_new)
        if least < 0 or overlap < least:
            least = overlap
    return least, n_new * n_state
