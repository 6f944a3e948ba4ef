"""The compiled loss of every pair of encoders, straight from counts, bit for bit that of `losses.best_bins`.

Three ways to find each cell's best bin (`bins` says when). A small grid is swept whole, eight cells at a time; in a
large one, a table says where to start looking; for more than two agents, the corners around the log ratios are tried.
All rely on integers only: the float64 of the first hold integers below 2^53.

This module imports numba; see `count_kernel`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from craftrl.engine.packing import LANES

__all__ = ["corner_losses", "look_up_losses", "sweep_losses"]

COLUMNS = 256  # encoders of Phi_{h+1} worked on together: their cells stay in the nearest cache

_I64 = ir.IntType(64)
_I32 = ir.IntType(32)
_F64 = ir.DoubleType()
_FLOATS = ir.VectorType(_F64, LANES)


def _floats_at(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.load(builder.inttoptr(address, _FLOATS.as_pointer()), align=8)


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
        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fma.v{LANES}f64"
        )

        def splat(address: ir.Value, index: ir.Value) -> ir.Value:
            at = builder.inttoptr(builder.add(address, builder.mul(index, _I64(8))), _F64.as_pointer())
            single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), builder.load(at, align=8), _I32(0))
            zeros = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
            return builder.shuffle_vector(single, ir.Constant(_FLOATS, ir.Undefined), zeros)

        with cgutils.for_range_slice(builder, _I64(0), n, _I64(LANES), _I64, inc=True) as (start, _):
            offset = builder.mul(start, _I64(8))
            count_a = _floats_at(builder, builder.add(a, offset))
            count_b = _floats_at(builder, builder.add(b, offset))
            before, loop = builder.block, builder.append_basic_block("bins")
            after = builder.append_basic_block("least")
            builder.branch(loop)
            builder.position_at_end(loop)
            index, least = builder.phi(_I64), builder.phi(_FLOATS)
            product = builder.fmul(count_b, splat(table_b, index))
            loss = builder.call(fma, [count_a, splat(table_a, index), product])
            lower = builder.select(builder.fcmp_ordered("<", loss, least), loss, least)
            following = builder.add(index, _I64(1))
            index.add_incoming(_I64(0), before)
            index.add_incoming(following, loop)
            least.add_incoming(ir.Constant(_FLOATS, [float("inf")] * LANES), before)
            least.add_incoming(lower, loop)
            builder.cbranch(builder.icmp_signed("<", following, n_bins), loop, after)
            builder.position_at_end(after)
            at = builder.inttoptr(builder.add(out, offset), _FLOATS.as_pointer())
            builder.store(builder.fadd(builder.load(at, align=8), lower), at, align=8)
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True)
def _fill_cells(inner, i, first, stop, p, q, total, cells):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
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
                _fill_cells(inner[k], i, first, stop, p[k], q[k], totals[k], cells[k])
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


@njit(cache=True, nogil=True)
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
            _fill_cells(inner[k], i, 0, n_j, p[k], q[k], totals[k], cells[k])
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


@njit(cache=True, nogil=True)
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
            _fill_cells(inner[k], i, 0, n_j, p[k], q[k], totals[k], cells[k])
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
