"""The agents of pairs by clones of one classifier, and how the problem is posed to it.

Each step can have a classifier of its own, or one can serve all steps, with h/H as one more feature: then it learns
from H-1 times as many pairs, which helps wherever observations mean much the same at every step. Which of the two tells
the agents of unseen trajectories apart better is measured, not assumed.

Every value comes from clones that never saw the trajectory. Trajectories are dealt into folds several times, and what
the clones of different deals say is averaged: what one makes of the noise, another does not.

Paper: Line 10
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from craftrl.core.evidence import chance_loss
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.pair_functions import agent_log_p, pair_features
from craftrl.oracles.probabilities import calibrated_by_others

__all__ = ["CALIBRATION_FOLDS", "Fit", "PairClassifiers", "few_threads", "fitted", "stratified_folds", "trained"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
Fit = tuple[Any, Ints]  # a clone, None if it had nothing to learn, and the classes that it knows
CALIBRATION_FOLDS = 3
FEW_ROWS = 20_000  # of a training set that one thread is fastest with
LOOKED_AT = 1000  # rows on which a classifier is asked whether its training went well


class PairClassifiers:
    """Classifiers of the agents of pairs (x_h, x_{h+1}), trained when first needed.

    fresh     makes a new clone, with probabilities
    folds     of each deal
    deals     how often trajectories are dealt into folds
    """

    def __init__(
        self, fresh: Callable[[], Any], tau: TrajectoryDataset, folds: int, deals: int, rng: np.random.Generator
    ) -> None:
        self.fresh = fresh
        self.tau = tau
        self.folds = folds
        self.fold_of = [stratified_folds(tau.agent, folds, rng) for _ in range(deals)]
        self._fits: dict[tuple[bool, int, int], list[Fit]] = {}

    @cached_property
    def together(self) -> bool:
        """Whether one classifier for all steps does better on unseen trajectories; by the first deal."""
        return self.tau.H > 2 and self._held_out_loss(True) < self._held_out_loss(False)

    def log_p(self, h: int) -> Floats:
        """Log-probabilities (n, K) of the agents of all pairs at h, averaged over deals; NaN where there is none."""
        rows = np.flatnonzero(self.tau.present(h + 1))
        found = np.full((self.tau.n, self.tau.K), np.nan)
        found[rows] = np.mean([self.of_pairs(h, rows, rows, deal) for deal in range(len(self.fold_of))], axis=0)
        return found

    def of_pairs(
        self,
        h: int,
        first: Ints,
        second: Ints,
        deal: int,
        together: bool | None = None,
        unseen: Ints | None = None,
    ) -> Floats:
        """Log-probabilities (m, K) for x_h of trajectories `first` with x_{h+1} of `second`.

        They come from clones that did not see the trajectory in `unseen`, which is that of `second` unless given; for
        those that saw neither, the two must be of the same fold.
        """
        together = self.together if together is None else together
        x = pair_features(self._vectors(h)[first], self._vectors(h + 1)[second], self._time(h, together))
        log_p = np.empty((len(x), self.tau.K))
        fold = self.fold_of[deal][second if unseen is None else unseen]
        with few_threads(len(x)):
            for k, (model, classes) in enumerate(self._fitted(h, deal, together)):
                log_p[fold == k] = agent_log_p(model, classes, x[fold == k], self.tau.K)
        return log_p

    def last(self, h: int) -> list[Fit]:
        """For each deal the clone of the last fold: it saw all trajectories but those of that fold."""
        return [self._fitted(h, deal, self.together)[-1] for deal in range(len(self.fold_of))]

    def _held_out_loss(self, together: bool) -> float:
        """Of the calibrated values: clones that are too sure of themselves may know more all the same."""
        total = 0.0
        for h in range(1, self.tau.H):
            rows = np.flatnonzero(self.tau.present(h + 1))
            agent = self.tau.agent[rows]
            log_p = calibrated_by_others(self.of_pairs(h, rows, rows, 0, together), agent, self.fold_of[0][rows])
            total -= float(log_p[np.arange(len(rows)), agent].sum())
        return total

    def _fitted(self, h: int, deal: int, together: bool) -> list[Fit]:
        key = (together, 0 if together else h, deal)
        if key not in self._fits:
            steps = range(1, self.tau.H) if together else [h]
            self._fits[key] = [self._fit(steps, deal, k, together) for k in range(self.folds)]
        return self._fits[key]

    def _fit(self, steps: Any, deal: int, fold: int, together: bool) -> Fit:
        parts, agents = [], []
        for h in steps:
            seen = self.tau.present(h + 1) & (self.fold_of[deal] != fold)
            parts.append(pair_features(self._vectors(h)[seen], self._vectors(h + 1)[seen], self._time(h, together)))
            agents.append(self.tau.agent[seen])
        return fitted(self.fresh, np.concatenate(parts), np.concatenate(agents))

    def _time(self, h: int, together: bool) -> float | None:
        """h as a feature where one classifier serves all steps, at most 1: linear ones stumble over large features."""
        return h / self.tau.H if together else None

    def _vectors(self, h: int) -> Floats:
        return self.tau.at(h).reshape(self.tau.n, -1).astype(np.float64)


def fitted(fresh: Callable[[], Any], x: Floats, label: Ints) -> Fit:
    """A new clone trained on these rows, and the classes that it knows: one that is too rare cannot be learned."""
    names, counts = np.unique(label, return_counts=True)
    classes = names[counts >= CALIBRATION_FOLDS]
    if len(classes) < 2:
        return None, classes
    known = np.isin(label, classes)
    return trained(fresh, x[known], label[known]), classes


def trained(fresh: Callable[[], Any], x: Floats, label: Ints) -> Any:
    """A new clone trained on these rows; one for each class against the rest, where one for all of them diverged."""
    with few_threads(len(x)):
        model = fresh().fit(x, label)
        if not _diverged(model, x, label):
            return model
        from sklearn.multiclass import OneVsRestClassifier  # seldom needed

        return OneVsRestClassifier(fresh()).fit(x, label)


def _diverged(model: Any, x: Floats, label: Ints) -> bool:
    """Whether it does worse on the very rows that it learned from than one that knows nothing but the classes' shares.

    Boosted trees of more than two classes sometimes do: where labels are not all right, a leaf without much weight may
    take a huge step, and the ones after it do not find back.
    """
    if len(np.unique(label)) < 3 or not hasattr(model, "predict_proba"):
        return False
    some = slice(None, None, max(len(x) // LOOKED_AT, 1))
    log_p = agent_log_p(model, np.arange(len(model.classes_)), x[some], len(model.classes_))
    own = np.searchsorted(model.classes_, label[some])
    return bool(-log_p[np.arange(len(own)), own].mean() > chance_loss(label))


def few_threads(n_rows: int) -> Any:
    """One thread where there is little to do: threads that wait for one another take many times as long."""
    return _libraries(len(sys.modules)).limit(limits=1) if n_rows < FEW_ROWS else nullcontext()


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """The libraries with threads that are loaded; to look for them takes longer than to fit a small classifier.

    They come with modules: as long as there are as many of those, they are the same.
    """
    return ThreadpoolController()


def stratified_folds(label: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """A fold for each row, every class spread evenly over all folds."""
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold_of = np.empty(len(label), dtype=np.int64)
    fold_of[order] = np.arange(len(label)) % folds
    return fold_of
