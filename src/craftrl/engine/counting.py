"""Counting pairs of values, and the loss of every pair of encoders, one tile at a time.

Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) needs the counts of |Phi_h| x |Phi_{h+1}| x N_s^2 x K cells. They
are never held together: a tile of rows is counted, turned into losses and forgotten.

Paper: Lines 9-10
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.losses import best_bins
from craftrl.engine.bins import BinSearch
from craftrl.engine.packing import LANES, PackedStep, Words, pack_groups

__all__ = [
    "TILE_BYTES",
    "CountMemory",
    "best_in_rows",
    "chunks",
    "count_planes",
    "group_counts",
    "inner_counts",
    "margins",
    "pair_counts",
    "pair_losses",
    "row_tiles",
]

TILE_BYTES = 8 * 2**20  # what one thread may hold of counts and losses at a time
MEMORY_BYTES = 256 * 2**20  # what a search over grids may keep of counts
CACHE_BYTES = 300 * 2**10  # bit planes that are read again and again should fit into a core's own cache

Int64 = NDArray[np.int64]


class CountMemory:
    """Counts of pairs of encoders, kept from one grid to the next: they depend on the data alone.

    Steps are told apart by identity, so whoever holds the memory must hold the steps. What would go beyond `max_bytes`
    is not kept, and counted again.
    """

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self.left = max_bytes
        self._kept: dict[tuple[int, ...], NDArray[np.int32]] = {}
        self._lock = threading.Lock()

    def look_up(self, *what: PackedStep | slice) -> NDArray[np.int32] | None:
        return self._kept.get(_identity(what))

    def keep(self, counts: NDArray[np.int32], *what: PackedStep | slice) -> None:
        with self._lock:
            if counts.nbytes <= self.left:
                self.left -= counts.nbytes
                self._kept[_identity(what)] = counts


def _identity(what: tuple[PackedStep | slice, ...]) -> tuple[int, ...]:
    parts = [(part.start, part.stop) if isinstance(part, slice) else (id(part),) for part in what]
    return tuple(number for part in parts for number in part)


def count_planes(p: Words, q: Words, segments: Int64, scratch: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    """popcount(p[u, i] & q[v, j]) over each agent's words: (K, U, V, I, J), I and J padded to blocks and vectors."""
    from craftrl.engine.count_kernel import ROWS, count_pairs

    (U, I), (V, J) = p.shape[:2], q.shape[:2]
    padded = (-(-I // ROWS) * ROWS, -(-J // (ROWS * LANES)) * ROWS * LANES)
    shape = (len(segments) - 1, U, V, *padded)
    if scratch is None:
        counts = np.empty(shape, dtype=np.int32)
    else:  # memory that was used before; fresh pages are slow
        counts = scratch[: math.prod(shape)].reshape(shape)
    count_pairs(p, q, segments, counts)
    return counts


def inner_counts(
    step_h: PackedStep, step_next: PackedStep, rows: slice, columns: slice, scratch: NDArray[np.int32] | None = None
) -> NDArray[np.int32]:
    """`count_planes` of some encoders of each step: how often each agent shows each pair of values >= 1."""
    return count_planes(step_h.planes[:, rows], step_next.planes[:, columns], step_h.segments, scratch)


def _counts_among(step_h: PackedStep, step_next: PackedStep, rows: slice) -> Int64:
    """Each agent's counts of the values >= 1 of encoders of x_h where x_{h+1} exists."""
    return step_next.value_counts_among(step_h.planes[:, rows])


def pair_counts(
    step_h: PackedStep, step_next: PackedStep, rows: slice = slice(None), columns: slice = slice(None)
) -> Int64:
    """How often each agent shows each pair of values of each pair of encoders: (I, J, N_s, N_s, K).

    `rows` and `columns` choose encoders of Phi_h and Phi_{h+1}. A pair counts where x_{h+1} exists.
    """
    p_counts, q_counts = margins(step_h, step_next, rows, columns)
    (K, U, I), (_, V, J) = p_counts.shape, q_counts.shape
    counts = np.empty((K, U + 1, V + 1, I, J), dtype=np.int64)
    counts[:, 1:, 1:] = inner_counts(step_h, step_next, rows, columns)[..., :I, :J]
    counts[:, 1:, 0] = p_counts[..., None] - counts[:, 1:, 1:].sum(axis=2)
    counts[:, 0, 1:] = q_counts[..., None, :] - counts[:, 1:, 1:].sum(axis=1)
    used = counts[:, 1:].sum(axis=(1, 2)) + counts[:, 0, 1:].sum(axis=1)
    counts[:, 0, 0] = step_next.totals[:, None, None] - used
    return counts.transpose(3, 4, 1, 2, 0)


def margins(step_h: PackedStep, step_next: PackedStep, rows: slice, columns: slice) -> tuple[Int64, Int64]:
    """Each agent's counts of the values >= 1 of the encoders on either side, over the pairs that exist."""
    if np.array_equal(step_h.totals, step_next.totals):
        p_counts = step_h.value_counts[..., rows]
    else:
        p_counts = _counts_among(step_h, step_next, rows)
    return p_counts, step_next.value_counts[..., columns]


def row_tiles(step_h: PackedStep, step_next: PackedStep, tile_bytes: int = TILE_BYTES) -> Iterator[slice]:
    """Rows of the matrix of losses, so many at a time that they take half of tile_bytes."""
    n_rows = max(1, tile_bytes // (16 * step_next.size))
    for start in range(0, step_h.size, n_rows):
        yield slice(start, min(start + n_rows, step_h.size))


def pair_losses(
    step_h: PackedStep,
    step_next: PackedStep,
    grid: Grid,
    rows: slice = slice(None),
    tile_bytes: int = TILE_BYTES,
    counts: CountMemory | None = None,
) -> Int64:
    """The fixed-point loss of the best f over each pair of encoders, for some rows of Phi_h: (I, |Phi_{h+1}|).

    The sum over all cells of the least loss in `losses.best_bins`, bit for bit.

    Paper: Line 10, the loss of Equation 13
    """
    start, stop, _ = rows.indices(step_h.size)
    losses = np.empty((stop - start, step_next.size), dtype=np.int64)
    search = BinSearch.on(grid, len(step_h.counts), int(step_next.totals.sum()))
    scratch = None
    for some, columns in chunks(step_h, step_next, rows, search.compiled, tile_bytes // 2):
        out = losses[some.start - start : some.stop - start, columns]
        if not search.compiled:
            out[:] = best_bins(pair_counts(step_h, step_next, some, columns), grid)[1].sum(axis=(2, 3))
            continue
        inner = None if counts is None else counts.look_up(step_h, step_next, some, columns)
        if inner is None:
            inner = inner_counts(step_h, step_next, some, columns, scratch)
            if counts is not None:
                counts.keep(inner, step_h, step_next, some, columns)
            elif scratch is None:  # the first chunk is the largest
                scratch = inner.ravel()
        search.losses(inner, *margins(step_h, step_next, some, columns), step_next.totals, out)
    return losses


def chunks(
    step_h: PackedStep, step_next: PackedStep, rows: slice, compiled: bool = True, n_bytes: int = TILE_BYTES // 2
) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of encoders to count together: their planes fit the cache, their counts n_bytes."""
    from craftrl.engine.count_kernel import ROWS, WORD_CHUNK

    K, cells = len(step_h.counts), step_h.N_s * step_next.N_s
    pair_bytes = 4 * K * cells if compiled else 128 * K * cells
    widest = min(WORD_CHUNK, int(np.diff(step_h.segments).max()))
    n_columns = CACHE_BYTES // (8 * widest * max(1, step_next.N_s - 1))
    n_columns = max(ROWS, min(n_columns, step_next.size, n_bytes // (pair_bytes * ROWS)))
    n_rows = max(ROWS, n_bytes // (pair_bytes * n_columns) // ROWS * ROWS)
    start, stop, _ = rows.indices(step_h.size)
    for j in range(0, step_next.size, n_columns):
        for i in range(start, stop, n_rows):
            yield slice(i, min(i + n_rows, stop)), slice(j, min(j + n_columns, step_next.size))


def best_in_rows(
    step_h: PackedStep,
    step_next: PackedStep,
    grid: Grid,
    rows: slice,
    tile_bytes: int = TILE_BYTES,
    counts: CountMemory | None = None,
) -> tuple[int, int, int]:
    """(loss, i, j) of the best pair with i in rows: of equal ones the smallest i, then the smallest j."""
    losses = pair_losses(step_h, step_next, grid, rows, tile_bytes, counts)
    i, j = divmod(int(np.argmin(losses)), losses.shape[1])
    return int(losses[i, j]), rows.indices(step_h.size)[0] + i, j


def group_counts(step: PackedStep, group: Labels, n_groups: int) -> Int64:
    """Every encoder's value counts on each group of trajectories (-1: in none): (n_groups, |Phi|, N_s)."""
    groups = pack_groups(group, n_groups, step.counts) & step.present
    everything = np.array([0, step.segments[-1]])
    counts = np.empty((n_groups, step.size, step.N_s), dtype=np.int64)
    inner = count_planes(groups[None], step.planes, everything)[0, 0, :, :n_groups, : step.size]
    sizes = count_planes(groups[None], step.present[None, None], everything)[0, 0, 0, :n_groups, 0]
    counts[..., 1:] = inner.transpose(1, 2, 0)
    counts[..., 0] = sizes[:, None] - counts[..., 1:].sum(axis=-1)
    return counts
