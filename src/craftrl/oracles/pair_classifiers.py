"""The agents of pairs (x_h, x_{h+1}) by clones of one classifier: of the pairs that occur, of pairs to come, and of
pairs that tell states apart.

Paper: Line 10
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.cross_fitting import Clone, Clones, calibrated_by_others
from craftrl.oracles.learned import stratified_folds

__all__ = ["ClassifierLogOdds", "PairClassifiers", "smoothed"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
OTHERS, OTHERS_IN_ALL = 8, 50_000  # with how many x_h of a state x_{h+1} is seen at most, and all of them together
AFTER, LEAST_AFTER, AFTER_IN_ALL = 16, 8, 50_000  # x_{h+2} beside which it is seen: at most, at least, and in all
AT_ONCE = 2**21  # numbers that a classifier is shown at a time, at most
NEIGHBOURS = 16  # whose profiles are averaged, once: done again, it makes clumps of an even spread
DIMENSIONS = 10  # principal components in which neighbours are looked for: beyond these there is noise


class PairClassifiers:
    """Classifiers of the agents of pairs (x_h, x_{h+1}), trained when first needed.

    Each step can have a classifier of its own, or one can serve all steps, with h/H as one more feature: then it learns
    from H-1 times as many pairs, which helps wherever observations mean much the same at every step. Which of the two
    tells the agents of unseen trajectories apart better is measured, not assumed.

    Trajectories are dealt into folds several times, `fold_of` (repeats, n), and what the clones of different repeats
    say is averaged: what one makes of the noise, another does not.

    Paper: Line 10
    """

    def __init__(self, clones: Clones, tau: TrajectoryDataset, folds: int, repeats: int) -> None:
        self.clones = clones
        self.tau = tau
        rng = np.random.default_rng(clones.seed)
        self.fold_of = [stratified_folds(tau.agent, folds, rng) for _ in range(repeats)]
        self.folds = folds
        self._clones: dict[tuple[bool, int, int], list[Clone]] = {}

    @cached_property
    def together(self) -> bool:
        """Whether one classifier for all steps does better on unseen trajectories; by the first repeat."""
        return self.tau.H > 2 and self._held_out_loss(True) < self._held_out_loss(False)

    @cached_property
    def log_p(self) -> Floats:
        """Log-probabilities (n, H-1, K) of the agents of all pairs, averaged over repeats; NaN where there is none."""
        found = np.full((self.tau.n, self.tau.H - 1, self.tau.K), np.nan)
        for h in range(1, self.tau.H):
            rows = np.flatnonzero(self.tau.present(h + 1))
            of_repeats = [self.of_pairs(h, rows, rows, rows, repeat) for repeat in range(len(self.fold_of))]
            found[rows, h - 1] = np.mean(of_repeats, axis=0)
        return found

    def of_pairs(
        self, h: int, first: Ints, second: Ints, unseen: Ints, repeat: int, together: bool | None = None
    ) -> Floats:
        """Log-probabilities (m, K) for x_h of trajectories `first` with x_{h+1} of `second`.

        They come from clones that did not see the trajectories `unseen`, which are the ones or the others; where both
        are of the same fold, the clones saw neither.
        """
        together = self.together if together is None else together
        log_p, fold = np.empty((len(first), self.tau.K)), self.fold_of[repeat][unseen]
        some = max(AT_ONCE // (2 * int(np.prod(self.tau.obs_shape))), 1)
        for k, one in enumerate(self.fitted(h, repeat, together)):
            own = np.flatnonzero(fold == k)
            for rows in np.split(own, range(some, len(own), some)):
                log_p[rows] = one.log_p(self._features(h, first[rows], second[rows], together), self.tau.K)
        return log_p

    def fitted(self, h: int, repeat: int, together: bool) -> list[Clone]:
        """For each fold a clone that saw all others."""
        key = (together, 0 if together else h, repeat)
        if key not in self._clones:
            steps = range(1, self.tau.H) if together else [h]
            self._clones[key] = [self._fit(steps, self.fold_of[repeat] != k, together) for k in range(self.folds)]
        return self._clones[key]

    @property
    def last(self) -> tuple[tuple[Clone, ...], ...]:
        """For each step, or once for all of them, of each repeat the clone of the last fold: it saw all but that."""
        steps = [1] if self.together else range(1, self.tau.H)
        return tuple(
            tuple(self.fitted(h, repeat, self.together)[-1] for repeat in range(len(self.fold_of))) for h in steps
        )

    def _fit(self, steps: Iterable[int], learned: NDArray[np.bool_], together: bool) -> Clone:
        rows = [(h, np.flatnonzero(self.tau.present(h + 1) & learned)) for h in steps]
        x = np.concatenate([self._features(h, own, own, together) for h, own in rows])
        return self.clones.fit(x, np.concatenate([self.tau.agent[own] for _, own in rows]))

    def _features(self, h: int, first: Ints, second: Ints, together: bool) -> Floats:
        x_h, x_next = (self.tau.at(h + i)[rows] for i, rows in enumerate((first, second)))
        return pair_features(x_h, x_next, h / self.tau.H if together else None)

    def _held_out_loss(self, together: bool) -> float:
        """Of the calibrated values: clones that are too sure of themselves may know more all the same."""
        total = 0.0
        for h in range(1, self.tau.H):
            rows = np.flatnonzero(self.tau.present(h + 1))
            agent, log_p = self.tau.agent[rows], self.of_pairs(h, rows, rows, rows, 0, together)
            log_p = calibrated_by_others(log_p, agent, self.fold_of[0][rows])
            total -= float(log_p[np.arange(len(rows)), agent].sum())
        return total

    def beside_predecessors(self, h: int, label: Ints, rows: Ints, rng: np.random.Generator) -> Floats:
        """Log-probabilities (m, S, K) of the agents, for x_{h+1} of trajectories `rows` beside each state in `label`.

        f_h depends on both observations through their states alone. So x_{h+1} is seen beside other observations x_h of
        one state, which all have the same log-odds with it. These are of the fold of x_{h+1} where it has some, so that
        no clone saw either trajectory. Many of these pairs never occur. What a classifier makes of them is no log-odds
        of anything, but as long as it looks at states and not at noise it says the same for one state. A state that was
        found, but that no trajectory is read to be in, says nothing: zeros.
        """
        n_states = int(label.max()) + 1
        turns = int(np.clip(OTHERS_IN_ALL // (len(rows) * n_states), 1, OTHERS))
        total = np.zeros((len(rows), n_states, self.tau.K))
        for repeat, fold_of in enumerate(self.fold_of):
            for s in np.unique(label[label >= 0]):
                drawn = [_drawn(np.flatnonzero(label == s), fold_of, rows, rng) for _ in range(turns)]
                mine = np.tile(rows, turns)
                log_p = self.of_pairs(h, np.concatenate(drawn), mine, mine, repeat)
                total[:, s] += log_p.reshape(turns, len(rows), -1).sum(axis=0)
        return total / (turns * len(self.fold_of))

    def beside_successors(self, h: int, rows: Ints, rng: np.random.Generator) -> Floats:
        """Log-probabilities (m, A, K) of the agents, for x_h of trajectories `rows` beside A observations x_{h+1}.

        States of h+1 need not be known: a few observations, the same ones for every x_h, will do. Early on there are
        few states of h-1 to compare with, and this is what tells two states of h apart. None at the last step.
        """
        there = np.flatnonzero(self.tau.present(h + 1)) if h < self.tau.H else np.empty(0, dtype=np.int64)
        wanted = int(np.clip(AFTER_IN_ALL // len(rows), LEAST_AFTER, AFTER))
        drawn = rng.choice(there, size=min(wanted, len(there)), replace=False)
        total = np.zeros((len(drawn), len(rows), self.tau.K))
        mine = np.tile(rows, len(drawn))
        for repeat in range(len(self.fold_of) if len(drawn) else 0):
            total += self.of_pairs(h, mine, np.repeat(drawn, len(rows)), mine, repeat).reshape(total.shape)
        return total.swapaxes(0, 1) / len(self.fold_of)


@dataclass(frozen=True)
class ClassifierLogOdds(Savable):
    """f_1..f_{H-1} for trajectories to come, by clones that are averaged.

    clones        for each step those that answer; one entry for all steps if `together`
    together      whether h/H is one more feature
    scale, shift  float (H-1,) and (H-1, K): what calibrates them
    """

    clones: tuple[tuple[Clone, ...], ...]
    together: bool
    scale: Floats
    shift: Floats

    def __call__(self, x: NDArray[np.generic]) -> Floats:
        H, K = x.shape[1], self.shift.shape[1]
        found = np.empty((len(x), H - 1, K - 1))
        for h in range(1, H):
            z = pair_features(x[:, h - 1], x[:, h], h / (len(self.scale) + 1) if self.together else None)
            said = [clone.log_p(z, K) for clone in self.clones[0 if self.together else h - 1]]
            log_p = np.mean(said, axis=0) * self.scale[h - 1] + self.shift[h - 1]
            found[:, h - 1] = log_p[:, :1] - log_p[:, 1:]
        return found


def pair_features(x_h: NDArray[np.generic], x_next: NDArray[np.generic], time: float | None) -> Floats:
    """What a classifier sees of pairs: both vectors, and how far on they are where one classifier serves all steps."""
    vectors = [x.reshape(len(x), -1).astype(np.float64) for x in (x_h, x_next)]
    return np.hstack(vectors if time is None else [*vectors, np.full((len(x_h), 1), time)])


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

    flat = main = profile.reshape(m, -1)
    if flat.shape[1] > DIMENSIONS:
        centred = flat - flat.mean(axis=0)
        main = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -DIMENSIONS:]
    found = cKDTree(main).query(main, k=near)[1].ravel()
    mean = csr_matrix((np.full(m * near, 1 / near), found, np.arange(m + 1) * near), shape=(m, m))
    return np.asarray(mean @ flat).reshape(profile.shape)
