"""What the log-odds know of single observations: their profiles, and states against profiles.

The profile of x_h are its log-odds with observations that are the same for all, its references: f_h(x_h, r) for
references r of the next step, f_{h-1}(r, x_h) for those of the step before. f_h depends on x_h through its state alone
(Equation 1), so observations of one state have one profile, but for the errors of f, and noise has no part in it.

Paper: Section 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, xlogy

from craftrl.core.oracle import CheckablePairFunction
from craftrl.diagnostics.closure import pearson_of_large
from craftrl.states.visits import count_visits

__all__ = ["foretold", "halves", "left_over", "main_directions", "profiles", "read_by_profile"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
FEWEST, MOST = 12, 32  # references at each step; in between as many as there are states
DIRECTIONS, SMALL = 12, 0.05  # of a profile at most so many directions, and none with so small a part of its deviation
LEARNED = 5  # observations of a state from which on it can be learned
FOLDS = 2  # of those whose rows are read by what was learned from the others


def profiles(f: CheckablePairFunction, x: NDArray[Any], codes: Ints, rng: np.random.Generator) -> list[Floats]:
    """The profiles of observations x (n, H, *obs) with states `codes` (n, H), in their main directions, by step.

    The references of a step are observations of all its states in turn, so that every state meets its neighbours.
    """
    H = codes.shape[1]
    R = int(np.clip(codes.max() + 1, FEWEST, MOST))
    rows = np.stack([_in_turn(codes[:, h], R, rng) for h in range(H)], axis=1)
    found = f.beside(x, x[rows, np.arange(H)])
    return [main_directions(found[:, h], codes[:, h] >= 0) for h in range(H)]


def _in_turn(code: Ints, R: int, rng: np.random.Generator) -> Ints:
    """R rows, of all states in turn and drawn at random within each."""
    there = rng.permutation(np.flatnonzero(code >= 0))
    there = there[np.argsort(code[there], kind="stable")]
    starts = np.flatnonzero(np.diff(code[there], prepend=-1))
    turn = np.arange(len(there)) - starts[np.searchsorted(starts, np.arange(len(there)), side="right") - 1]
    return np.resize(there[np.argsort(turn, kind="stable")], R)


def main_directions(profile: Floats, there: NDArray[np.bool_]) -> Floats:
    """Profiles (n, d) in their main directions (n, at most 12), those of rows that are not there 0."""
    if not there.any():
        return np.zeros((len(profile), 1))
    centred = np.where(there[:, None], profile - profile[there].mean(axis=0), 0.0)
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    kept = (size > SMALL * size[0]) & (np.arange(len(size)) < DIRECTIONS)
    return np.asarray(centred @ axes[kept | (np.arange(len(size)) == 0)].T)


def read_by_profile(profile: Floats, code: Ints, rng: np.random.Generator) -> Ints:
    """The states (n,) that the profiles say, -1 where a code is: a linear discriminant that did not learn from the row.

    All states count alike, so that a rare one is not lost to a common one with the same profile. One with a handful of
    observations is read as another.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # dear to import

    read, there = np.full(len(code), -1), np.flatnonzero(code >= 0)
    fold_of = rng.permutation(len(there)) % FOLDS
    for fold in range(FOLDS):
        learned, own = there[fold_of != fold], there[fold_of == fold]
        names, visits = np.unique(code[learned], return_counts=True)
        names = names[visits >= LEARNED]
        learned = learned[np.isin(code[learned], names)]
        if len(names) < 2 or not profile[learned].std():
            read[own] = names[0] if len(names) else 0
            continue
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(len(names), 1 / len(names)))
        read[own] = rule.fit(profile[learned], code[learned]).predict(profile[own])
    return read


def halves(profile: Floats, code: Ints) -> Ints:
    """Every state cut in two (n,), 0 or 1, where its profiles differ most: along their first direction, by two means.

    A state in which two are fused comes apart here.
    """
    half = np.zeros(len(code), dtype=np.int64)
    for s in np.unique(code[code >= 0]):
        own = np.flatnonzero(code == s)
        if len(own) < 2:
            continue
        off = profile[own] - profile[own].mean(axis=0)
        along = off @ np.linalg.svd(off, full_matrices=False)[2][0]
        order = np.sort(along)
        n = np.arange(1, len(order))
        before = np.cumsum(order)[:-1]  # the sum of all is 0
        half[own] = along > order[np.argmax(before**2 / n + before**2 / n[::-1])]
    return half


def left_over(own: Ints, other: Ints, agent: Ints, probes: Sequence[Ints]) -> tuple[float, float]:
    """ln p and nats of the probe (n,) that depends most on the neighbouring state `other`, given (own, agent).

    Closure, as in `craftrl.diagnostics.closure`: given the state and the agent, the neighbouring state is independent
    of whatever else there is in the observation. Unknown states (-1) are left out.
    """
    there = (own >= 0) & (other >= 0)
    if not there.any():
        return 0.0, 0.0
    cell, to = own[there] * (agent.max() + 1) + agent[there], other[there]
    sizes = int(cell.max()) + 1, int(to.max()) + 1
    found = []
    for probe in probes:
        tables = count_visits(cell, to, probe[there], sizes=(*sizes, int(probe[there].max()) + 1))
        statistic, free = (float(np.sum(part)) for part in zip(*(pearson_of_large(t[:, None]) for t in tables)))
        with np.errstate(divide="ignore"):  # p may be too small for a float
            log_p = float(np.log(chdtrc(free, statistic))) if free > 1e-9 else 0.0
        found.append((min(log_p + np.log(len(probes)), 0.0), max(statistic - free, 0.0) / (2 * int(there.sum()))))
    return min(found)


def foretold(own: Ints, other: Ints, agent: Ints) -> float:
    """What the state tells of the neighbouring one given the agent, in nats, less what chance gives."""
    there = (own >= 0) & (other >= 0)
    table = count_visits(agent[there], own[there], other[there])
    rows, columns = table.sum(axis=2), table.sum(axis=1)
    n_log_n, of_rows, of_columns, of_all = (xlogy(n, n).sum() for n in (table, rows, columns, rows.sum(axis=1)))
    ratio = n_log_n - of_rows - of_columns + of_all
    free = np.sum(((rows > 0).sum(axis=1) - 1).clip(0) * ((columns > 0).sum(axis=1) - 1).clip(0))
    return max(float(ratio - free / 2), 0.0) / max(int(there.sum()), 1)
