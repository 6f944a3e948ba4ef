"""Counts and losses of all pairs of encoders, tile by tile, on all cores.

Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) needs the counts of |Phi_h| x |Phi_{h+1}| x N_s^2 x K cells. They
are never held together: a tile of rows is counted, turned into losses and forgotten. Results depend neither on tiles
nor on threads nor on where the data lies.

Paper: Lines 9-10
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.losses import MAX_CORNERS, best_bins, softplus_table, surprise_table
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.packing import Part, Parts, View, Words
from craftrl.engine.threads import Item, Result, ordered_map, usable_threads

TILE_BYTES = 8 * 2**20  # what one thread holds of counts and losses at a time, unless a single row takes more
MAX_ENTRIES = 2**20  # of the tables for more than two agents; beyond, NumPy does without them

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Tile = tuple[int, int, Int64]
"""Some rows of the losses of two neighbouring steps: the number of the matrix, the first row, the rows."""


class Counter:
    """Counts over one dataset, in parts or in one.

    sizes      1, |Phi_1|, ..., |Phi_H|: entry h is of the encoders of step h, and at h = 0 there is the constant one
    N_s        how many values an encoder may take
    n_threads  at most so many threads; None for all cores
    running    int (H + 1, K): how many trajectories of each agent have an observation at h
    """

    def __init__(
        self, tau: TrajectoryDataset, parts: Parts, sizes: Sequence[int], N_s: int, n_threads: int | None
    ) -> None:
        self.tau, self.parts, self.sizes, self.N_s, self.n_threads = tau, parts, sizes, N_s, n_threads
        lasting = np.bincount(tau.agent * (tau.H + 1) + tau.lengths, minlength=tau.K * (tau.H + 1))
        self.running: Int64 = lasting.reshape(tau.K, tau.H + 1)[:, ::-1].cumsum(axis=1)[:, ::-1].T.copy()
        self._margins: dict[tuple[int, int, int | None], Int64] = {}

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """map(function, items) on the counter's threads, in order."""
        return ordered_map(function, items, min(usable_threads(self.n_threads), max(1, len(items))))

    def size(self, view: View) -> int:
        """How many encoders a view has."""
        return len(np.arange(self.sizes[view.h])[view.encoders])

    def n_values(self, view: View) -> int:
        """How many values they take: one before there is anything to see."""
        return self.N_s if view.h else 1

    def totals(self, *views: View) -> Int64:
        """How many trajectories of each agent all these views are of: (K,)."""
        view = View(max(max(view.h, view.until) for view in views), half=views[0].half)
        return self.running[view.h] if view.half is None else self.parts.total(_totals, view)

    def margins(self, view: View, until: int = 0) -> Int64:
        """How often each agent shows each value >= 1 of each encoder, where it goes on until that step: (K, V, I)."""
        until = max(view.h, view.until, until)
        if (self.running[until] == self.running[view.h]).all():
            until = view.h
        key = view.h, until, view.half
        if key not in self._margins:
            self._margins[key] = self.parts.total(_margins, View(view.h, until=until, half=view.half))
        return np.ascontiguousarray(self._margins[key][..., view.encoders])

    def pairs(self, p: View, q: View) -> Int32:
        """How often each agent shows each pair of values of each pair of encoders: (K, U, V, I, J)."""
        inner = self.parts.total(_pairs, p, q)
        p_counts, q_counts = self.margins(p, q.h), self.margins(q, p.h)
        return _completed(inner, p_counts[..., None], q_counts[:, :, None], self.totals(p, q)[:, None, None])

    def matched(self, h: int) -> Int32:
        """The same for each encoder of h and itself at h + 1, in a class that is the same at both: (|Phi|, U, V, K)."""
        p, q = View(h, until=h + 1), View(h + 1)
        inner = self.parts.total(count_matched, p, q)
        return _completed(inner, self.margins(p), self.margins(q), self.totals(q)[:, None]).transpose(3, 1, 2, 0)

    def losses(self, p: View, q: View, grid: Grid) -> Int64:
        """The fixed-point loss of the best f over each pair of encoders: (I, J).

        For two agents every bin is tried. The loss is convex, so that this finds what `losses.best_bins` finds beside
        the log ratio; for more agents the compiled loop tries what that tries.

        Paper: Line 10, the loss of Equation 13
        """
        from craftrl.engine.kernels import corner_losses, sweep_losses

        K, n_pairs = self.tau.K, int(self.totals(p, q).sum())
        if K == 2:
            is_compiled = n_pairs * int(softplus_table(grid)[-1]) < 2**53
        else:
            is_compiled = K <= MAX_CORNERS and max(grid.size ** (K - 1) * K, n_pairs) <= MAX_ENTRIES
        row_bytes = (8 if is_compiled else 128) * K * self.n_values(p) * self.n_values(q) * self.size(q)
        found = np.empty((self.size(p), self.size(q)), dtype=np.int64)
        for rows in slices(len(found), TILE_BYTES // 2 // row_bytes):
            cells = self.pairs(p.part(rows), q)
            if not is_compiled:
                found[rows] = best_bins(cells.transpose(3, 4, 1, 2, 0), grid)[1].sum(axis=(2, 3))
            elif K == 2:
                sweep_losses(cells, softplus_table(grid).astype(np.float64), found[rows])
            else:
                # Where the grid points around a point lie in the table of all, beside the lowest of them.
                corners = grid.size ** np.arange(K - 1) @ np.indices((min(grid.size, 2),) * (K - 1)).reshape(K - 1, -1)
                with np.errstate(divide="ignore"):
                    logarithms = np.log(np.arange(n_pairs + 1))
                corner_losses(cells, logarithms, surprise_table(grid, K), corners, grid.xi, grid.n_xi, found[rows])
        return found

    def tiles(self, views: Sequence[View], grid: Grid) -> Iterator[Tile]:
        """The losses of all pairs of encoders of each two neighbours, matrix by matrix and from the first row on."""
        tasks = [
            (h, some)
            for h, (p, q) in enumerate(pairwise(views))
            for some in slices(self.size(p), TILE_BYTES // (16 * self.size(q)))
        ]
        found = self.map(lambda task: self.losses(views[task[0]].part(task[1]), views[task[0] + 1], grid), tasks)
        for (h, some), losses in zip(tasks, found):
            yield h, some.start, losses

    def best_pairs(self, views: Sequence[View], grid: Grid) -> list[tuple[int, int]]:
        """For each two neighbours the pair of encoders with the least loss; ties to the smallest i, then j.

        Paper: Line 10
        """
        best = [(2**63, 0, 0)] * (len(views) - 1)
        for h, first, losses in self.tiles(views, grid):
            i, j = divmod(int(np.argmin(losses)), losses.shape[1])
            best[h] = min(best[h], (int(losses[i, j]), first + i, j))
        return [(i, j) for _, i, j in best]


def slices(n: int, at_once: int) -> Iterator[slice]:
    """0..n-1 in runs of `at_once`, one at least."""
    for start in range(0, n, max(1, at_once)):
        yield slice(start, min(start + max(1, at_once), n))


# -- what is asked of every part -------------------------------------------------------------------------------------


def count_planes(p: Words, q: Words, segments: Int64) -> Int32:
    """The bits that planes p (U, I, W) and q (V, J, W) have in common, by agent: (K, U, V, I, J)."""
    from craftrl.engine.kernels import count_pairs

    counts = np.empty((len(segments) - 1, p.shape[0], q.shape[0], p.shape[1], q.shape[1]), dtype=np.int32)
    count_pairs(p, q, segments, counts)
    return counts


def count_matched(part: Part, p: View, q: View) -> Int32:
    """The same for each encoder of p and the one of the same number of q: (K, U, V, I)."""
    left, right = part.planes(p), part.planes(q)
    counts = np.zeros((len(part.counts), len(left), len(right), left.shape[1]), dtype=np.int32)
    for u, plane in enumerate(left):
        bits = np.bitwise_count(plane & right)
        for k, (first, stop) in enumerate(pairwise(part.segments)):
            counts[k, u] = bits[..., first:stop].sum(axis=-1)
    return counts


def count_groups(part: Part, h: int, n_groups: int, group: Labels) -> Int64:
    """How often each encoder of Phi_h has each value on each group of trajectories: (n_groups, |Phi_h|, N_s)."""
    groups = part.grouped(group, n_groups) & part.present(View(h))
    found = count_planes(groups[None], part.planes(View(h)), part.segments[[0, -1]])[0, 0]  # (V, n_groups, |Phi_h|)
    counts = np.empty((*found.shape[1:], len(found) + 1), dtype=np.int64)
    counts[..., 1:] = found.transpose(1, 2, 0)
    counts[..., 0] = np.bitwise_count(groups).sum(axis=1, dtype=np.int64)[:, None] - found.sum(axis=0)
    return counts


def _pairs(part: Part, p: View, q: View) -> Int32:
    return count_planes(part.planes(p), part.planes(q), part.segments)


def _margins(part: Part, view: View, planes: Words | None = None) -> Int64:
    planes = part.planes(view) if planes is None else planes
    return count_planes(planes, part.present(view)[None, None], part.segments)[:, :, 0, :, 0].astype(np.int64)


def _totals(part: Part, view: View) -> Int64:
    return _margins(part, view, part.present(view)[None, None])[:, 0, 0]


def _completed(inner: Int32, *margins: Int64) -> Int32:
    """Counts (K, U, V, ...) of all values of two encoders from those of values >= 1, of either one, and of all."""
    p, q, totals = (counts.astype(np.int32) for counts in margins)
    K, U, V, *rest = inner.shape
    counts = np.empty((K, U + 1, V + 1, *rest), dtype=np.int32)
    counts[:, 1:, 1:] = inner
    counts[:, 1:, 0] = p - inner.sum(axis=2, dtype=np.int32)
    counts[:, 0, 1:] = q - inner.sum(axis=1, dtype=np.int32)
    counts[:, 0, 0] = totals - counts[:, 1:, 0].sum(axis=1, dtype=np.int32) - q.sum(axis=1, dtype=np.int32)
    return counts
