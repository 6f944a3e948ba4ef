"""How to find the best bin of every cell: which of the compiled searches applies to a grid, and its tables.

For two agents a cell with counts a, b has the loss a T[n_xi - j] + b T[j] in bin j, T the softplus table in fixed
point. If T is convex, so is the loss, and its least value over the grid is found by any of three searches:

- sweep: try every bin, eight cells at a time in float64. Exact while all products stay below 2^53.
- look up: start from the share a / (a + b), and walk up while the loss falls. In integers.
- `losses.best_bins`: the two neighbours of the log ratio. In NumPy.

The first two return the least loss over the whole grid, the third that of two bins. They agree where the second
differences of T are at least STEEP: T is rounded to integers, so the loss of a cell with n pairs is off by n/2
at most, while one step further away from the log ratio than the neighbours costs at least n STEEP / 4 more.
A grid too fine for that (alpha below a hundredth, say) is left to NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from craftrl.grid import Grid
from craftrl.losses import softplus_table

__all__ = ["BinSearch"]

STEEP = 8
SWEEP_LIMIT = 48  # bins; beyond, looking up is faster
SHARES = 4096  # entries of the table from shares to bins

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class BinSearch:
    """The search for one grid, K agents and so many pairs: compiled or not, and if so by which way."""

    grid: Grid
    compiled: bool
    swept: bool
    table: Int64

    @classmethod
    def on(cls, grid: Grid, K: int, n_pairs: int) -> BinSearch:
        """Choose the search."""
        table = softplus_table(grid)
        swept = grid.size <= SWEEP_LIMIT and n_pairs * int(table[-1]) < 2**53
        return cls(grid, K == 2 and is_steep(grid), swept, table)

    def losses(self, inner: NDArray[np.int32], p: Int64, q: Int64, totals: Int64, out: Int64) -> None:
        """The least losses of all pairs of encoders from their counts; see `loss_kernel`."""
        from craftrl.engine.loss_kernel import look_up_losses, sweep_losses

        p, q = np.ascontiguousarray(p), np.ascontiguousarray(q)
        if self.swept:
            sweep_losses(inner, p, q, totals, self.table.astype(np.float64), out)
        else:
            look_up_losses(inner, p, q, totals, self.table, first_bins(self.grid), out)


@lru_cache(maxsize=64)
def is_steep(grid: Grid) -> bool:
    """Whether the table of this grid is so convex that rounding cannot hide it."""
    return grid.size < 3 or bool(np.diff(softplus_table(grid), 2).min() >= STEEP)


@lru_cache(maxsize=64)
def first_bins(grid: Grid) -> Int64:
    """For each share of agent 0, in steps of 1 / SHARES, a bin at or below the best one: (SHARES + 1,).

    Bin j + 1 is better than j where a (T[n-j] - T[n-j-1]) > b (T[j+1] - T[j]), that is, where the share exceeds a
    threshold that grows with j. Each entry is that of the step before, which leaves room for rounding.
    """
    slope = np.diff(softplus_table(grid)).astype(np.float64)
    thresholds = slope / (slope + slope[::-1])
    shares = np.arange(-1, SHARES) / SHARES
    return np.searchsorted(thresholds, shares).astype(np.int64)
