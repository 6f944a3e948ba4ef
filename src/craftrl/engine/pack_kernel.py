"""The compiled transposition of observations to bit planes.

This module imports numba; see `count_kernel`.
"""

import numpy as np
from numba import njit

__all__ = ["pack_bits"]


@njit(cache=True, nogil=True)
def pack_bits(x, planes, word):  # type: ignore[no-untyped-def]
    """planes[c, word + r // 64] gets x[r, c] as bit r % 64; returns the OR of all values, 1 if x is of 0s and 1s.

    Eight rows at a time become one byte per column, eight such bytes one word, eight words one cache line.
    """
    n, n_columns = x.shape
    octet = np.empty(n_columns, np.uint8)
    line = np.empty((8, n_columns), np.uint64)
    seen = np.uint8(0)
    for start in range(0, n, 512):
        stop = min(start + 512, n)
        line[:] = 0
        for r in range(start, stop, 8):
            if r + 8 <= stop:
                x0, x1, x2, x3 = x[r], x[r + 1], x[r + 2], x[r + 3]
                x4, x5, x6, x7 = x[r + 4], x[r + 5], x[r + 6], x[r + 7]
                for c in range(n_columns):
                    low = x0[c] | x1[c] << 1 | x2[c] << 2 | x3[c] << 3
                    octet[c] = low | x4[c] << 4 | x5[c] << 5 | x6[c] << 6 | x7[c] << 7
                    seen |= x0[c] | x1[c] | x2[c] | x3[c] | x4[c] | x5[c] | x6[c] | x7[c]
            else:
                octet[:] = 0
                for s in range(r, stop):
                    for c in range(n_columns):
                        octet[c] |= x[s, c] << (s - r)
                        seen |= x[s, c]
            shift = np.uint64((r - start) % 64)
            words = line[(r - start) // 64]
            for c in range(n_columns):
                words[c] |= np.uint64(octet[c]) << shift
        for c in range(n_columns):
            for k in range((stop - start + 63) // 64):
                planes[c, word + start // 64 + k] = line[k, c]
    return seen
