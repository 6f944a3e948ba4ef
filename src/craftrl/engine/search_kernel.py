"""The compiled loss of every pair of encoders over a large grid, or for more than two agents: bins are searched for.

Straight from counts, bit for bit that of `losses.best_bins`, in integers; `bins` says when.

This module imports numba; see `count_kernel`.
"""

import numpy as np

from craftrl.engine.compiled import compiled
from craftrl.engine.sweep_kernel import fill_cells

__all__ = ["corner_losses", "look_up_losses"]


@compiled
def look_up_losses(inner, p, q, totals, table, start, out):  # type: ignore[no-untyped-def]
    """The same in integers, for grids too fine to try every bin and for counts of any size.

    `start` (S,) maps the share of agent 0 in a cell to a bin at or below the best one: from there the loss falls,
    then rises, because the table is convex.
    """
    n_i, n_j = out.shape
    last = len(table) - 1
    cells = np.zeros((2, p.shape[1] + 1, q.shape[1] + 1, n_j), np.int64)
    for i in range(n_i):
        for k in range(2):
            fill_cells(inner[k], i, 0, n_j, p[k], q[k], totals[k], cells[k])
        out[i] = 0
        for u in range(cells.shape[1]):
            for v in range(cells.shape[2]):
                for j in range(n_j):
                    a, b = cells[0, u, v, j], cells[1, u, v, j]
                    if a + b > 0:
                        bin_ = start[int(a / (a + b) * (len(start) - 1))]
                        loss = a * table[last - bin_] + b * table[bin_]
                        while bin_ < last:
                            bin_ += 1
                            following = a * table[last - bin_] + b * table[bin_]
                            if following >= loss:
                                break
                            loss = following
                        out[i, j] += loss


@compiled
def corner_losses(inner, p, q, totals, logs, surprise, xi, n_xi, out):  # type: ignore[no-untyped-def]
    """The same for K > 2 agents: the least loss over the 2^(K-1) grid points around the log ratios.

    logs (n + 1,) holds the logarithms of the counts; surprise (size^(K-1), K) each agent's loss at every grid point.
    """
    n_i, n_j = out.shape
    K = len(totals)
    size = n_xi + 1
    cells = np.zeros((K, p.shape[1] + 1, q.shape[1] + 1, n_j), np.int64)
    for i in range(n_i):
        for k in range(K):
            fill_cells(inner[k], i, 0, n_j, p[k], q[k], totals[k], cells[k])
        for j in range(n_j):
            out[i, j] = 0
        for u in range(cells.shape[1]):
            for v in range(cells.shape[2]):
                for j in range(n_j):
                    below = 0
                    for k in range(1, K):
                        position = (logs[cells[0, u, v, j]] - logs[cells[k, u, v, j]]) / xi + n_xi / 2
                        clipped = min(max(position, 0.0), float(n_xi)) if position == position else 0.0
                        below = below * size + max(min(int(clipped), n_xi - 1), 0)
                    least = np.int64(2**62)
                    for corner in range(2 ** (K - 1) if n_xi else 1):
                        point, stride = below, 1
                        for k in range(K - 1):
                            point += stride * (corner >> k & 1)
                            stride *= size
                        loss = np.int64(0)
                        for k in range(K):
                            loss += cells[k, u, v, j] * surprise[point, k]
                        least = min(least, loss)
                    out[i, j] += least
