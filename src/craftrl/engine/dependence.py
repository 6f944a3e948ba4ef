"""Whether values depend on more than they should: triple counts of encoders, and likelihood ratios read off them.

A triple count is a pair count of one encoder and of two others taken together, so the compiled loop over bit planes
serves for it as well. Ratios are kept in fixed point, like losses: sums are exact whatever their order. Each is given
less what chance allows it: what the largest of all that are compared exceeds one time in ten.

All views of one question are of the same trajectories, those that have both steps of a pair.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import chdtri, xlogy

from craftrl.arrays import Ints
from craftrl.core.losses import FIXED_POINT
from craftrl.engine import counting
from craftrl.engine.counting import Counter, Int32, Int64, count_matched, count_planes, slices
from craftrl.engine.packing import Part, View

EXCEEDED = 0.1  # how often the largest of all ratios that are compared exceeds its allowance by chance


def agent_dependence(counter: Counter, given: View, others: View) -> Int64:
    """What some encoder of `others` says about the agent once the value of encoder i of `given` is known: (I,)."""
    freedom = (counter.tau.K - 1) * counter.n_values(given) * (counter.N_s - 1)
    excess = _of_pairs(counter, given, others, (1, 0, 2, 3, 4), freedom, counter.size(others))
    return np.maximum(excess.max(axis=1), 0)


def full_dependence(counter: Counter, given: View, others: View, target: View) -> Int64:
    """How far the value of `target` j depends on some encoder of `others`, given `given` i and the agent: (I, J)."""
    n_others, J = counter.size(others), counter.size(target)
    found = np.zeros((counter.size(given), J), dtype=np.int64)
    cells = counter.tau.K * counter.N_s**3
    for some in slices(n_others, counting.TILE_BYTES // (16 * cells * max(found.size, 1))):
        psi, j = np.divmod(np.arange(some.start * J, some.stop * J), J)
        excess = _of_triples(counter, given, others, target, psi, j).reshape(len(found), -1, J)
        found = np.maximum(found, excess.max(axis=1))
    return found


def dependence_bound(counter: Counter, given: View, others: View, target: View) -> Int64:
    """A lower bound of `full_dependence` for all pairs of encoders: (I, J).

    For each target only that one of `others` is tried which it depends on most by itself.
    """
    I, J = counter.size(given), counter.size(target)
    bound = np.zeros((I, J), dtype=np.int64)
    if counter.n_values(target) == 1:
        return bound
    freedom = counter.tau.K * counter.n_values(given) * (counter.N_s - 1) ** 2
    psi = _of_pairs(counter, others, target, (0, 1, 2, 3, 4), freedom, counter.size(others)).argmax(axis=0)
    cells = counter.tau.K * counter.n_values(given) * counter.N_s**2
    for rows in slices(I, counting.TILE_BYTES // (16 * cells * J)):
        excess = _of_triples(counter, given.part(rows), others, target, psi, slice(0, J))
        bound[rows] = np.maximum(excess, 0)
    return bound


def _of_pairs(counter: Counter, p: View, q: View, axes: tuple[int, ...], most_freedom: int, n_tried: int) -> Int64:
    """The excess of tables of the pair counts (K, U, V, I, J), their axes in another order: (I, J)."""
    found = []
    row_bytes = 16 * counter.tau.K * counter.n_values(p) * counter.n_values(q) * counter.size(q)
    for rows in slices(counter.size(p), counting.TILE_BYTES // row_bytes):
        cells = counter.pairs(p.part(rows), q).transpose(axes)
        found.append(_excess(cells, int(counter.totals(p, q).sum()), most_freedom, n_tried))
    return np.concatenate(found)


def _of_triples(counter: Counter, given: View, others: View, target: View, psi: Ints, j: Ints | slice) -> Int64:
    """The excess of targets j (C,) on those of `others` psi (C,), given encoder i of `given` and the agent: (I, C)."""
    inner = counter.parts.total(_triples, given, others.part(psi), target.part(j))
    wv = counter.parts.total(count_matched, others.part(psi), target.part(j))[..., None, :]
    uw, uv = counter.pairs(given, others)[..., psi], counter.pairs(given, target)[..., j]
    K, U, W, V, I, C = inner.shape
    cells = np.empty((K, U + 1, W + 1, V + 1, I, C), dtype=np.int32)  # what is missing in a sum has value 0
    cells[:, 1:, 1:, 1:] = inner
    cells[:, 0, 1:, 1:] = wv - inner.sum(axis=1, dtype=np.int32)
    cells[:, :, 0, 1:] = uv[:, :, 1:] - cells[:, :, 1:, 1:].sum(axis=2, dtype=np.int32)
    cells[:, :, :, 0] = uw - cells[:, :, :, 1:].sum(axis=3, dtype=np.int32)
    return _excess(cells, int(counter.totals(given, others, target).max()), K * (U + 1) * W * V, counter.size(others))


def _triples(part: Part, given: View, others: View, target: View) -> Int32:
    """Counts of values >= 1 of encoders of `given`, and of each target and its partner: (K, U, W, V, I, C)."""
    psi, codes = part.planes(others), part.planes(target)
    both = (psi[:, None] & codes).reshape(-1, *codes.shape[1:])
    inner = count_planes(part.planes(given), both, part.segments)
    return inner.reshape(*inner.shape[:2], len(psi), len(codes), *inner.shape[3:])


def _excess(cells: Ints, most: int, most_freedom: int, n_tried: int) -> Int64:
    """The ratios of tables (..., A, B, I, J), added up over what comes first, less what chance allows: (I, J)."""
    from craftrl.engine.kernels import table_ratios

    cells = np.ascontiguousarray(cells, dtype=np.int32).reshape(-1, *cells.shape[-4:])
    ratio, freedom = np.zeros((2, *cells.shape[-2:]), dtype=np.int64)
    table_ratios(cells, _n_log_n(1 << most.bit_length()), ratio, freedom)
    return ratio - _chance_ratios(most_freedom, n_tried)[freedom]


@lru_cache(maxsize=64)
def _chance_ratios(most_freedom: int, n_tried: int) -> Int64:
    """What the largest of `n_tried` independent log-likelihood ratios exceeds with probability EXCEEDED by chance.

    Entry d is for d degrees of freedom, in fixed point: half a quantile of the chi-squared distribution (Wilks 1938).
    """
    each = -np.expm1(np.log1p(-EXCEEDED) / n_tried)
    nats = chdtri(np.arange(1, most_freedom + 1), each) / 2
    return np.concatenate([[0], np.rint(nats * FIXED_POINT).astype(np.int64)])


@lru_cache(maxsize=4)
def _n_log_n(size: int) -> Int64:
    """n ln n for n = 0..size-1, in fixed point."""
    n = np.arange(size, dtype=np.float64)
    return np.rint(xlogy(n, n) * FIXED_POINT).astype(np.int64)
