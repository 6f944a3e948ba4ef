"""Whether values depend on more than they should: triple counts of encoders, and likelihood ratios read off them.

A triple count is a pair count among the trajectories in which a third encoder has one value, so the compiled loop over
bit planes serves for it as well. Ratios are kept in fixed point, like losses: sums are exact whatever their order.

All views here are of the same trajectories, those that have both steps of a pair.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, xlogy

from craftrl.core.losses import FIXED_POINT
from craftrl.engine import counting
from craftrl.engine.counting import Counter, Int32, Int64, count_matched, count_planes, slices
from craftrl.engine.packing import Packed, View

__all__ = ["agent_dependence", "dependence", "likely_dependence"]

LEVEL = 0.1  # how often the largest of all ratios that are compared exceeds its allowance by chance

Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]


def agent_dependence(counter: Counter, given: View, others: View) -> Int64:
    """What some encoder of `others` says about the agent once the value of encoder i of `given` is known: (I,).

    The largest log-likelihood ratio over `others`, less what chance allows it, in fixed point; at least 0.
    """
    K, P, N_s = counter.tau.K, counter.size(others), counter.n_values(given)
    allowed = chance_ratios((K - 1) * N_s * (counter.N_s - 1), P)
    table = n_log_n(int(counter.totals(given, others).sum()))
    found = []
    for rows in slices(counter.size(given), counting.TILE_BYTES // (16 * K * N_s * counter.N_s * P)):
        cells = counter.pairs(given.part(rows), others).transpose(1, 0, 2, 3, 4)
        found.append(_excess(cells, table, allowed).max(axis=1))
    return np.maximum(np.concatenate(found), 0)


def dependence(counter: Counter, given: View, others: View, target: View, wanted: Bools | None = None) -> Int64:
    """How far the value of `target` j depends on some encoder of `others`, given `given` i and the agent: (I, J).

    The largest log-likelihood ratio over `others`, less what chance allows it, in fixed point; at least 0. Only pairs
    that are `wanted` are counted; the others are left at 0.
    """
    worst = np.zeros((counter.size(given), counter.size(target)), dtype=np.int64)
    if counter.n_values(target) == 1:
        return worst
    wanted = np.ones(worst.shape, dtype=bool) if wanted is None else wanted
    allowed, table = _scale(counter, given, others, target)
    uw, uv = counter.pairs(given, others), counter.pairs(given, target)
    cells = counter.tau.K * counter.n_values(given) * counter.N_s * counter.N_s
    for some in slices(counter.size(others), counting.TILE_BYTES // (16 * cells * max(int(wanted.sum()), 1))):
        wv, *triples = counter.parts.total(_triples, given, others.take(some), target, wanted)
        for i, inner in zip(np.flatnonzero(wanted.any(axis=1)), triples):
            j = np.flatnonzero(wanted[i])
            whole = _complete(inner, uw[..., i, some][..., None], uv[..., i, :][..., None, j], wv[..., j])
            worst[i, j] = np.maximum(worst[i, j], _excess(whole, table, allowed).max(axis=0))
    return worst


def likely_dependence(counter: Counter, given: View, others: View, target: View) -> Int64:
    """A lower bound of `dependence` for all pairs of encoders: (I, J).

    For each target only that one of `others` is tried which it depends on most by itself, so that the two of them are
    like one encoder, and pairs are all that is to be counted.
    """
    I, J = counter.size(given), counter.size(target)
    bound = np.zeros((I, J), dtype=np.int64)
    if counter.n_values(target) == 1:
        return bound
    allowed, table = _scale(counter, given, others, target)
    partners = others.take(_most_dependent(counter, others, target, table, allowed))
    wv = counter.parts.total(count_matched, partners, target)[..., None, :]
    cells = counter.tau.K * counter.n_values(given) * counter.N_s**2
    for rows in slices(I, counting.TILE_BYTES // (16 * cells * J)):
        some = given.part(rows)
        inner = counter.parts.total(_joint, some, partners, target)
        whole = _complete(inner, counter.pairs(some, partners), counter.pairs(some, target), wv)
        bound[rows] = np.maximum(_excess(whole, table, allowed), 0)
    return bound


def _most_dependent(counter: Counter, others: View, target: View, table: Int64, allowed: Int64) -> NDArray[np.intp]:
    """For each target the encoder of `others` that it depends on most, given the agent alone: (J,)."""
    J = counter.size(target)
    best, which = np.full(J, np.iinfo(np.int64).min), np.zeros(J, dtype=np.intp)
    for rows in slices(counter.size(others), counting.TILE_BYTES // (16 * counter.tau.K * counter.N_s**2 * J)):
        found = _excess(counter.pairs(others.take(rows), target), table, allowed)
        row = np.argmax(found, axis=0)
        here = np.take_along_axis(found, row[None], axis=0)[0]
        which = np.where(here > best, rows.start + row, which)
        best = np.maximum(best, here)
    return which


# -- what is asked of every part -------------------------------------------------------------------------------------


def _triples(part: Packed, given: View, others: View, target: View, wanted: Bools) -> tuple[Int32, ...]:
    """Counts of values >= 1 of `others` and `target`, and of these and each encoder i of `given`.

    (K, W, V, P, J), and (K, U, W, V, P, J_i) for each i of which some pairs (i, j) are wanted, with these j.
    """
    psi, phi, codes = part.planes(others), part.planes(given), part.planes(target)
    wv, triples = count_planes(psi, codes, part.segments), []
    for i in np.flatnonzero(wanted.any(axis=1)):
        columns = np.ascontiguousarray(codes[:, wanted[i]])
        found = [count_planes(psi & plane[i], columns, part.segments) for plane in phi]
        none = np.zeros((len(wv), 0, *wv.shape[1:-1], columns.shape[1]), dtype=np.int32)
        triples.append(np.stack(found, axis=1) if found else none)
    return wv, *triples


def _joint(part: Packed, given: View, partners: View, target: View) -> Int32:
    """Counts of values >= 1 of encoders of `given`, and of each target and its partner: (K, U, W, V, I, J)."""
    psi, codes = part.planes(partners), part.planes(target)
    both = (psi[:, None] & codes).reshape(-1, *codes.shape[1:])
    inner = count_planes(part.planes(given), both, part.segments)
    return inner.reshape(*inner.shape[:2], len(psi), len(codes), *inner.shape[3:])


# -- likelihood ratios ---------------------------------------------------------------------------------------------


def _complete(inner: Ints, uw: Ints, uv: Ints, wv: Ints) -> Int32:
    """Counts of all values of three encoders (K, U, W, V, I, J) from those of values >= 1, `inner`.

    uw, uv, wv are pair counts (K, ., ., I, J), `wv` for values >= 1 only; what is missing in a sum has value 0.
    """
    K, U, W, V, I, J = inner.shape
    cells = np.empty((K, U + 1, W + 1, V + 1, I, J), dtype=np.int32)
    cells[:, 1:, 1:, 1:] = inner
    cells[:, 0, 1:, 1:] = wv - inner.sum(axis=1)
    cells[:, :, 0, 1:] = uv[:, :, 1:] - cells[:, :, 1:, 1:].sum(axis=2)
    cells[:, :, :, 0] = uw - cells[:, :, :, 1:].sum(axis=3)
    return cells


def _excess(cells: Ints, table: Int64, allowed: Int64) -> Int64:
    """The ratios of tables (..., A, B, I, J), added up over what comes first, less what chance allows: (I, J)."""
    from craftrl.engine.kernels import table_ratios

    cells = np.ascontiguousarray(cells, dtype=np.int32).reshape(-1, *cells.shape[-4:])
    ratio, freedom = np.empty((2, *cells.shape[-2:]), dtype=np.int64)
    table_ratios(cells, table, ratio, freedom)
    return ratio - allowed[freedom]


def _scale(counter: Counter, given: View, others: View, target: View) -> tuple[Int64, Int64]:
    """What chance allows, and n ln n, for tables of these encoders."""
    freedom = counter.tau.K * counter.n_values(given) * (counter.N_s - 1) * (counter.n_values(target) - 1)
    most = int(counter.totals(given, others, target).max())
    return chance_ratios(freedom, counter.size(others)), n_log_n(most)


@lru_cache(maxsize=64)
def chance_ratios(most_freedom: int, n_tried: int, level: float = LEVEL) -> Int64:
    """What the largest of `n_tried` independent log-likelihood ratios exceeds with probability `level` by chance.

    Entry d is for d degrees of freedom, in fixed point: half a quantile of the chi-squared distribution (Wilks 1938).
    """
    each = -np.expm1(np.log1p(-level) / n_tried)
    nats = chdtri(np.arange(1, most_freedom + 1), each) / 2
    table = np.concatenate([[0], np.rint(nats * FIXED_POINT).astype(np.int64)])
    table.flags.writeable = False
    return table


def n_log_n(most: int) -> Int64:
    """n ln n for n = 0..most, in fixed point."""
    return _n_log_n(1 << int(most).bit_length())


@lru_cache(maxsize=4)
def _n_log_n(size: int) -> Int64:
    n = np.arange(size, dtype=np.float64)
    table = np.rint(xlogy(n, n) * FIXED_POINT).astype(np.int64)
    table.flags.writeable = False
    return table
