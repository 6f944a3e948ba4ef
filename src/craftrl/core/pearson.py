"""Pearson's statistic of many small tables, with its exact mean and variance where rows and columns are independent.

Given the sums of its rows and columns, a table of independent labels is a draw without replacement. The mean of
Pearson's statistic is then (R - 1)(C - 1) N / (N - 1), and its variance is known exactly as well (Dawson, Biometrika
41, 1954). The chi-square law has neither where some counts are small: one rare value that one rare agent shows once is
improbable beyond measure to it. So rare rows and columns are counted together, and what is left is compared with the
gamma law that has the exact mean and variance (`craftrl.core.evidence`).

This module imports numba; nothing imports it before there is something to test.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pearson(counts, first, least):  # type: ignore[no-untyped-def]
    """The statistic, its mean and its variance (F, 3), added up over strata, for each of F functions.

    counts  int (G, F, V): of each of G groups, how often each function has each value
    first   int (C + 1,): groups first[c]..first[c+1]-1 are the rows of the table of stratum c
    least   the smallest count that must be expected of an entry; rarer rows and columns are joined with the next
    """
    G, F, V = counts.shape
    found, table, rows, columns = np.zeros((F, 3)), np.empty((G, V)), np.empty(G), np.empty(V)
    for f in range(F):
        for c in range(len(first) - 1):
            R, N = first[c + 1] - first[c], 0.0
            rows[:R], columns[:] = 0.0, 0.0
            for r in range(R):
                for v in range(V):
                    n = counts[first[c] + r, f, v]
                    table[r, v] = n
                    rows[r] += n
                    columns[v] += n
                    N += n
            if N < 4:
                continue
            n_rows, n_columns = 0, 0
            for r in range(R):
                n_rows += rows[r] > 0
            for v in range(V):
                n_columns += columns[v] > 0
            while n_rows > 1 and n_columns > 1:
                row, next_row = _two_smallest(rows, R)
                column, next_column = _two_smallest(columns, V)
                if rows[row] * columns[column] >= least * N:
                    break
                if rows[row] < columns[column]:
                    for v in range(V):
                        table[next_row, v] += table[row, v]
                    rows[next_row] += rows[row]
                    rows[row] = 0.0
                    n_rows -= 1
                else:
                    for r in range(R):
                        table[r, next_column] += table[r, column]
                    columns[next_column] += columns[column]
                    columns[column] = 0.0
                    n_columns -= 1
            if n_rows < 2 or n_columns < 2:
                continue
            statistic, of_rows, of_columns = 0.0, 0.0, 0.0
            for r in range(R):
                if rows[r] > 0:
                    of_rows += N / rows[r]
                    for v in range(V):
                        if columns[v] > 0:
                            expected = rows[r] * columns[v] / N
                            statistic += (table[r, v] - expected) ** 2 / expected
            for v in range(V):
                if columns[v] > 0:
                    of_columns += N / columns[v]
            w_rows, w_columns = (of_rows - n_rows**2) / (N - 2), (of_columns - n_columns**2) / (N - 2)
            v_rows, v_columns = (n_rows - 1) * (N - n_rows) / (N - 1), (n_columns - 1) * (N - n_columns) / (N - 1)
            found[f, 0] += statistic
            found[f, 1] += (n_rows - 1) * (n_columns - 1) * N / (N - 1)
            found[f, 2] += 2 * N / (N - 3) * (v_rows - w_rows) * (v_columns - w_columns)
            found[f, 2] += N * N / (N - 1) * w_rows * w_columns
    return found


@njit(cache=True, nogil=True)
def _two_smallest(sums, n):  # type: ignore[no-untyped-def]
    """Where the smallest two of the first n sums above zero are."""
    smallest, second = -1, -1
    for i in range(n):
        if sums[i] > 0:
            if smallest < 0 or sums[i] < sums[smallest]:
                smallest, second = i, smallest
            elif second < 0 or sums[i] < sums[second]:
                second = i
    return smallest, second
