"""The compiled loss of every pair of encoders over a small grid: every bin is tried, eight cells at a time.

Straight from counts, bit for bit that of `losses.best_bins`; `bins` says when. The float64 here hold integers below
2^53, so nothing is rounded.

This module imports numba; see `count_kernel`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from craftrl.engine.compiled import compiled
from craftrl.engine.packing import LANES

__all__ = ["binary_losses", "fill_cells", "sweep_losses"]

COLUMNS = 256  # encoders of Phi_{h+1} worked on together: their cells stay in the nearest cache

_I64 = ir.IntType(64)
_I32 = ir.IntType(32)
_F64 = ir.DoubleType()
_FLOATS = ir.VectorType(_F64, LANES)


def _floats_at(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.load(builder.inttoptr(address, _FLOATS.as_pointer()), align=8)


def _splat(builder: ir.IRBuilder, address: ir.Value, index: ir.Value) -> ir.Value:
    """Entry `index` of a table of float64, in all lanes."""
    at = builder.inttoptr(builder.add(address, builder.mul(index, _I64(8))), _F64.as_pointer())
    return _in_all_lanes(builder, builder.load(at, align=8))


def _in_all_lanes(builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
    nothing = ir.Constant(_FLOATS, ir.Undefined)
    zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(nothing, number, _I32(0)), nothing, zeros)


def _least_of_bins(
    builder: ir.IRBuilder,
    cells: list[tuple[ir.Value, ir.Value]],
    table_a: ir.Value,
    table_b: ir.Value,
    n_bins: ir.Value,
) -> list[ir.Value]:
    """For each cell (a, b) the min over bins of a * table_a[bin] + b * table_b[bin]: a loop, all cells side by side."""
    fma = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fma.v{LANES}f64"
    )
    before, loop, after = builder.block, builder.append_basic_block("bins"), builder.append_basic_block("least")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(_I64)
    so_far = [builder.phi(_FLOATS) for _ in cells]
    from_a, from_b = _splat(builder, table_a, index), _splat(builder, table_b, index)
    lower = []
    for (a, b), least in zip(cells, so_far):
        loss = builder.call(fma, [a, from_a, builder.fmul(b, from_b)])
        lower.append(builder.select(builder.fcmp_ordered("<", loss, least), loss, least))
        least.add_incoming(ir.Constant(_FLOATS, [float("inf")] * LANES), before)
        least.add_incoming(lower[-1], loop)
    following = builder.add(index, _I64(1))
    index.add_incoming(_I64(0), before)
    index.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, n_bins), loop, after)
    builder.position_at_end(after)
    return lower


@intrinsic
def _add_least_losses(
    typing_context: Any, a: Any, b: Any, n: Any, table_a: Any, table_b: Any, n_bins: Any, out: Any
) -> Any:
    """out[j] += min over bins of a[j] * table_a[bin] + b[j] * table_b[bin], for n (a multiple of LANES) cells.

    All are addresses of float64 that hold integers; the sums stay below 2^53, so that nothing is ever rounded.
    """
    signature = types.void(*[types.intp] * 7)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        a, b, n, table_a, table_b, n_bins, out = args
        with cgutils.for_range_slice(builder, _I64(0), n, _I64(LANES), _I64, inc=True) as (start, _):
            offset = builder.mul(start, _I64(8))
            cell = (_floats_at(builder, builder.add(a, offset)), _floats_at(builder, builder.add(b, offset)))
            (least,) = _least_of_bins(builder, [cell], table_a, table_b, n_bins)
            at = builder.inttoptr(builder.add(out, offset), _FLOATS.as_pointer())
            builder.store(builder.fadd(builder.load(at, align=8), least), at, align=8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _binary_losses(
    typing_context: Any,
    count_a: Any,
    count_b: Any,
    p_a: Any,
    p_b: Any,
    q_a: Any,
    q_b: Any,
    n_a: Any,
    n_b: Any,
    n: Any,
    table_a: Any,
    table_b: Any,
    n_bins: Any,
    out: Any,
) -> Any:
    """out[j] = the loss of one binary encoder with each of n (a multiple of LANES) others: all four cells at once.

    count_a, count_b are addresses of int32, how often both encoders are 1; q_a, q_b of float64, how often each other
    one is; p_a, p_b and n_a, n_b are float64 themselves, how often this one is, and all pairs.
    """
    address, number = types.intp, types.float64
    signature = types.void(address, address, number, number, address, address, number, number, *[address] * 5)

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        count_a, count_b, p_a, p_b, q_a, q_b, n_a, n_b, n, table_a, table_b, n_bins, out = args
        counts_kind = ir.VectorType(_I32, LANES)
        with cgutils.for_range_slice(builder, _I64(0), n, _I64(LANES), _I64, inc=True) as (start, _):
            agents = []
            for count, p, q, total in ((count_a, p_a, q_a, n_a), (count_b, p_b, q_b, n_b)):
                at = builder.add(count, builder.mul(start, _I64(4)))
                loaded = builder.load(builder.inttoptr(at, counts_kind.as_pointer()), align=4)
                both = builder.sitofp(loaded, _FLOATS)
                theirs = _floats_at(builder, builder.add(q, builder.mul(start, _I64(8))))
                alone = builder.fsub(_in_all_lanes(builder, p), both)
                neither = builder.fsub(builder.fsub(_in_all_lanes(builder, total), theirs), alone)
                agents.append([both, alone, builder.fsub(theirs, both), neither])
            least = _least_of_bins(builder, list(zip(*agents)), table_a, table_b, n_bins)
            loss = builder.fadd(builder.fadd(least[0], least[1]), builder.fadd(least[2], least[3]))
            at = builder.inttoptr(builder.add(out, builder.mul(start, _I64(8))), _FLOATS.as_pointer())
            builder.store(loss, at, align=8)
        return context.get_dummy_value()

    return signature, generate


@compiled
def binary_losses(inner, p, q, totals, table, out):  # type: ignore[no-untyped-def]
    """`sweep_losses` for encoders with two values, by far the most common case: no cell ever leaves the registers.

    inner (2, 1, 1, I', J') has room for whole vectors in its rows.
    """
    n_i, n_j = out.shape
    width = (n_j + LANES - 1) // LANES * LANES
    q_counts = np.zeros((2, width))
    q_counts[:, :n_j] = q[:, 0]
    row = np.empty(width)
    backwards = table[::-1].copy()
    for i in range(n_i):
        at = inner.ctypes.data + i * inner.strides[3]
        _binary_losses(  # type: ignore[call-arg]
            at,
            at + inner.strides[0],
            float(p[0, 0, i]),
            float(p[1, 0, i]),
            q_counts.ctypes.data,
            q_counts.ctypes.data + 8 * width,
            float(totals[0]),
            float(totals[1]),
            width,
            backwards.ctypes.data,
            table.ctypes.data,
            len(table),
            row.ctypes.data,
        )
        losses = out[i]
        for j in range(n_j):
            losses[j] = np.int64(row[j])


@compiled
def fill_cells(inner, i, first, stop, p, q, total, cells):  # type: ignore[no-untyped-def]
    """cells[u, v, j]: one agent's counts of all pairs of values of encoders i and first + j, value 0 by complement.

    inner (U, V, I, J) counts the pairs of values >= 1; p (U, I) and q (V, J) each encoder's values >= 1. Rows are taken
    out before they are looped over: the compiler then sees arrays without gaps, and vectorises.
    """
    n_j = stop - first
    corner = cells[0, 0]
    for j in range(n_j):
        corner[j] = total
    for v in range(q.shape[0]):
        q_row, column = q[v, first:stop], cells[0, v + 1]
        for j in range(n_j):
            column[j] = q_row[j]
            corner[j] -= q_row[j]
    for u in range(p.shape[0]):
        p_count, row = p[u, i], cells[u + 1, 0]
        for j in range(n_j):
            row[j] = p_count
            corner[j] -= p_count
        for v in range(q.shape[0]):
            counts, column, cell = inner[u, v, i, first:stop], cells[0, v + 1], cells[u + 1, v + 1]
            for j in range(n_j):
                cell[j] = counts[j]
            for j in range(n_j):
                row[j] -= counts[j]
            for j in range(n_j):
                column[j] -= counts[j]
            for j in range(n_j):
                corner[j] += counts[j]


@compiled
def sweep_losses(inner, p, q, totals, table, out):  # type: ignore[no-untyped-def]
    """The fixed-point loss of the best f for every pair of encoders (I, J), by trying every bin of the grid.

    inner (2, U, V, I', J') from `count_pairs`; p (2, U, I) and q (2, V, J) count values >= 1, C-ordered; table is
    the softplus table as float64, whose products with the counts stay below 2^53.
    """
    cells = np.zeros((2, p.shape[1] + 1, q.shape[1] + 1, COLUMNS))
    n_cells = cells.shape[1] * cells.shape[2]
    sums = np.empty(COLUMNS)
    backwards = table[::-1].copy()
    for first in range(0, out.shape[1], COLUMNS):
        stop = min(first + COLUMNS, out.shape[1])
        width = (stop - first + LANES - 1) // LANES * LANES
        for i in range(out.shape[0]):
            for k in range(2):
                fill_cells(inner[k], i, first, stop, p[k], q[k], totals[k], cells[k])
            sums[:] = 0.0
            for cell in range(n_cells):
                at = cells.ctypes.data + 8 * COLUMNS * cell
                _add_least_losses(  # type: ignore[call-arg]
                    at,
                    at + 8 * COLUMNS * n_cells,
                    width,
                    backwards.ctypes.data,
                    table.ctypes.data,
                    len(table),
                    sums.ctypes.data,
                )
            losses = out[i, first:stop]
            for j in range(stop - first):
                losses[j] = np.int64(sums[j])
