"""One-to-one matchings: which label of one kind stands for which label of another.

Labels are names without meaning: an encoder's values, learned states, and true states agree only up to a relabelling.
Everything that compares two kinds of labels takes the matching of greatest weight in their table, and takes it from
here. Small tables are matched by trying every relabelling, all tables at once; larger ones by the Hungarian method.

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

__all__ = ["best_matching", "best_weight", "first_best_matching"]

MOST_TRIED = 720  # relabellings; with more, the Hungarian method is faster
TIE = 1e-9  # weights that differ by less are equal

Ints = NDArray[np.int64]


def best_matching(table: NDArray[Any]) -> dict[int, int]:
    """The row-to-column matching of greatest weight in one table: {row: column}, as many as the shorter side has.

    sigma_h of the paper where rows are learned labels, columns true states and the entries how often they meet.
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    return {int(r): int(c) for r, c in zip(rows, columns)}


def best_weight(tables: NDArray[Any]) -> NDArray[Any]:
    """The weight of the best matching of each table: (..., rows, columns) to (...)."""
    few, many = sorted(tables.shape[-2:])
    if perm(many, few) <= MOST_TRIED:
        wide = tables if tables.shape[-2] == few else np.swapaxes(tables, -1, -2)
        best = wide[..., np.arange(few), np.arange(few)].sum(axis=-1)
        for columns in _relabellings(few, many)[1:]:
            best = np.maximum(best, wide[..., np.arange(few), columns].sum(axis=-1))
        return best
    weights = np.zeros(tables.shape[:-2], dtype=tables.dtype)
    for where in np.ndindex(*weights.shape):
        weights[where] = tables[where][linear_sum_assignment(tables[where], maximize=True)].sum()
    return weights


def first_best_matching(tables: NDArray[np.float64]) -> tuple[int, Ints, Ints, float]:
    """Of tables (n, rows, columns), the one with the heaviest matching: its index, rows, their columns, the weight.

    Weights to within 1e-9 are equal; of equal tables the first is taken, and of equal relabellings the first.
    """
    few, many = sorted(tables.shape[-2:])
    if perm(many, few) > MOST_TRIED:
        return _first_by_hungarian(tables)
    upright = tables.shape[-2] == few
    wide = tables if upright else tables.transpose(0, 2, 1)
    tried = _relabellings(few, many)
    weights = wide[:, np.arange(few), tried].sum(axis=-1)
    index, which = divmod(int(np.argmax(weights >= weights.max() - TIE)), len(tried))
    rows, columns = (np.arange(few), tried[which]) if upright else (tried[which], np.arange(few))
    return index, rows, columns, float(weights[index, which])


def _first_by_hungarian(tables: NDArray[np.float64]) -> tuple[int, Ints, Ints, float]:
    """Only tables are matched that could win if no two rows wanted the same column."""
    optimistic = tables.max(axis=2).sum(axis=1)
    best: tuple[int, Ints, Ints, float] | None = None
    for i in np.argsort(-optimistic, kind="stable"):
        if best is not None and optimistic[i] < best[3] - TIE:
            break
        rows, columns = linear_sum_assignment(tables[i], maximize=True)
        weight = float(tables[i, rows, columns].sum())
        if best is None or weight > best[3] + TIE or (weight >= best[3] - TIE and i < best[0]):
            best = int(i), rows, columns, weight
    assert best is not None
    return best


@lru_cache(maxsize=32)
def _relabellings(few: int, many: int) -> Ints:
    """Every way to give each of `few` labels one of `many`, in lexicographic order: (ways, few)."""
    ways = np.array(list(permutations(range(many), few)), dtype=np.int64).reshape(perm(many, few), few)
    ways.flags.writeable = False  # it is handed out again and again
    return ways
