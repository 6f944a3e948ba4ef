"""What pairs of codes are charged if every step shares one table of moves for each agent.

A table says how likely each agent moves from each state to each other one. Codes name states in any order, so every
charge is worked out for every labelling of the first code and every labelling of the second. Charges are in fixed
point, like losses.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from craftrl.core.losses import FIXED_POINT
from craftrl.engine.dependence import chance_ratios, n_log_n

__all__ = ["labellings", "log_table", "own_charge", "pooled", "tied_charges"]

PRIOR = 0.5  # visits that every move is credited with, so that none is impossible

Floats = NDArray[np.float64]
Int64 = NDArray[np.int64]
Ints = NDArray[np.integer]


def labellings(N_s: int) -> NDArray[np.intp]:
    """Every way to name N_s values: (N_s!, N_s), entry v of a row is the state that value v stands for."""
    return np.array(list(permutations(range(N_s))), dtype=np.intp)


def log_table(counts: Ints) -> Floats:
    """ln Pr(next state | state, agent) from visits (N_s, N_s, K) to pairs of states."""
    visits = counts + PRIOR
    return np.asarray(np.log(visits / visits.sum(axis=1, keepdims=True)))


def pooled(cells: Ints, first: Ints, second: Ints) -> Int64:
    """Visits to pairs of states, from counts (N_s, N_s, K) of pairs of values and what the values stand for."""
    visits = np.empty(cells.shape, dtype=np.int64)
    visits[np.ix_(first, second)] = cells
    return visits


def tied_charges(cells: Ints, table: Floats, names: NDArray[np.intp]) -> Int64:
    """The charges of all pairs of codes, each with every labelling: (I * P, J * P), labellings running fastest.

    cells  int (I, J, N_s, N_s, K): how often each agent shows each pair of values of each pair of encoders
    table  float (N_s, N_s, K): ln Pr(next state | state, agent), the same at every step
    names  int (P, N_s): the labellings

    A pair is charged for what it does not say about the agent beyond the first code, if the agents move as the table
    says, and for how far its counts are from the table: a log-likelihood ratio, charged beyond what chance allows it.
    """
    I, J = cells.shape[:2]
    P, flat = len(names), cells.reshape(I, J, -1).astype(np.int64)
    named = table[names[:, None, :, None], names[None, :, None, :]]  # (P, P, U, V, K)
    said = np.matmul(flat, _fixed(_surprise(cells, named)).reshape(I, -1, P * P))
    fitted = _own_likelihood(cells)[..., None] - flat @ _fixed(named).reshape(P * P, -1).T
    far = np.maximum(fitted - _allowed(cells)[..., None], 0)
    return (said + far).reshape(I, J, P, P).transpose(0, 2, 1, 3).reshape(I * P, J * P)


def own_charge(cells: Ints) -> int:
    """The charge of one pair of codes (N_s, N_s, K) with a table of its own: what it cannot fall below."""
    return int(_n_log_n_sum(cells.sum(axis=2)) - _n_log_n_sum(cells)) + int(
        _n_log_n_sum(cells.sum(axis=1)) - _n_log_n_sum(cells.sum(axis=(1, 2)))
    )


def _surprise(cells: Ints, named: Floats) -> Floats:
    """-ln of how much likelier each agent becomes by each pair of values: (I, U, V, K, P, P).

    Before the move, agents are as likely as their shares among the visits to the first code's value.
    """
    visits = cells[:, 0].sum(axis=2)  # the same whatever the second code is: (I, U, K)
    shares = visits / np.maximum(visits.sum(axis=-1, keepdims=True), 1)
    mixed = np.einsum("iuk,pquvk->iuvpq", shares, np.exp(named))
    log_mixed = np.log(np.where(mixed > 0, mixed, 1))  # 0 where the value was never seen
    return log_mixed[:, :, :, None] - named.transpose(2, 3, 4, 0, 1)


def _own_likelihood(cells: Ints) -> Int64:
    """The log-likelihood of the moves (I, J) if each pair of codes has a table of its own."""
    return _n_log_n_of(cells).sum(axis=(2, 3, 4)) - _n_log_n_of(cells.sum(axis=3)).sum(axis=(2, 3))


def _allowed(cells: Ints) -> Int64:
    """What chance allows a pair of codes (I, J): by the number of values that each agent was seen at."""
    _, _, U, V, K = cells.shape
    rows = (cells[:, :1].sum(axis=3) > 0).sum(axis=(2, 3))
    return chance_ratios(K * U * (V - 1), 1)[rows * (V - 1)]


def _n_log_n_of(counts: Ints) -> Int64:
    return np.asarray(n_log_n(int(counts.max(initial=0)))[counts])


def _n_log_n_sum(counts: Ints) -> int:
    return int(_n_log_n_of(counts).sum())


def _fixed(nats: Floats) -> Int64:
    return np.rint(nats * FIXED_POINT).astype(np.int64)
