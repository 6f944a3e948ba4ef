"""What classifiers say of x_{h+1} beside every state of h, and beside observations of h+2, steadied.

f_h depends on both observations through their states alone. So x_{h+1} is seen beside other observations x_h of one
state, which all have the same log-odds with it; and what is said of it is averaged with what is said of observations
that have the same profile, because they are of the same state. Many of these pairs never occur. What a classifier makes
of them is no log-odds of anything, but as long as it looks at states and not at noise it says the same for one state.

The same holds of f_{h+1}, in which x_{h+1} comes first. The states of h+2 are not known yet, and need not be: a few
observations x_{h+2}, the same ones for every x_{h+1}, will do. Early on there are few states of h to compare with, and
this is what tells two states of h+1 apart.

Paper: Line 10
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from craftrl.oracles.pair_classifiers import PairClassifiers

__all__ = ["MOST", "beside_predecessors", "beside_successors", "smoothed"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
MOST = 1_000_000  # observations times states that are asked about at most
OTHERS, OTHERS_IN_ALL = 8, 50_000  # with how many x_h of a state x_{h+1} is seen at most, and all of them together
AFTER, LEAST_AFTER, AFTER_IN_ALL = 16, 8, 50_000  # x_{h+2} beside which it is seen: at most, at least, and in all
AT_ONCE = 2**21  # numbers that a classifier is shown at a time, at most, unless one observation of each row is more
NEIGHBOURS = 16  # whose profiles are averaged, once: done again, it makes clumps of an even spread
DIMENSIONS = 10  # principal components in which neighbours are looked for: beyond these there is noise


def beside_predecessors(pairs: PairClassifiers, h: int, label: Ints, rows: Ints, rng: np.random.Generator) -> Floats:
    """Log-probabilities (m, S, K) of the agents, for x_{h+1} of trajectories `rows` beside each state in `label` (n,).

    Averaged over deals and over x_h of the state. These are of the fold of x_{h+1} where it has some, so that no clone
    saw either trajectory. A state that was found, but that no trajectory is read to be in, says nothing: zeros.
    """
    n_states, deals = int(label.max()) + 1, len(pairs.fold_of)
    turns = int(np.clip(OTHERS_IN_ALL // (len(rows) * n_states), 1, OTHERS))
    total = np.zeros((len(rows), n_states, pairs.tau.K))
    for deal, fold_of in enumerate(pairs.fold_of):
        for s in np.unique(label[label >= 0]):
            of_state = np.flatnonzero(label == s)
            drawn = [_drawn(of_state, fold_of, rows, rng) for _ in range(turns)]
            for some in _at_once(drawn, rows, pairs):
                log_p = pairs.of_pairs(h, np.concatenate(some), np.tile(rows, len(some)), deal)
                total[:, s] += log_p.reshape(len(some), len(rows), -1).sum(axis=0)
    return total / (turns * deals)


def beside_successors(pairs: PairClassifiers, h: int, rows: Ints, rng: np.random.Generator) -> Floats:
    """Log-probabilities (m, A, K) of the agents, for x_h of trajectories `rows` beside A observations x_{h+1}.

    Averaged over deals; from clones that did not see the trajectory of x_h. There are none at the last step.
    """
    there = np.flatnonzero(pairs.tau.present(h + 1)) if h < pairs.tau.H else np.empty(0, dtype=np.int64)
    wanted = int(np.clip(AFTER_IN_ALL // len(rows), LEAST_AFTER, AFTER))
    drawn = rng.choice(there, size=min(wanted, len(there)), replace=False)
    total = np.zeros((len(drawn), len(rows), pairs.tau.K))
    for deal in range(len(pairs.fold_of)):
        done = 0
        for some in _at_once(list(drawn), rows, pairs):
            mine = np.tile(rows, len(some))
            log_p = pairs.of_pairs(h, mine, np.repeat(some, len(rows)), deal, unseen=mine)
            total[done : done + len(some)] += log_p.reshape(len(some), len(rows), -1)
            done += len(some)
    return total.swapaxes(0, 1) / len(pairs.fold_of)


def _at_once(drawn: Sequence[Ints], rows: Ints, pairs: PairClassifiers) -> list[Sequence[Ints]]:
    """What was drawn, in parts: classifiers answer many questions at once sooner than one after the other."""
    each = len(rows) * 2 * int(np.prod(pairs.tau.obs_shape))
    several = max(AT_ONCE // max(each, 1), 1)
    return [drawn[i : i + several] for i in range(0, len(drawn), several)]


def _drawn(of_state: Ints, fold_of: Ints, rows: Ints, rng: np.random.Generator) -> Ints:
    """For each row one trajectory of the state, of the same fold where there is one."""
    beside = np.empty(len(rows), dtype=np.int64)
    for fold in np.unique(fold_of[rows]):
        mine = fold_of[rows] == fold
        near = of_state[fold_of[of_state] == fold]
        beside[mine] = rng.choice(near if len(near) else of_state, size=int(mine.sum()))
    return beside


def smoothed(profile: Floats, n_states: int) -> Floats:
    """Each profile (m, C, D) averaged with those nearest to it, which are of the same state.

    Neighbours are fewer where a state has few observations; there are about as many states as at h, `n_states`.
    """
    m = len(profile)
    near = min(NEIGHBOURS, m // max(8 * n_states, 1))
    if near < 2:
        return profile
    from scipy.spatial import cKDTree

    flat = profile.reshape(m, -1)
    main = _main_components(flat)
    found = cKDTree(main).query(main, k=near)[1].ravel()
    mean = csr_matrix((np.full(m * near, 1 / near), found, np.arange(m + 1) * near), shape=(m, m))
    return np.asarray(mean @ flat).reshape(profile.shape)


def _main_components(flat: Floats) -> Floats:
    if flat.shape[1] <= DIMENSIONS:
        return flat
    centred = flat - flat.mean(axis=0)
    return np.asarray(centred @ np.linalg.eigh(centred.T @ centred)[1][:, -DIMENSIONS:])
