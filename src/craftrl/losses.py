"""The three losses, as pure functions of counts.

The log-odds loss is kept in fixed point: each softplus value on the grid is rounded once to a multiple of
2^-30 nats, and everything after that is integer arithmetic. Sums are then exact, whatever their order, so that
a tie is a tie for the literal reference, NumPy, the compiled kernel and a GPU alike.

Paper: Equations 8 (cluster loss), 17 (binary classification), Line 46 (encoding)
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from craftrl.grid import Grid

__all__ = ["FIXED_POINT", "best_bins", "encoding_hits", "log_loss", "separation_loss", "softplus_table"]

FIXED_POINT = 2**30  # one nat

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def softplus_table(grid: Grid) -> Ints:
    """ln(1 + e^c) for every c in Xi, in fixed point; ln(1 + e^-c) is the same table read backwards."""
    return np.rint(np.logaddexp(0, grid.values) * FIXED_POINT).astype(np.int64)


def log_loss(fixed: Any) -> Any:
    """A fixed-point loss in nats."""
    return fixed / FIXED_POINT


def nearest_bins(counts: NDArray[np.integer], grid: Grid) -> tuple[Ints, Ints]:
    """The grid points just below and above ln(counts_0 / counts_k), clipped to Xi; shapes (..., K-1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(counts[..., :1]) - np.log(counts[..., 1:])
    position = np.clip(np.nan_to_num(ratio / grid.xi + grid.n_xi / 2, nan=0.0), 0, grid.n_xi)
    below = np.clip(np.floor(position).astype(np.int64), 0, max(grid.n_xi - 1, 0))
    return below, np.minimum(below + 1, grid.n_xi)


def best_bins(counts: NDArray[np.integer], grid: Grid) -> tuple[Ints, Ints]:
    """The grid values that minimise each cell's log-odds loss, and those losses in fixed point.

    `counts` (..., K) says how often each agent visits each cell; returned are bins (..., K-1) and losses (...).
    The loss is convex in f, so the best value is one of the two neighbours of the clipped log ratio; of equal
    ones the lower is taken. An empty cell has bin 0 and loss 0.

    For K > 2, f is the vector of log-odds of agent 0 against each other agent and the loss is the multinomial
    one, minimised over the 2^(K-1) grid points around the log ratios; for K = 2 that is the paper's loss.

    Paper: Equation 8, Line 10
    """
    below, above = nearest_bins(counts, grid)
    K = counts.shape[-1]
    best: Ints | None = None
    bins = below
    for corner in product((False, True), repeat=K - 1):
        candidate = np.where(corner, above, below)
        loss = _cell_loss(counts, candidate, grid)
        if best is None:
            best = loss
        else:
            better = loss < best
            best = np.where(better, loss, best)
            bins = np.where(better[..., None], candidate, bins)
    assert best is not None
    empty = counts.sum(axis=-1) == 0
    return np.where(empty[..., None], 0, bins), best


def _cell_loss(counts: NDArray[np.integer], bins: Ints, grid: Grid) -> Ints:
    """sum_k counts_k * (-ln Pr(agent k | f)) in fixed point, f given by its bins (..., K-1)."""
    if counts.shape[-1] == 2:
        table = softplus_table(grid)
        j = bins[..., 0]
        return counts[..., 0] * table[grid.n_xi - j] + counts[..., 1] * table[j]
    f = np.concatenate([np.zeros((*bins.shape[:-1], 1)), grid.values[bins]], axis=-1)
    surprise = np.rint((f + logsumexp(-f, axis=-1, keepdims=True)) * FIXED_POINT).astype(np.int64)
    return (counts * surprise).sum(axis=-1)


def separation_loss(p_new: Floats, p_s: Floats) -> Floats:
    """The least L(g) over all g(x) = 1[phi(x) in V], for each encoder phi of a class.

    `p_new`, `p_s` (..., N_s) are the frequencies of phi's values on D_new and on D_s. L lies in [0, 1] here:
    0 if phi tells the two apart perfectly, 1 if it has the same frequencies on both. V and its complement are both
    allowed, so nothing exceeds 1.

    Paper: Equation 17, Line 25
    """
    return np.minimum(p_new, p_s).sum(axis=-1)


def encoding_hits(p: Floats) -> tuple[float, Ints]:
    """The relabelling of one encoder's values that makes most states right, for states' value frequencies.

    `p` (n_states, N_s): how often the encoder takes each value on each D_s. Values are given to states
    one to one, as the permutations in Line 46's class do. Returned are the sum over states of the frequency of
    the state's own value, and `state_of` (N_s,), the state of each value. A value left over is a label of no
    state when there are fewer states than values: it gets the next free number.

    Paper: Line 46; Appendix A (closure under relabelling)
    """
    from scipy.optimize import linear_sum_assignment

    n_states, N_s = p.shape
    rows, columns = linear_sum_assignment(p, maximize=True)
    state_of = np.full(N_s, -1, dtype=np.int64)
    state_of[columns] = rows
    left_over = np.flatnonzero(state_of < 0)
    state_of[left_over] = n_states + np.arange(len(left_over))
    return float(p[rows, columns].sum()), state_of
