"""The compiled transposition of observations to bit planes, and of labels to one plane per group.

Observations are read in blocks of 64 trajectories x 64 features, a byte each. Shifting and OR-ing eight rows gives a
byte of eight trajectories for each feature; eight such rows of bytes, interleaved three times, give a word
of 64 trajectories for each feature. `_pack_block` does this in registers.

This module imports numba; see `count_kernel`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from craftrl.engine.compiled import compiled

__all__ = ["pack_bits", "pack_labels"]

SIDE = 64  # rows and columns of a block

_I64 = ir.IntType(64)
_LINE = ir.VectorType(_I64, 8)  # 64 bytes


def _interleaved(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, bits: int) -> tuple[ir.Value, ir.Value]:
    """Items of so many bits taken from a and b in turn, within each quarter: the lower halves, the upper halves."""
    n, quarter = 512 // bits, 128 // bits
    kind = ir.VectorType(ir.IntType(bits), n)
    a, b = builder.bitcast(a, kind), builder.bitcast(b, kind)

    def mixed(first: int) -> ir.Value:
        order = [
            lane + first + i + side * n for lane in range(0, n, quarter) for i in range(quarter // 2) for side in (0, 1)
        ]
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), n), order))

    return mixed(0), mixed(quarter // 2)


# After three interleavings, word i of a block belongs to this column.
_COLUMN_OF_WORD = np.array(
    [16 * lane + 2 * part + side for part in range(8) for lane in range(4) for side in (0, 1)], dtype=np.int64
)


@intrinsic
def _pack_block(typing_context: Any, x: Any, stride: Any, out: Any) -> Any:
    """64 rows of 64 bytes of 0s and 1s at address x to 64 words at out; returns the OR of all bytes."""

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        x, stride, out = args
        seen = ir.Constant(_LINE, [0] * 8)
        octets = []
        for first in range(0, SIDE, 8):
            octet = ir.Constant(_LINE, [0] * 8)
            for r in range(8):
                at = b.add(x, b.mul(stride, _I64(first + r)))
                row = b.load(b.inttoptr(at, _LINE.as_pointer()), align=1)
                seen = b.or_(seen, row)
                octet = b.or_(octet, b.shl(row, ir.Constant(_LINE, [r] * 8)))
            octets.append(octet)
        pairs = [_interleaved(b, octets[i], octets[i + 1], 8) for i in range(0, 8, 2)]
        fours = [[_interleaved(b, pairs[i][s], pairs[i + 1][s], 16) for s in (0, 1)] for i in (0, 2)]
        parts = [word for s in (0, 1) for t in (0, 1) for word in _interleaved(b, fours[0][s][t], fours[1][s][t], 32)]
        for i, part in enumerate(parts):
            at = b.inttoptr(b.add(out, _I64(64 * i)), _LINE.as_pointer())
            b.store(b.bitcast(part, _LINE), at, align=8)
        total = b.module.globals.get("llvm.vector.reduce.or.v8i64") or ir.Function(
            b.module, ir.FunctionType(_I64, [_LINE]), "llvm.vector.reduce.or.v8i64"
        )
        return b.call(total, [seen])

    return types.uint64(types.intp, types.intp, types.intp), generate


@compiled
def pack_bits(x, planes, word):  # type: ignore[no-untyped-def]
    """planes[c, word + r // 64] gets x[r, c] as bit r % 64; returns whether x holds 0s and 1s alone.

    x is uint8 (n, F), C-ordered. Eight words of each plane, a cache line, are written at a time.
    """
    n, n_columns = x.shape
    line = np.empty((8, SIDE), np.uint64)
    edge = np.empty((SIDE, SIDE), np.uint8)
    seen = np.uint64(0)
    for start in range(0, n, 8 * SIDE):
        n_words = min(8, (n - start + SIDE - 1) // SIDE)
        for column in range(0, n_columns, SIDE):
            width = min(SIDE, n_columns - column)
            for k in range(n_words):
                row = start + k * SIDE
                height = min(SIDE, n - row)
                first = row * n_columns + column
                # A block may reach over the end of its rows, into the next ones: what it reads there is not used.
                if first + (SIDE - 1) * n_columns + SIDE <= n * n_columns:
                    seen |= _pack_block(x.ctypes.data + first, n_columns, line[k].ctypes.data)  # type: ignore[call-arg]
                else:
                    edge[:] = 0
                    edge[:height, :width] = x[row : row + height, column : column + width]
                    seen |= _pack_block(edge.ctypes.data, SIDE, line[k].ctypes.data)  # type: ignore[call-arg]
            for i in range(SIDE):
                c = _COLUMN_OF_WORD[i]
                if c < width:
                    for k in range(n_words):
                        planes[column + c, word + start // SIDE + k] = line[k, i]
    return seen & np.uint64(0xFEFEFEFEFEFEFEFE) == 0


@compiled
def pack_labels(label, counts, segments, planes):  # type: ignore[no-untyped-def]
    """planes[g] gets a 1 for every trajectory with label g; labels that have no plane are passed over.

    `counts` (K,) trajectories of each agent follow one another in `label`; agent k's words begin at segments[k].
    """
    t = 0
    for k in range(len(counts)):
        for i in range(counts[k]):
            if 0 <= label[t] < len(planes):
                planes[label[t], segments[k] + i // 64] |= np.uint64(1) << np.uint64(i % 64)
            t += 1
