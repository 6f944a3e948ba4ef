"""The compiled loops: packing values into bits, counting the bits of ANDs, and turning counts into losses.

Plain loops over arrays: LLVM recognises the popcount and vectorises what is innermost, on any processor. Losses and
likelihood ratios are integers in fixed point, or floats that hold integers below 2^53: a sum is the same in any order.

This module imports numba; nothing imports it before there is something to count. The machine code is kept on disk: only
the first run after installation compiles, which takes seconds and is reported to whoever watches.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import multiprocessing
import sys
from typing import Any

import numpy as np
from numba import njit
from numba.core import event

from craftrl.data.ranks import is_first_rank
from craftrl.progress import COMPILED, COMPILING, tell, watched

compiled: Any = njit(cache=True, nogil=True)
CACHE_WORDS = 2**15  # words of bit planes that are worked on together, so that they stay in a core's own cache

ONE, TWO, FOUR, TOP = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
BY_1, BY_2, BY_4, BYTES = (np.uint64(byte * 0x0101010101010101) for byte in (0x55, 0x33, 0x0F, 0x01))


class _CompilationListener(event.Listener):
    """Tells of every loop of ours that is compiled, and not of those whose code is read from disk."""

    said = False

    def on_start(self, event: Any) -> None:
        self._tell(event, COMPILING)

    def on_end(self, event: Any) -> None:
        self._tell(event, COMPILED)

    def _tell(self, event: Any, what: str) -> None:
        if not str(event.data["dispatcher"].py_func.__module__).startswith("craftrl."):
            return
        tell(what)
        alone = not watched() and is_first_rank() and multiprocessing.parent_process() is None
        if alone and sys.stderr.isatty() and not self.said:
            self.said = True
            print(f"craftrl: {what} ...", file=sys.stderr)


LISTENER = _CompilationListener()
event.register("numba:compile", LISTENER)


@compiled
def pack_bits(x, planes, v, word):
    """Bit r % 64 of planes[s, v, c, word + r // 64] becomes x[r, s, c], uint8 (n, S, F). Whether all are 0 or 1."""
    n, n_steps, n_columns = x.shape
    octet, seen, bits = np.empty(n_columns, np.uint8), np.zeros(n_columns, np.uint8), np.empty(n_columns, np.uint64)
    for start in range(0, n, 64):
        for s in range(n_steps):
            bits[:] = 0
            for first in range(0, min(64, n - start), 8):
                octet[:] = 0  # eight rows at a time, so that the compiler can do many columns at once
                for r in range(min(8, n - start - first)):
                    row = x[start + first + r, s]
                    for c in range(n_columns):
                        octet[c] |= row[c] << r
                        seen[c] |= row[c]
                for c in range(n_columns):
                    bits[c] |= np.uint64(octet[c]) << np.uint64(first)
            for c in range(n_columns):
                planes[s, v, c, word + start // 64] = bits[c]
    return seen.max() < 2


@compiled
def pack_labels(label, counts, segments, planes):
    """planes[g] gets a 1 for every trajectory with label g; labels that have no plane are passed over.

    `counts` (K,) trajectories of each agent follow one another in `label`; agent k's words begin at segments[k].
    """
    t = 0
    for k in range(len(counts)):
        for i in range(counts[k]):
            if 0 <= label[t] < len(planes):
                planes[label[t], segments[k] + i // 64] |= ONE << np.uint64(i % 64)
            t += 1


@njit(inline="always")
def _popcount(x):
    x = x - (x >> ONE & BY_1)
    x = (x & BY_2) + (x >> TWO & BY_2)
    return np.int64((x + (x >> FOUR) & BY_4) * BYTES >> TOP)


@compiled
def _common_of_two(a, b, c, d):
    """How many bits a and b have in common with c and d: four counts for four words, each of which is read once."""
    ac = ad = bc = bd = np.int64(0)
    for w in range(len(a)):
        from_a, from_b, from_c, from_d = a[w], b[w], c[w], d[w]
        ac += _popcount(from_a & from_c)
        ad += _popcount(from_a & from_d)
        bc += _popcount(from_b & from_c)
        bd += _popcount(from_b & from_d)
    return ac, ad, bc, bd


@compiled
def count_pairs(p, q, segments, out):
    """out[k, u, v, i, j]: the bits that p[u, i] and q[v, j] have in common in segment k of the words.

    p (U, I, W) and q (V, J, W) are bit planes; segments (K + 1,) bounds the agents' words; out is int32.
    """
    (U, I), (V, J) = p.shape[:2], q.shape[:2]
    out[:] = 0
    chunk = max(64, CACHE_WORDS // max(V * J, 1))
    for k in range(len(segments) - 1):
        for first in range(segments[k], segments[k + 1], chunk):
            stop = min(first + chunk, segments[k + 1])
            for u in range(U):
                for i in range(0, I, 2):
                    other = min(i + 1, I - 1)  # the last one again where their number is odd
                    a, b = p[u, i, first:stop], p[u, other, first:stop]
                    for v in range(V):
                        for j in range(0, J, 2):
                            last = min(j + 1, J - 1)
                            ac, ad, bc, bd = _common_of_two(a, b, q[v, j, first:stop], q[v, last, first:stop])
                            out[k, u, v, i, j] += ac
                            if last > j:
                                out[k, u, v, i, last] += ad
                            if other > i:
                                out[k, u, v, other, j] += bc
                            if last > j and other > i:
                                out[k, u, v, other, last] += bd


@compiled
def sweep_losses(cells, table, out):
    """The fixed-point loss of the best f of two agents for every pair of encoders (I, J): every bin is tried.

    cells (2, U, V, I, J) count pairs of values; table is the softplus table as float64, whose products with the counts
    stay below 2^53, so that nothing is ever rounded.
    """
    _, U, V, n_i, n_j = cells.shape
    last = len(table) - 1
    least, total = np.empty(n_j), np.empty(n_j)
    for i in range(n_i):
        total[:] = 0.0
        for u in range(U):
            for v in range(V):
                a, b = cells[0, u, v, i], cells[1, u, v, i]
                least[:] = np.inf
                for bin_ in range(last + 1):
                    from_a, from_b = table[last - bin_], table[bin_]
                    for j in range(n_j):
                        loss = a[j] * from_a + b[j] * from_b
                        least[j] = loss if loss < least[j] else least[j]
                for j in range(n_j):
                    total[j] += least[j]
        for j in range(n_j):
            out[i, j] = np.int64(total[j])


@compiled
def corner_losses(cells, logs, surprise, corners, xi, n_xi, out):
    """The same for K > 2 agents: the least loss over the 2^(K-1) grid points around the log ratios.

    logs (n + 1,) holds the logarithms of the counts; surprise (size^(K-1), K) each agent's loss at every grid point;
    corners (2^(K-1),) how far these points lie behind the lowest of them in that table. All are NumPy's, so that bins
    are decided as `losses.best_bins` decides.
    """
    K = len(cells)
    out[:] = 0
    for u, v, i, j in np.ndindex(cells.shape[1:]):
        below = 0
        for k in range(1, K):
            position = (logs[cells[0, u, v, i, j]] - logs[cells[k, u, v, i, j]]) / xi + n_xi / 2
            clipped = min(max(position, 0.0), float(n_xi)) if position == position else 0.0
            below = below * (n_xi + 1) + max(min(int(clipped), n_xi - 1), 0)
        least = np.int64(2**62)
        for corner in corners:
            loss = np.int64(0)
            for k in range(K):
                loss += cells[k, u, v, i, j] * surprise[below + corner, k]
            least = min(least, loss)
        out[i, j] += least


@compiled
def table_ratios(cells, n_log_n, ratio, freedom):
    """How far the rows of tables depend on their columns: log-likelihood ratios, and their degrees of freedom.

    cells    int32 (S, A, B, I, J): S tables of A rows and B columns for each (i, j), whose ratios are added up
    n_log_n  int64 (n + 1,): n ln n in fixed point, for every count up to the largest total
    ratio    int64 (I, J), zeros: gets the sum of n ln n over cells, less that over rows and columns, plus totals'
    freedom  int64 (I, J), zeros: gets the sum of (rows - 1)(columns - 1), of those that are not empty
    """
    S, A, B, n_i, n_j = cells.shape
    margin, total, used = np.empty(n_j, np.int64), np.empty(n_j, np.int64), np.empty((2, n_j), np.int64)
    for i in range(n_i):
        out = ratio[i]
        for s in range(S):
            total[:], used[:] = 0, 0
            for a in range(A):
                margin[:] = 0
                for b in range(B):
                    cell = cells[s, a, b, i]
                    for j in range(n_j):
                        margin[j] += cell[j]
                        out[j] += n_log_n[cell[j]]
                total += margin
                _take_margin(margin, n_log_n, out, used[0])
            for b in range(B):
                margin[:] = 0
                for a in range(A):
                    margin += cells[s, a, b, i]
                _take_margin(margin, n_log_n, out, used[1])
            for j in range(n_j):
                if total[j] > 0:
                    out[j] += n_log_n[total[j]]
                    freedom[i, j] += (used[0, j] - 1) * (used[1, j] - 1)


@njit(inline="always")
def _take_margin(margin, n_log_n, out, used):
    """One row or column of every table: what it takes off the ratio, and whether it is there at all."""
    for j in range(len(margin)):
        out[j] -= n_log_n[margin[j]]
        used[j] += margin[j] > 0
