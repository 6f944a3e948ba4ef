"""The three losses, as pure functions of counts.

The log-odds loss is kept in fixed point: each softplus value on the grid is rounded once to a multiple of
2^-30 nats, and everything after that is integer arithmetic. Sums are then exact, whatever their order, so that
a tie is a tie for the literal reference, NumPy and the compiled loops alike.

Paper: Equation 13 (cluster loss), Equation 53 (binary classification), Line 46
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from craftrl.arrays import Ints
from craftrl.core.grid import Grid
from craftrl.core.relabelling import first_best_matching

FIXED_POINT = 2**30  # one nat
MAX_CORNERS = 8  # agents up to which all 2^(K-1) grid points around a log ratio are tried


@lru_cache(maxsize=64)
def softplus_table(grid: Grid) -> Ints:
    """ln(1 + e^c) for every c in Xi, in fixed point; ln(1 + e^-c) is the same table read backwards."""
    table = np.rint(np.logaddexp(0, grid.values) * FIXED_POINT).astype(np.int64)
    table.flags.writeable = False  # it is handed out again and again
    return table


def best_bins(counts: NDArray[np.integer], grid: Grid) -> tuple[Ints, Ints]:
    """The grid values that minimise each cell's log-odds loss, and those losses in fixed point.

    `counts` (..., K) says how often each agent visits each cell; returned are bins (..., K-1) and losses (...).
    The loss is convex in f, so the best value is one of the two neighbours of the clipped log ratio; of equal
    ones the lower is taken. An empty cell has bin 0 and loss 0.

    For K > 2, f is the vector of log-odds of agent 0 against each other agent and the loss is the multinomial
    one, minimised over the 2^(K-1) grid points around the clipped log ratios. For K = 2 that is the paper's loss and
    its exact minimum. For K > 2 it is the minimum up to the grid's resolution unless a log ratio lies outside Xi: where
    one axis is clipped, the best point of the others moves, and this one may be worse. With more than `MAX_CORNERS`
    agents there are too many points around, and the nearest one is taken.

    Paper: Equation 13 (cluster loss), Line 10
    """
    K = counts.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(counts[..., :1]) - np.log(counts[..., 1:])
    position = np.clip(np.nan_to_num(ratio / grid.xi + grid.n_xi / 2, nan=0.0), 0, grid.n_xi)
    below = np.clip(np.floor(position).astype(np.int64), 0, max(grid.n_xi - 1, 0))
    above = np.minimum(below + 1, grid.n_xi)
    bins = below if K <= MAX_CORNERS else np.where(position - below > 0.5, above, below)
    bins = np.where(counts.sum(axis=-1, keepdims=True) == 0, 0, bins)
    best = _cell_loss(counts, bins, grid)
    for corner in list(product((False, True), repeat=K - 1))[1:] if K <= MAX_CORNERS else ():
        candidate = np.where(corner, above, below)
        loss = _cell_loss(counts, candidate, grid)
        better = loss < best
        best = np.where(better, loss, best)
        bins = np.where(better[..., None], candidate, bins)
    return bins, best


def _cell_loss(counts: NDArray[np.integer], bins: Ints, grid: Grid) -> Ints:
    """sum_k counts_k * (-ln Pr(agent k | f)) in fixed point, f given by its bins (..., K-1)."""
    if counts.shape[-1] == 2:
        table, j = softplus_table(grid), bins[..., 0]
        return counts[..., 0] * table[grid.n_xi - j] + counts[..., 1] * table[j]
    return (counts * _surprise(bins, grid)).sum(axis=-1)


def _surprise(bins: Ints, grid: Grid) -> Ints:
    """-ln Pr(agent k | f) of every agent k in fixed point, f given by its bins (..., K-1); shape (..., K)."""
    f = np.concatenate([np.zeros((*bins.shape[:-1], 1)), grid.values[bins]], axis=-1)
    return np.rint((f + logsumexp(-f, axis=-1, keepdims=True)) * FIXED_POINT).astype(np.int64)


@lru_cache(maxsize=16)
def surprise_table(grid: Grid, K: int) -> Ints:
    """-ln Pr(agent k | f) for every f in Xi^(K-1) and every k, in fixed point: ((n_xi + 1)^(K-1), K)."""
    return _surprise(np.indices((grid.size,) * (K - 1)).reshape(K - 1, -1).T, grid)


def separation_loss(new: NDArray[np.integer], state: NDArray[np.integer]) -> float:
    """The least L(g) over g(x) = 1[phi(x) in V], phi in a finite class and V any set of its values.

    `new`, `state` (|Phi|, N_s) count phi's values on D_new and on D_s. The best V takes each value where it is the
    more frequent, so the loss is one minus the largest total variation distance: 0 if some phi tells the two
    apart perfectly, 1 if every phi has the same frequencies on both. The numerator is exact, so that the
    comparison with 1/2 is.

    Paper: Equation 53 (binary classification), Line 25
    """
    n_new, n_state = int(new[0].sum()), int(state[0].sum())
    overlap = np.minimum(new * n_state, state * n_new).sum(axis=-1)
    return float(overlap.min() / (n_new * n_state))


def best_relabelling(counts: NDArray[np.integer]) -> tuple[int, Ints, float]:
    """Line 46: the encoder, and the one-to-one relabelling of its values, that make most states right.

    `counts` (|Phi|, n_states, N_s) counts each encoder's values on each D_s. Every state weighs the same,
    however many trajectories it has. Returned are the encoder's index, `state_of` (N_s,), the state that each of
    its values stands for, and the loss. With fewer states than values, the values left over get the next free
    numbers; with more, some states get no value and are always wrong; with none, the first encoder is returned
    as it is, every encoder's loss being 0. Ties (to within 1e-9) go to the first encoder, and to the first
    relabelling.

    Paper: Line 46; Appendix A (closure under relabelling)
    """
    _, n_states, N_s = counts.shape
    if n_states == 0:
        return 0, np.arange(N_s), 0.0
    index, states, values, hits = first_best_matching(counts / counts.sum(axis=-1, keepdims=True))
    state_of = np.full(N_s, -1, dtype=np.int64)
    state_of[values] = states
    left_over = state_of < 0
    state_of[left_over] = n_states + np.arange(left_over.sum())
    return index, state_of, n_states - hits
