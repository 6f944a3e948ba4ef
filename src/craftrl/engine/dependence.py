"""Whether values depend on more than they should: triple counts of encoders, and likelihood ratios read off them.

A triple count is a pair count among the trajectories in which a third encoder has one value, so the compiled loop over
bit planes serves for it as well. Ratios are kept in fixed point, like losses: sums are exact whatever their order.

All encoders here are of the same trajectories: a step is cut down (`PackedStep.among`) to those that the others have.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, xlogy

from craftrl.core.losses import FIXED_POINT
from craftrl.engine.counting import TILE_BYTES, Int64, count_planes, pair_counts
from craftrl.engine.packing import PackedStep

__all__ = ["LEVEL", "agent_dependence", "chance_ratios", "dependence", "likely_dependence", "n_log_n"]

LEVEL = 0.1  # how often the largest of all ratios that are compared exceeds its allowance by chance

Ints = NDArray[np.integer]


def agent_dependence(given: PackedStep, others: PackedStep, tile_bytes: int = TILE_BYTES) -> Int64:
    """What some encoder of `others` says about the agent once the value of encoder i of `given` is known: (I,).

    The largest log-likelihood ratio over `others`, less what chance allows it, in fixed point; at least 0.
    """
    K, P = len(given.counts), others.size
    allowed = chance_ratios((K - 1) * given.N_s * (others.N_s - 1), P)
    table = n_log_n(int(others.totals.sum()))
    most = np.zeros(given.size, dtype=np.int64)
    for rows in _slices(given.size, tile_bytes // (16 * K * given.N_s * others.N_s * P)):
        cells = pair_counts(given, others, rows).transpose(2, 4, 3, 0, 1)
        most[rows] = _excess(cells, table, allowed).max(axis=1)
    return most


def dependence(
    given: PackedStep,
    others: PackedStep,
    target: PackedStep,
    wanted: NDArray[np.bool_] | None = None,
    tile_bytes: int = TILE_BYTES,
) -> Int64:
    """How far the value of `target` j depends on some encoder of `others`, given `given` i and the agent: (I, J).

    The largest log-likelihood ratio over `others`, less what chance allows it, in fixed point; at least 0. Only pairs
    that are `wanted` are counted; the others are left at 0.
    """
    worst = np.zeros((given.size, target.size), dtype=np.int64)
    if target.N_s == 1:
        return worst
    allowed, table = _allowed(given, others, target), n_log_n(int(target.totals.max()))
    uw, uv = _by_agent(pair_counts(given, others)), _by_agent(pair_counts(given, target))
    wanted = np.ones(worst.shape, dtype=bool) if wanted is None else wanted
    cell_bytes = 16 * len(given.counts) * given.N_s * others.N_s * target.N_s * max(int(wanted.sum()), 1)
    for some in _slices(others.size, tile_bytes // cell_bytes):
        wv, triples = _triple_counts(given, others, target, some, wanted)
        for i, inner in zip(np.flatnonzero(wanted.any(axis=1)), triples):
            j = np.flatnonzero(wanted[i])
            cells = _complete(inner, uw[..., i, some][..., None], uv[..., i, :][..., None, j], wv[..., j])
            worst[i, j] = np.maximum(worst[i, j], _excess(cells, table, allowed).max(axis=0))
    return worst


def _triple_counts(
    given: PackedStep, others: PackedStep, target: PackedStep, some: slice, wanted: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], tuple[NDArray[np.int32], ...]]:
    """Counts of values >= 1 of `others` and `target`, and of these and each encoder i of `given`.

    (K, W, V, P, J), and (K, U, W, V, P, J_i) for each i of which some pairs (i, j) are wanted, with these j.
    """
    psi = others.planes[:, some]
    wv, triples = _inner_counts(psi, target.planes, target), []
    for i in np.flatnonzero(wanted.any(axis=1)):
        columns = np.ascontiguousarray(target.planes[:, wanted[i]])
        found = [_inner_counts(psi & plane[i], columns, target) for plane in given.planes]
        none = np.zeros((len(wv), 0, *wv.shape[1:-1], columns.shape[1]), dtype=np.int32)
        triples.append(np.stack(found, axis=1) if found else none)
    return wv, tuple(triples)


def likely_dependence(given: PackedStep, others: PackedStep, target: PackedStep, tile_bytes: int = TILE_BYTES) -> Int64:
    """A lower bound of `dependence` for all pairs of encoders: (I, J).

    For each target only that one of `others` is tried which it depends on most by itself, so that the two of them are
    like one encoder, and pairs are all that is to be counted.
    """
    bound = np.zeros((given.size, target.size), dtype=np.int64)
    if target.N_s == 1:
        return bound
    allowed, table = _allowed(given, others, target), n_log_n(int(target.totals.max()))
    K, W, V = len(given.counts), others.N_s - 1, target.N_s - 1
    partners = others.take(_most_dependent(others, target, table, allowed, tile_bytes))
    wv = _joint_margins(partners, target)
    for rows in _slices(given.size, tile_bytes // (16 * K * given.N_s * (W + 1) * (V + 1) * target.size)):
        inner = _joint_counts(given, partners, target, rows)
        uw, uv = _by_agent(pair_counts(given, partners, rows)), _by_agent(pair_counts(given, target, rows))
        bound[rows] = _excess(_complete(inner, uw, uv, wv), table, allowed)
    return bound


def _joint(partners: PackedStep, target: PackedStep) -> NDArray[np.uint64]:
    """Planes (W V, J, words) of each target and its partner, as of one encoder."""
    W, V, planes = partners.N_s - 1, target.N_s - 1, target.planes
    return (partners.planes[:, None] & planes).reshape(W * V, *planes.shape[1:])


def _joint_margins(partners: PackedStep, target: PackedStep) -> Int64:
    """How often each agent shows each two values >= 1 of each target and its partner: (K, W, V, 1, J)."""
    counts = target.value_counts_among(_joint(partners, target))
    return counts.reshape(len(counts), partners.N_s - 1, target.N_s - 1, 1, target.size)


def _joint_counts(given: PackedStep, partners: PackedStep, target: PackedStep, rows: slice) -> NDArray[np.int32]:
    """The same for these and some encoders of `given`: (K, U, W, V, I, J)."""
    inner = _inner_counts(given.planes[:, rows], _joint(partners, target), target)
    return inner.reshape(*inner.shape[:2], partners.N_s - 1, target.N_s - 1, *inner.shape[3:])


def _most_dependent(
    others: PackedStep, target: PackedStep, table: Int64, allowed: Int64, tile_bytes: int
) -> NDArray[np.intp]:
    """For each target the encoder of `others` that it depends on most, given the agent alone: (J,)."""
    best, which = np.full(target.size, np.iinfo(np.int64).min), np.zeros(target.size, dtype=np.intp)
    for rows in _slices(others.size, tile_bytes // (16 * len(others.counts) * others.N_s * target.N_s * target.size)):
        found = _excess(_by_agent(pair_counts(others, target, rows)), table, allowed, least=None)
        row = np.argmax(found, axis=0)
        here = np.take_along_axis(found, row[None], axis=0)[0]
        which = np.where(here > best, rows.start + row, which)
        best = np.maximum(best, here)
    return which


def _complete(inner: Ints, uw: Ints, uv: Ints, wv: Ints) -> NDArray[np.int32]:
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


def _excess(cells: Ints, table: Int64, allowed: Int64, least: int | None = 0) -> Int64:
    """The ratios of tables (..., A, B, I, J), added up over what comes first, less what chance allows: (I, J)."""
    from craftrl.engine.table_kernel import table_ratios

    cells = np.ascontiguousarray(cells, dtype=np.int32).reshape(-1, *cells.shape[-4:])
    ratio, freedom = np.empty((2, *cells.shape[-2:]), dtype=np.int64)
    table_ratios(cells, table, ratio, freedom)
    excess = ratio - allowed[freedom]
    return excess if least is None else np.maximum(excess, least)


def _inner_counts(p: NDArray[np.uint64], q: NDArray[np.uint64], of: PackedStep) -> NDArray[np.int32]:
    return count_planes(p, q, of.segments)[..., : p.shape[1], : q.shape[1]]


def _by_agent(counts: Int64) -> Int64:
    """Pair counts with the agents first and the encoders last: (K, N_s, N_s, I, J)."""
    return counts.transpose(4, 2, 3, 0, 1)


def _allowed(given: PackedStep, others: PackedStep, target: PackedStep) -> Int64:
    return chance_ratios(len(given.counts) * given.N_s * (others.N_s - 1) * (target.N_s - 1), others.size)


def _slices(n: int, at_once: int) -> Iterator[slice]:
    for start in range(0, n, max(1, at_once)):
        yield slice(start, min(start + max(1, at_once), n))


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
