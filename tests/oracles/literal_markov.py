"""The Markov chain's charges as one would compute them on paper: one table, one encoder, one count at a time.

It shares no code with the engine but the pairwise loss, which has a literal version of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2

from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins

NAT = 2**30
LEVEL = 0.1

Values = np.ndarray  # one encoder's values on all trajectories, -1 where one is over


def ratio(slabs: Sequence[object], rows: Sequence[int], columns: Sequence[int]) -> tuple[int, int]:
    """The log-likelihood ratio of rows on columns within slabs, in units of 2^-30 nats, and its degrees of freedom."""
    total, freedom = 0, 0
    for slab in set(slabs):
        mine = [(r, c) for s, r, c in zip(slabs, rows, columns) if s == slab]
        by_row, by_column = Counter(r for r, _ in mine), Counter(c for _, c in mine)
        total += sum(map(n_ln_n, Counter(mine).values())) + n_ln_n(len(mine))
        total -= sum(map(n_ln_n, by_row.values())) + sum(map(n_ln_n, by_column.values()))
        freedom += (len(by_row) - 1) * (len(by_column) - 1)
    return total, freedom


def n_ln_n(n: int) -> int:
    return round(n * np.log(n) * NAT)


def beyond_chance(found: tuple[int, int], n_tried: int) -> int:
    total, freedom = found
    if freedom == 0:
        return total
    each = -np.expm1(np.log1p(-LEVEL) / n_tried)
    return total - round(chi2.isf(each, freedom) / 2 * NAT)


def dependence(given: Values, others: Sequence[Values], target: Values, agent: np.ndarray) -> int:
    """How far the target's value depends on some of the others, given one encoder and the agent."""
    slabs = list(zip(given.tolist(), agent.tolist()))
    found = [beyond_chance(ratio(slabs, psi.tolist(), target.tolist()), len(others)) for psi in others]
    return max(0, *found)


def left_out(given: Values, others: Sequence[Values], agent: np.ndarray) -> int:
    """What some of the others says about the agent once one encoder's value is known."""
    found = [beyond_chance(ratio(given.tolist(), psi.tolist(), agent.tolist()), len(others)) for psi in others]
    return max(0, *found)


def loss(first: Values, second: Values, agent: np.ndarray, K: int, grid: Grid) -> int:
    counts = np.zeros((first.max(initial=0) + 1, second.max(initial=0) + 1, K), dtype=np.int64)
    np.add.at(counts, (first, second, agent), 1)
    return int(best_bins(counts, grid)[1].sum())


def charges(
    codes: Sequence[Sequence[Values]], seen: Sequence[Sequence[Values]], agent: np.ndarray, K: int, grid: Grid
) -> list[np.ndarray]:
    """The whole charge of every pair of codes of each two consecutive steps."""
    found = []
    for h in range(len(codes) - 1):
        there = codes[h + 1][0] >= 0  # trajectories that have both steps
        a = agent[there]
        before, after, seen_before, seen_after = (
            [values[there] for values in some] for some in (codes[h], codes[h + 1], seen[h], seen[h + 1])
        )
        table = np.zeros((len(before), len(after)), dtype=np.int64)
        for i, c in enumerate(before):
            own = left_out(c, seen_before, a) - loss(np.zeros_like(c), c, a, K, grid)
            for j, c_next in enumerate(after):
                table[i, j] = own + loss(c, c_next, a, K, grid)
                table[i, j] += dependence(c, seen_before, c_next, a) + dependence(c_next, seen_after, c, a)
        found.append(table)
    return found
