"""How to find the best bin of every cell: which search applies to a grid, and its tables.

For two agents a cell with counts a, b has the loss a T[n_xi - j] + b T[j] in bin j, T the softplus table in fixed
point. If T is convex, so is the loss, and its least value over the grid is found by any of these searches:

- sweep: try every bin, eight cells at a time in float64. Exact while all products stay below 2^53.
- look up: start from the share a / (a + b), and walk up while the loss falls. In integers.
- `losses.best_bins`: the two neighbours of the log ratio. In NumPy.

The first two return the least loss over the whole grid, the third that of two bins. They agree where the second
differences of T are at least STEEP: T is rounded to integers, so the loss of a cell with n pairs is off by n/2
at most, while one step further away from the log ratio than the neighbours costs at least n STEEP / 4 more.
A grid too fine for that (alpha below a hundredth, say) is left to NumPy.

For more agents there is one search, that of `best_bins`: the corners around the log ratios. The compiled one reads
logarithms and losses from tables that NumPy made, so that it decides as NumPy does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.losses import MOST_CORNERS, softplus_table, surprise_table

__all__ = ["BinSearch"]

STEEP = 8
SWEEP_LIMIT = 48  # bins; beyond, looking up is faster
SHARES = 4096  # entries of the table from shares to bins
TABLE_LIMIT = 2**20  # entries of the tables for more than two agents; beyond, NumPy does without them

Int64 = NDArray[np.int64]


@dataclass(frozen=True)
class BinSearch:
    """The search for one grid, K agents and so many pairs."""

    grid: Grid
    K: int
    n_pairs: int
    way: Literal["sweep", "look up", "corners", "numpy"]

    @classmethod
    def on(cls, grid: Grid, K: int, n_pairs: int) -> BinSearch:
        """Choose the search."""
        if K > 2:
            small = K <= MOST_CORNERS and grid.size ** (K - 1) * K <= TABLE_LIMIT and n_pairs < TABLE_LIMIT
            return cls(grid, K, n_pairs, "corners" if small else "numpy")
        if not is_steep(grid):
            return cls(grid, K, n_pairs, "numpy")
        swept = grid.size <= SWEEP_LIMIT and n_pairs * int(softplus_table(grid)[-1]) < 2**53
        return cls(grid, K, n_pairs, "sweep" if swept else "look up")

    @property
    def compiled(self) -> bool:
        """Whether `losses` does it; if not, `losses.best_bins` does."""
        return self.way != "numpy"

    def losses(self, inner: NDArray[np.int32], p: Int64, q: Int64, totals: Int64, out: Int64) -> None:
        """The least losses of all pairs of encoders from their counts; see `sweep_kernel` and `search_kernel`."""
        from craftrl.engine.search_kernel import corner_losses, look_up_losses
        from craftrl.engine.sweep_kernel import binary_losses, sweep_losses

        p, q = np.ascontiguousarray(p), np.ascontiguousarray(q)
        if self.way == "sweep":
            sweep = binary_losses if p.shape[1] == q.shape[1] == 1 else sweep_losses
            sweep(inner, p, q, totals, softplus_table(self.grid).astype(np.float64), out)
        elif self.way == "look up":
            look_up_losses(inner, p, q, totals, softplus_table(self.grid), first_bins(self.grid), out)
        else:
            surprise = surprise_table(self.grid, self.K)
            corner_losses(inner, p, q, totals, logarithms(self.n_pairs), surprise, self.grid.xi, self.grid.n_xi, out)


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


@lru_cache(maxsize=4)
def logarithms(n: int) -> NDArray[np.float64]:
    """ln of 0..n, as NumPy has it."""
    with np.errstate(divide="ignore"):
        return np.log(np.arange(n + 1))
