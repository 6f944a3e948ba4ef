"""The compiled likelihood ratio of independence for many tables of counts at once.

This module imports numba; see `count_kernel`.
"""

from __future__ import annotations

import numpy as np

from craftrl.engine.compiled import compiled

__all__ = ["table_ratios"]


@compiled
def table_ratios(cells, n_log_n, ratio, freedom):  # type: ignore[no-untyped-def]
    """How far the rows of tables depend on their columns: log-likelihood ratios, and their degrees of freedom.

    cells    int32 (S, A, B, I, J): S tables of A rows and B columns for each (i, j), whose ratios are added up
    n_log_n  int64 (n + 1,): n ln n in fixed point, for every count up to the largest total
    ratio    int64 (I, J), written: the sum of n ln n over cells, less that over rows and over columns, plus totals'
    freedom  int64 (I, J), written: the sum of (rows - 1)(columns - 1), of those that are not empty
    """
    S, A, B, n_i, n_j = cells.shape
    row, used_rows = np.empty(n_j, np.int64), np.empty(n_j, np.int64)
    total, used_columns = np.empty(n_j, np.int64), np.empty(n_j, np.int64)
    for i in range(n_i):
        out, degrees = ratio[i], freedom[i]
        out[:] = 0
        degrees[:] = 0
        for s in range(S):
            total[:], used_rows[:], used_columns[:] = 0, 0, 0
            for a in range(A):
                row[:] = 0
                for b in range(B):
                    cell = cells[s, a, b, i]
                    for j in range(n_j):
                        row[j] += cell[j]
                        out[j] += n_log_n[cell[j]]
                for j in range(n_j):
                    total[j] += row[j]
                    out[j] -= n_log_n[row[j]]
                    used_rows[j] += row[j] > 0
            for b in range(B):
                row[:] = 0
                for a in range(A):
                    cell = cells[s, a, b, i]
                    for j in range(n_j):
                        row[j] += cell[j]
                for j in range(n_j):
                    out[j] -= n_log_n[row[j]]
                    used_columns[j] += row[j] > 0
            for j in range(n_j):
                if total[j] > 0:
                    out[j] += n_log_n[total[j]]
                    degrees[j] += (used_rows[j] - 1) * (used_columns[j] - 1)
