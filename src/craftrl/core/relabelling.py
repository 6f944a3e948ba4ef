"""One-to-one matchings: which label of one kind stands for which label of another.

Labels are names without meaning: an encoder's values, learned states, and true states agree only up to a relabelling.
Everything that compares two kinds of labels takes the matching of greatest weight in their table, and takes it from
here.

Paper: Appendix A (closure under relabelling), Appendix D (sigma_h)
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import perm
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from craftrl.arrays import Ints

MAX_TRIED = 720  # relabellings of one table of which the first best one is taken; with more, any of them
TIE = 1e-9  # weights that differ by less are equal


def best_matching(table: NDArray[Any]) -> dict[int, int]:
    """The row-to-column matching of greatest weight in one table: {row: column}, as many as the shorter side has.

    sigma_h of the paper where rows are learned labels, columns true states and the entries how often they meet.
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    return {int(r): int(c) for r, c in zip(rows, columns)}


def first_best_matching(tables: NDArray[np.float64]) -> tuple[int, Ints, Ints, float]:
    """Of tables (n, rows, columns), the one with the heaviest matching: its index, rows, their columns, the weight.

    Weights to within 1e-9 are equal; of equal tables the first is taken, and of equal relabellings the first. Only
    tables are matched that could win if no two rows wanted the same column.
    """
    optimistic = tables.max(axis=2).sum(axis=1)
    index, best = -1, -np.inf
    for i in np.argsort(-optimistic, kind="stable"):
        if optimistic[i] < best - TIE:
            break
        rows, columns = linear_sum_assignment(tables[i], maximize=True)
        weight = float(tables[i, rows, columns].sum())
        if weight > best + TIE or (weight >= best - TIE and i < index):
            index, best, found = int(i), weight, (rows, columns)
    few, many = sorted(tables.shape[1:])
    if perm(many, few) > MAX_TRIED:
        return index, *found, best
    upright = tables.shape[1] == few
    wide = tables[index] if upright else tables[index].T
    tried = _relabellings(few, many)
    weights = wide[np.arange(few), tried].sum(axis=-1)
    first = int(np.argmax(weights >= weights.max() - TIE))
    matched = (np.arange(few), tried[first]) if upright else (tried[first], np.arange(few))
    return index, *matched, float(weights[first])


@lru_cache(maxsize=32)
def _relabellings(few: int, many: int) -> Ints:
    """Every way to give each of `few` labels one of `many`, in lexicographic order: (ways, few)."""
    return np.array(list(permutations(range(many), few)))
