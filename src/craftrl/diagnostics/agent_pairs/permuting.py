"""Could chance alone have told the agents apart? Entries of small integers, with agents' names dealt out anew.

The best of many chains of entries tells something of any names whatsoever. How much is found with names that are dealt
out to the same trajectories at random. No trajectory is held out, which shows differences that halves do not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import t as student

from craftrl.diagnostics.agent_pairs.counting import best_chains, chain_value
from craftrl.diagnostics.agent_pairs.sample import Group

__all__ = ["chance_by_permutation"]

FIRST, ALL = 10, 40  # deals: the first say whether more are worth while
CLEAR = (1.0, 10.0)  # standard deviations of the deals, below or above which they are not

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]


def chance_by_permutation(a: Group, b: Group, pairs: tuple[int, ...], values: int, rng: np.random.Generator) -> float:
    """How likely the best chain tells as much of names dealt out at random.

    What chains tell of such names is a sum over steps, and taken to be normal; its mean and spread come from the deals
    (Student's t for one more observation).
    """
    both = Group.join([a, b])
    counts = [_Pair(both, c, values) for c in pairs]

    def told(first: NDArray[np.int64]) -> float:
        scores = [pair.evidence(first) for pair in counts]
        return chain_value(scores, best_chains(scores, pairs))

    found = told(np.arange(len(a)))
    dealt: list[float] = []
    for n in (FIRST, ALL):
        dealt += [told(np.sort(rng.permutation(len(both))[: len(a)])) for _ in range(n - len(dealt))]
        z = (found - np.mean(dealt)) / max(float(np.std(dealt, ddof=1)), 1e-9)
        if not CLEAR[0] <= z <= CLEAR[1]:
            break
    return float(student.sf(z / np.sqrt(1 + 1 / len(dealt)), len(dealt) - 1))


class _Pair:
    """All trajectories at one pair of steps: values from 1 on as columns of zeros and ones, and counts of both."""

    def __init__(self, both: Group, c: int, values: int) -> None:
        self.there = both.there[:, c + 1]
        self.M, self.V = both.x.shape[2], values
        self.here, self.after = (self._columns(both.x[:, column]) for column in (c, c + 1))
        everybody = np.arange(len(both))
        self.total = self._cells(everybody)
        self.table = xlogy(np.arange(len(both) + 1), np.arange(len(both) + 1))
        seen = (self.total > 0).sum(axis=(0, 1))
        self.constant = self.table[self.total].sum(axis=(0, 1)) + (seen - 1) / 2

    def evidence(self, first: NDArray[np.int64]) -> Floats:
        """(M, M): what entries (i, j) tell of who is `first`, in nats over all trajectories, less what chance adds."""
        mine = self._cells(first)
        n, N = int(self.there[first].sum()), int(self.there.sum())
        nats = (self.table[mine] + self.table[self.total - mine]).sum(axis=(0, 1)) - self.constant
        return np.asarray(nats - self.table[n] - self.table[N - n] + self.table[N])

    def _columns(self, x: NDArray[np.integer]) -> Floats32:
        columns = (x[:, None, :] == np.arange(1, self.V)[:, None]) & self.there[:, None, None]
        return columns.reshape(len(x), -1).astype(np.float32)

    def _cells(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """(V, V, M, M): how often these trajectories show each pair of values of each pair of entries."""
        V, M = self.V, self.M
        here, after = self.here[rows], self.after[rows]
        cells = np.empty((V, V, M, M), dtype=np.int32)
        cells[1:, 1:] = (here.T @ after).reshape(V - 1, M, V - 1, M).transpose(0, 2, 1, 3)
        row, column = here.sum(axis=0).reshape(V - 1, M), after.sum(axis=0).reshape(V - 1, M)
        cells[1:, 0] = row[:, :, None] - cells[1:, 1:].sum(axis=1)
        cells[0, 1:] = column[:, None, :] - cells[1:, 1:].sum(axis=0)
        cells[0, 0] = int(self.there[rows].sum()) - cells[0, 1:].sum(axis=0) - cells[1:].sum(axis=(0, 1))
        return cells
