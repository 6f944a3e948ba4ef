"""Heavy bins to clusters: which values of f_h belong to one successor.

Paper: Algorithm 2, Lines 16-21 and 39-43
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import shown
from craftrl.core.occupied import near_pairs, scan_occupied
from craftrl.errors import CraftError, InvalidParameterError

__all__ = [
    "Clusterer",
    "FoundCluster",
    "clusters_in_space",
    "clusters_on_line",
    "find_clusters",
    "heaviness_threshold",
    "neighbourhood",
]

WHOLE_GRID = 2**14  # spectra of up to so many bins are held whole
MOST_BINS = 2**24  # of a box, where a clusterer has to be given all of them

# From a spectrum, the heaviness threshold and the number of the predecessor's pairs to the cluster of every bin, -1
# for none. The spectrum is one predecessor's, or the part of it in one box of a large grid: it may hold fewer pairs.
# With many agents there are too many bins to hold. A clusterer that is to serve there has a method
# `on_occupied(occupied, counts, threshold, n_pairs)`, which answers for the occupied bins (m, K-1) alone.
Clusterer = Callable[[NDArray[np.integer], float, int], NDArray[np.int64]]


@dataclass(frozen=True)
class FoundCluster:
    """One D_new_pairs: whose successors, which bins (first, last) along each axis, how many pairs."""

    s_pred: int
    bins: tuple[tuple[int, int], ...]
    size: int


def clusters_on_line(
    spectra: NDArray[np.int64], threshold: float, clusterer: Clusterer
) -> tuple[NDArray[np.int64], tuple[FoundCluster, ...]]:
    """The cluster of every bin of every predecessor (n_states, n_xi + 1), and all clusters."""
    cluster_of = np.full(spectra.shape, -1, dtype=np.int64)
    found: list[FoundCluster] = []
    for s_pred, spectrum in enumerate(spectra):
        cluster_of_bin = _asked(clusterer, spectrum, threshold, int(spectrum.sum()))
        for c in range(int(cluster_of_bin.max()) + 1):
            covered = np.flatnonzero(cluster_of_bin == c)
            cluster_of[s_pred, covered] = len(found)
            extent = ((int(covered[0]), int(covered[-1])),)
            found.append(FoundCluster(s_pred, extent, int(spectrum[covered].sum())))
    return cluster_of, tuple(found)


def _asked(clusterer: Clusterer, spectrum: NDArray[np.integer], threshold: float, n_pairs: int) -> NDArray[np.int64]:
    """What a clusterer answers, which may be the caller's: a cluster for every bin, or -1."""
    try:
        found = np.asarray(clusterer(spectrum, threshold, n_pairs))
    except CraftError:
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"A clusterer must take (spectrum, threshold, n_pairs); {shown(clusterer)} raised {type(error).__name__} "
            f"({error}); compare it with find_clusters."
        ) from error
    if found.shape != spectrum.shape or found.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"A clusterer must return an integer for each bin, shape {spectrum.shape}; {shown(clusterer)} returned "
            f"{found.dtype} of shape {found.shape}; compare it with find_clusters."
        )
    return found


def clusters_in_space(
    counts: NDArray[np.int64], bins: NDArray[np.integer], grid_size: int, threshold: float, clusterer: Clusterer
) -> tuple[NDArray[np.int64], tuple[FoundCluster, ...], NDArray[np.int64]]:
    """More agents: (n_xi + 1)^(K-1) bins are too many to hold, so only boxes about the occupied ones are.

    `bins` (m, K-1) are the occupied ones in lexicographic order, `counts` (n_states, m) the pairs of each predecessor
    there. Returned are the cluster of each (n_states, m), all clusters, and the margins of the spectra.
    """
    n_axes = bins.shape[1]
    cluster_of = np.full(counts.shape, -1, dtype=np.int64)
    spectra = np.zeros((len(counts), n_axes, grid_size), dtype=np.int64)
    found: list[FoundCluster] = []
    for s_pred, all_counts in enumerate(counts):
        for axis in range(n_axes):
            np.add.at(spectra[s_pred, axis], bins[:, axis], all_counts)
        mine = np.flatnonzero(all_counts)
        occupied, own, n_pairs = bins[mine], all_counts[mine], int(all_counts.sum())
        for some in _boxes(occupied.astype(np.int64), grid_size):
            of_some = _cluster_box(occupied[some], own[some], threshold, n_pairs, grid_size, clusterer)
            for c in range(int(of_some.max()) + 1):
                members = some[of_some == c]
                cluster_of[s_pred, mine[members]] = len(found)
                extent = _extent(occupied[members])
                if clusterer is find_clusters:  # its clusters have a margin of a bin, whether occupied or not
                    extent = _widened(_extent(occupied[members[own[members] >= threshold]]), grid_size)
                found.append(FoundCluster(s_pred, extent, int(own[members].sum())))
    return cluster_of, tuple(found), spectra


def _cluster_box(
    occupied: NDArray[np.integer],
    counts: NDArray[np.integer],
    threshold: float,
    n_pairs: int,
    grid_size: int,
    clusterer: Clusterer,
) -> NDArray[np.int64]:
    """The clusters of the occupied bins (m, K-1) of one box, which only clusterers that know no better see whole."""
    on_occupied = scan_occupied if clusterer is find_clusters else getattr(clusterer, "on_occupied", None)
    if on_occupied is not None:
        return np.asarray(on_occupied(occupied, counts, threshold, n_pairs))
    corner = np.maximum(occupied.min(axis=0) - 1, 0).astype(np.int64)
    shape = tuple(int(side) for side in np.minimum(occupied.max(axis=0) + 2, grid_size) - corner)
    if prod(shape) > MOST_BINS:
        raise InvalidParameterError(
            f"A clusterer without a method on_occupied must be given at most {MOST_BINS} bins; {len(shape) + 1} agents "
            f"have {prod(shape):.1e} here; take find_clusters or Valleys(), fewer agents, or larger alpha and eta."
        )
    local = tuple((occupied - corner).T)
    spectrum = np.zeros(shape, dtype=np.int64)
    spectrum[local] = counts
    return _asked(clusterer, spectrum, threshold, n_pairs)[local]


def _boxes(occupied: NDArray[np.int64], grid_size: int) -> Iterator[NDArray[np.intp]]:
    """Occupied bins (m, K-1) in groups that can be clustered one by one: all of them where the grid is small.

    Else bins that are three or more apart go to groups of their own: no rule for clusters looks further than two
    bins, one for the margin of either.
    """
    if not len(occupied):
        return
    if grid_size ** occupied.shape[1] <= WHOLE_GRID:
        yield np.arange(len(occupied))
        return
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    near = near_pairs(occupied, 2)
    graph = coo_matrix((np.ones(len(near)), (near[:, 0], near[:, 1])), shape=(len(occupied),) * 2)
    n_groups, group = connected_components(graph, directed=False)
    for g in range(n_groups):
        yield np.flatnonzero(group == g)


def _extent(covered: NDArray[np.integer]) -> tuple[tuple[int, int], ...]:
    """(first, last) along each axis of bins (m, K-1)."""
    return tuple((int(first), int(last)) for first, last in zip(covered.min(axis=0), covered.max(axis=0)))


def _widened(extent: tuple[tuple[int, int], ...], grid_size: int) -> tuple[tuple[int, int], ...]:
    return tuple((max(first - 1, 0), min(last + 1, grid_size - 1)) for first, last in extent)


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
    margin), and a run may end on the last bin. `craftrl.core.occupied.scan_occupied` does the same without the empty
    bins, for more than two agents.

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
