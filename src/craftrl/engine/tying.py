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

__all__ = ["TiedPair", "labellings", "log_table", "pooled"]

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


class TiedPair:
    """All pairs of codes of two neighbouring steps, ready to be charged under one table after the other.

    cells   int32 (I, J, N_s, N_s, K): how often each agent shows each pair of values of each pair of encoders
    shares  float (I, N_s, K): how likely each agent is where the first code has each of its values
    least   int64 (I, J): the log-likelihood of the moves, were the table the pair's own, less what chance allows
    """

    def __init__(self, cells: Ints) -> None:
        self.cells = np.ascontiguousarray(cells, dtype=np.int32)
        visits = cells[:, 0].sum(axis=2)  # the same whatever the second code is
        self.shares = visits / np.maximum(visits.sum(axis=-1, keepdims=True), 1)
        own = _n_log_n_of(cells).sum(axis=(2, 3, 4)) - _n_log_n_of(cells.sum(axis=3)).sum(axis=(2, 3))
        self.least: Int64 = own - _allowed(visits)[:, None]

    def only(self, i: int, j: int) -> TiedPair:
        """One pair of encoders by itself."""
        return TiedPair(self.cells[i : i + 1, j : j + 1])

    def charges(self, table: Floats, names: NDArray[np.intp]) -> Int64:
        """The charges of all pairs of codes, each with every labelling: (I * P, J * P), labellings running fastest.

        table  float (N_s, N_s, K): ln Pr(next state | state, agent)
        names  int (P, N_s): the labellings

        A pair is charged for what it does not say about the agent beyond the first code, if agents move as the table
        says, and for how far its moves are from the table: a log-likelihood ratio, charged beyond what chance allows.
        """
        (I, J), P = self.cells.shape[:2], len(names)
        named = table[names[:, None, :, None], names[None, :, None, :]]  # (P, P, N_s, N_s, K)
        flat = self.cells.reshape(I, J, -1).astype(np.int64)
        charges = self.least[..., None] - flat @ _fixed(named).reshape(P * P, -1).T
        np.maximum(charges, 0, out=charges)
        charges += flat @ _fixed(self._surprise(named)).reshape(I, -1, P * P)
        return charges.reshape(I, J, P, P).transpose(0, 2, 1, 3).reshape(I * P, J * P)

    def _surprise(self, named: Floats) -> Floats:
        """-ln of how much likelier each agent is for both values than for the first alone: (I, N_s, N_s, K, P, P)."""
        mixed = np.einsum("iuk,pquvk->iuvpq", self.shares, np.exp(named))
        log_mixed = np.log(np.where(mixed > 0, mixed, 1))  # 0 where the value was never seen
        return log_mixed[:, :, :, None] - named.transpose(2, 3, 4, 0, 1)

    def own_charge(self, i: int, j: int) -> int:
        """What one pair of codes would be charged with a table of its own: it cannot fall below that."""
        cells = self.cells[i, j].astype(np.int64)
        added = (_n_log_n_of(part).sum() for part in (cells.sum(axis=2), cells.sum(axis=1)))
        taken = (_n_log_n_of(part).sum() for part in (cells, cells.sum(axis=(1, 2))))
        return int(sum(added)) - int(sum(taken))


def _allowed(visits: Ints) -> Int64:
    """What chance allows codes (I,), by the number of values (I, N_s, K) that each agent was seen at."""
    _, N_s, K = visits.shape
    return chance_ratios(K * N_s * (N_s - 1), 1)[(visits > 0).sum(axis=(1, 2)) * (N_s - 1)]


def _n_log_n_of(counts: Ints) -> Int64:
    return np.asarray(n_log_n(int(counts.max(initial=0)))[counts])


def _fixed(nats: Floats) -> Int64:
    return np.rint(nats * FIXED_POINT).astype(np.int64)
