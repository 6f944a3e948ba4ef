"""The compiled inner loop of all counting: popcounts of the ANDs of many bit planes with many others.

It is written in LLVM's vector instructions of eight words (`_add_popcounts`): left to itself, the compiler finds a
version that is ten times slower. On a processor without AVX-512 the same instructions are split into
narrower ones.

This module imports numba. Nothing imports it before there is something to count; the machine code is cached on
disk, so that only the first run after installation compiles.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from craftrl.engine.compiled import compiled
from craftrl.engine.packing import LANES

__all__ = ["ROWS", "count_pairs"]

ROWS = 5  # a block of ROWS x ROWS encoder pairs is counted at once: 25 sums stay in registers
WORD_CHUNK = 512  # words of each plane that are worked on together, so that they stay in the cache

_I64 = ir.IntType(64)
_I32 = ir.IntType(32)
_WORDS = ir.VectorType(_I64, LANES)


def _words_at(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.load(builder.inttoptr(address, _WORDS.as_pointer()), align=8)


@intrinsic
def _add_popcounts(
    typing_context: Any,
    p: Any,
    p_stride: Any,
    p_rows: Any,
    q: Any,
    q_stride: Any,
    q_rows: Any,
    n_bytes: Any,
    out: Any,
    out_stride: Any,
) -> Any:
    """out[r, c] += popcount(p[r] & q[c]) for r, c < ROWS, over n_bytes > 0 (a multiple of 64) of each row.

    p, q and out are addresses, strides are in bytes. Where fewer than ROWS rows are left, the last one is read
    again: `out` has room for the surplus.
    """
    signature = types.void(*[types.intp] * 9)

    def generate(context: Any, b: ir.IRBuilder, signature: Any, args: Any) -> Any:
        p, p_stride, p_rows, q, q_stride, q_rows, n_bytes, out, out_stride = args
        popcount = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(_WORDS, [_WORDS]), f"llvm.ctpop.v{LANES}i64"
        )
        total = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(_I64, [_WORDS]), f"llvm.vector.reduce.add.v{LANES}i64"
        )

        def row_addresses(base: ir.Value, stride: ir.Value, rows: ir.Value) -> list[ir.Value]:
            last = b.sub(rows, _I64(1))
            index = [b.select(b.icmp_signed("<", _I64(r), rows), _I64(r), last) for r in range(ROWS)]
            return [b.add(base, b.mul(stride, i)) for i in index]

        p_at, q_at = row_addresses(p, p_stride, p_rows), row_addresses(q, q_stride, q_rows)
        before, loop, after = b.block, b.append_basic_block("words"), b.append_basic_block("sums")
        b.branch(loop)
        b.position_at_end(loop)
        offset = b.phi(_I64)
        offset.add_incoming(_I64(0), before)
        sums = [[b.phi(_WORDS) for _ in range(ROWS)] for _ in range(ROWS)]
        q_words = [_words_at(b, b.add(at, offset)) for at in q_at]
        grown = []
        for r in range(ROWS):
            p_words = _words_at(b, b.add(p_at[r], offset))
            grown.append([b.add(sums[r][c], b.call(popcount, [b.and_(p_words, q_words[c])])) for c in range(ROWS)])
        following = b.add(offset, _I64(8 * LANES))
        offset.add_incoming(following, loop)
        for r in range(ROWS):
            for c in range(ROWS):
                sums[r][c].add_incoming(ir.Constant(_WORDS, [0] * LANES), before)
                sums[r][c].add_incoming(grown[r][c], loop)
        b.cbranch(b.icmp_signed("<", following, n_bytes), loop, after)
        b.position_at_end(after)
        for r in range(ROWS):
            for c in range(ROWS):
                at = b.inttoptr(b.add(out, b.add(b.mul(out_stride, _I64(r)), _I64(4 * c))), _I32.as_pointer())
                count = b.trunc(b.call(total, [grown[r][c]]), _I32)
                b.store(b.add(b.load(at, align=4), count), at, align=4)
        return context.get_dummy_value()

    return signature, generate


@compiled
def count_pairs(p, q, segments, out):  # type: ignore[no-untyped-def]
    """out[k, u, v, i, j] = popcount(p[u, i] & q[v, j]) over segment k of the words.

    p (U, I, W) and q (V, J, W) are bit planes; segments (K + 1,) bounds the agents' words, in whole vectors; out is
    int32 with I and J rounded up to whole blocks of ROWS.
    """
    out[:] = 0
    for k in range(len(segments) - 1):
        for first in range(segments[k], segments[k + 1], WORD_CHUNK):
            n_bytes = 8 * (min(first + WORD_CHUNK, segments[k + 1]) - first)
            for u in range(p.shape[0]):
                for i in range(0, p.shape[1], ROWS):
                    p_at = p.ctypes.data + u * p.strides[0] + i * p.strides[1] + 8 * first
                    for v in range(q.shape[0]):
                        q_base = q.ctypes.data + v * q.strides[0] + 8 * first
                        row = out[k, u, v, i:]
                        for j in range(0, q.shape[1], ROWS):
                            _add_popcounts(  # type: ignore[call-arg]
                                p_at,
                                p.strides[1],
                                min(ROWS, p.shape[1] - i),
                                q_base + j * q.strides[1],
                                q.strides[1],
                                min(ROWS, q.shape[1] - j),
                                n_bytes,
                                row.ctypes.data + 4 * j,
                                row.strides[0],
                            )
