"""Counts and losses of all pairs of encoders, tile by tile, on all cores.

Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) needs the counts of |Phi_h| x |Phi_{h+1}| x N_s^2 x K cells. They
are never held together: a tile of rows is counted, turned into losses and forgotten. Results depend neither on tiles
nor on threads nor on where the data lies.

Paper: Lines 9-10
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.losses import MOST_CORNERS, best_bins, softplus_table, surprise_table
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.packing import Packed, View, Words
from craftrl.engine.parts import Parts
from craftrl.engine.threads import Item, Result, ordered_map, usable_threads

__all__ = ["TILE_BYTES", "Counter", "Tile", "count_planes", "slices"]

TILE_BYTES = 8 * 2**20  # what one thread may hold of counts and losses at a time
STEEP = 8  # least second difference of the softplus table with which rounding cannot move the best bin
MOST_BINS = 256  # of a grid whose every bin is tried; beyond, NumPy's two neighbours are faster
MOST_ENTRIES = 2**20  # of the tables for more than two agents; beyond, NumPy does without them

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Tile = tuple[int, int, Int64]
"""Some rows of the losses of two neighbouring steps: the number of the matrix, the first row, the rows."""


class Counter:
    """Counts over one dataset, in parts or in one.

    sizes      |Phi_1|..|Phi_H|
    N_s        how many values an encoder may take
    n_threads  at most so many threads; None for all cores
    running    int (H + 1, K): how many trajectories of each agent have an observation at h
    """

    def __init__(
        self, tau: TrajectoryDataset, parts: Parts, sizes: Sequence[int], N_s: int, n_threads: int | None
    ) -> None:
        self.tau = tau
        self.parts = parts
        self.sizes = sizes
        self.N_s = N_s
        self.n_threads = n_threads
        lasting = np.bincount(tau.agent * (tau.H + 1) + tau.lengths, minlength=tau.K * (tau.H + 1))
        self.running: Int64 = lasting.reshape(tau.K, tau.H + 1)[:, ::-1].cumsum(axis=1)[:, ::-1].T.copy()
        self._margins: dict[View, Int64] = {}

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """map(function, items) on the counter's threads, in order."""
        return ordered_map(function, items, min(usable_threads(self.n_threads), max(1, len(items))))

    def size(self, view: View) -> int:
        """How many encoders a view has."""
        if isinstance(view.encoders, str):
            return 1
        whole = range(self.sizes[view.h - 1])
        if view.encoders is None or isinstance(view.encoders, slice):
            return len(whole[view.encoders or slice(None)])
        return len(view.encoders)

    def n_values(self, view: View) -> int:
        """How many values they take: one if there is nothing to see."""
        return 1 if isinstance(view.encoders, str) else self.N_s

    def totals(self, *views: View) -> Int64:
        """How many trajectories of each agent all these views are of: (K,)."""
        view = View(max(max(view.h, view.until) for view in views), half=views[0].half)
        if view.half is None:
            return self.running[view.h]
        return self.parts.total(_totals, view)

    def margins(self, view: View, until: int = 0) -> Int64:
        """How often each agent shows each value >= 1 of each encoder, where it goes on until that step: (K, V, I)."""
        if isinstance(view.encoders, str):
            return np.zeros((self.tau.K, 0, 1), dtype=np.int64)
        until = max(view.h, view.until, until)
        if (self.running[until] == self.running[view.h]).all():
            until = view.h
        whole = View(view.h, None, until, view.half)
        if whole not in self._margins:
            self._margins[whole] = self.parts.total(_margins, whole)
        found = self._margins[whole]
        return found if view.encoders is None else np.ascontiguousarray(found[..., view.encoders])

    def groups(self, h: int, group: Labels, n_groups: int) -> Int64:
        """How often each encoder of Phi_h has each value on each group of trajectories: (n_groups, |Phi_h|, N_s)."""
        return self.parts.total(_groups, h, n_groups, label=group)

    def matched(self, h: int) -> Int64:
        """How often each agent shows each pair of values of each encoder at h and, the same one, at h + 1.

        Shape (|Phi|, N_s, N_s, K); of a class that is the same at both steps.
        """
        p, q = View(h, until=h + 1), View(h + 1)
        inner = self.parts.total(count_matched, p, q)
        counts = _completed(inner, self.margins(p), self.margins(q), self.totals(q)[:, None])
        return counts.transpose(3, 1, 2, 0)

    def pairs(self, p: View, q: View) -> Int64:
        """How often each agent shows each pair of values of each pair of encoders: (K, U, V, I, J)."""
        inner = self.parts.total(count_pairs, p, q)
        p_counts, q_counts = (self.margins(*views) for views in ((p, q.h), (q, p.h)))
        return _completed(inner, p_counts[..., None], q_counts[:, :, None], self.totals(p, q)[:, None, None])

    def tiles(self, views: Sequence[View], grid: Grid) -> Iterator[Tile]:
        """The losses of all pairs of encoders of each two neighbours, matrix by matrix, from the first row to the last.

        Whoever needs each row once holds a few megabytes, where a matrix of large classes takes gigabytes.
        """
        tasks = [
            (h, some)
            for h, (p, q) in enumerate(pairwise(views))
            for some in slices(self.size(p), TILE_BYTES // (16 * self.size(q)))
        ]

        def losses(task: tuple[int, slice]) -> Int64:
            h, some = task
            return self.losses(views[h].part(some), views[h + 1], grid)

        for (h, some), found in zip(tasks, self.map(losses, tasks)):
            yield h, some.start, found

    def losses(self, p: View, q: View, grid: Grid) -> Int64:
        """The fixed-point loss of the best f over each pair of encoders: (I, J).

        For two agents a cell with counts a, b has the loss a T[n_xi - j] + b T[j] in bin j, T the softplus table in
        fixed point. `losses.best_bins` takes the better of the two bins beside the log ratio. Trying all of them gives
        the same where T is so convex that its rounding cannot matter: the loss of a cell with n pairs is off by n/2 at
        most, while one bin further away costs at least n STEEP / 4 more.

        Paper: Line 10, the loss of Equation 13
        """
        from craftrl.engine.kernels import corner_losses, sweep_losses

        K, totals = self.tau.K, self.totals(p, q)
        n_pairs = int(totals.sum())
        swept = K == 2 and _is_steep(grid) and n_pairs * int(softplus_table(grid)[-1]) < 2**53
        few = K <= MOST_CORNERS and grid.size ** (K - 1) * K <= MOST_ENTRIES and n_pairs < MOST_ENTRIES
        is_compiled = swept if K == 2 else few
        pair_bytes = (4 if is_compiled else 128) * K * self.n_values(p) * self.n_values(q)
        I, J = self.size(p), self.size(q)
        found = np.empty((I, J), dtype=np.int64)
        for columns in slices(J, max(8, TILE_BYTES // 2 // (pair_bytes * min(I, 64)))):
            some = q.part(columns)
            for rows in slices(I, TILE_BYTES // 2 // (pair_bytes * (columns.stop - columns.start))):
                mine = p.part(rows)
                if not is_compiled:
                    cells = self.pairs(mine, some).transpose(3, 4, 1, 2, 0)
                    found[rows, columns] = best_bins(cells, grid)[1].sum(axis=(2, 3))
                    continue
                counted = self.parts.total(count_pairs, mine, some), self.margins(mine, q.h), self.margins(some, p.h)
                out = np.empty((rows.stop - rows.start, columns.stop - columns.start), dtype=np.int64)
                if swept:
                    sweep_losses(*counted, totals, softplus_table(grid).astype(np.float64), out)
                else:
                    surprise = surprise_table(grid, K)
                    corner_losses(*counted, totals, _logarithms(n_pairs), surprise, grid.xi, grid.n_xi, out)
                found[rows, columns] = out
        return found

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


def count_pairs(part: Packed, p: View, q: View) -> Int32:
    """How often each agent shows each pair of values >= 1 of each pair of encoders: (K, U, V, I, J)."""
    return count_planes(part.planes(p), part.planes(q), part.segments)


def count_planes(p: Words, q: Words, segments: Int64) -> Int32:
    """The bits that planes p (U, I, W) and q (V, J, W) have in common, by agent: (K, U, V, I, J)."""
    from craftrl.engine import kernels

    counts = np.empty((len(segments) - 1, p.shape[0], q.shape[0], p.shape[1], q.shape[1]), dtype=np.int32)
    kernels.count_pairs(p, q, segments, counts)
    return counts


def count_matched(part: Packed, p: View, q: View) -> Int64:
    """The same for each encoder of p with the one of the same number of q: (K, U, V, I)."""
    from craftrl.engine import kernels

    left, right = part.planes(p), part.planes(q)
    counts = np.empty((len(part.segments) - 1, len(left), len(right), left.shape[1]), dtype=np.int64)
    kernels.count_matched(left, right, part.segments, counts)
    return counts


def _margins(part: Packed, view: View) -> Int64:
    present = part.present(view)[None, None]
    return count_planes(part.planes(view), present, part.segments)[:, :, 0, :, 0].astype(np.int64)


def _totals(part: Packed, view: View) -> Int64:
    present = part.present(view)[None, None]
    return count_planes(present, present, part.segments)[:, 0, 0, 0, 0].astype(np.int64)


def _groups(part: Packed, h: int, n_groups: int, group: Labels) -> Int64:
    from craftrl.engine.kernels import count_groups

    planes = part.step(h)
    counts = np.empty((n_groups, planes.shape[1], len(planes) + 1), dtype=np.int64)
    count_groups(part.share.packed(group, n_groups) & part.present(View(h)), planes, counts)
    return counts


def _completed(inner: NDArray[np.integer], p: Int64, q: Int64, totals: Int64) -> Int64:
    """Counts (K, U, V, ...) of all values of two encoders from those of values >= 1, by what is missing in the sums."""
    K, U, V, *rest = inner.shape
    counts = np.empty((K, U + 1, V + 1, *rest), dtype=np.int64)
    counts[:, 1:, 1:] = inner
    counts[:, 1:, 0] = p - inner.sum(axis=2)
    counts[:, 0, 1:] = q - inner.sum(axis=1)
    counts[:, 0, 0] = totals - counts[:, 1:].sum(axis=(1, 2)) - counts[:, 0, 1:].sum(axis=1)
    return counts


# -- tables ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _is_steep(grid: Grid) -> bool:
    """Whether trying every bin is quick, and finds what the two bins beside the log ratio hold."""
    return grid.size <= MOST_BINS and (grid.size < 3 or bool(np.diff(softplus_table(grid), 2).min() >= STEEP))


@lru_cache(maxsize=4)
def _logarithms(n: int) -> NDArray[np.float64]:
    """ln of 0..n, as NumPy has it."""
    with np.errstate(divide="ignore"):
        return np.log(np.arange(n + 1))
