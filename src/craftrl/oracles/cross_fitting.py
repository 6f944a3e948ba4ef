"""Clones of one classifier, and what they say of rows that they did not learn from.

A classifier may know by heart what it learned from. So rows are divided into folds, each class evenly, and each fold is
answered by a clone that learned from the others. What clones say of the agents is calibrated on such rows. This is the
one place where classifiers are fitted, and where classes are met that are too small for them.

Paper: Lines 10, 25 and 46, with a classifier in place of finite classes
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from threadpoolctl import ThreadpoolController

from craftrl.arrays import Bools, Floats, Ints
from craftrl.core.evidence import chance_loss
from craftrl.core.saved import Savable
from craftrl.errors import AssumptionWarning, InvalidParameterError
from craftrl.oracles.learned import calibration, stratified_folds

Maker = Callable[[], BaseEstimator]
FLOOR = 1e-6  # probabilities are kept this far from 0
MIN_ROWS = 3  # rows of a class without which it is not learned; CalibratedClassifierCV needs one in each of its folds
MIN_HELD_OUT = 6  # held-out rows of the rarest class that an error rate is measured on, at least
FEW_ROWS = 20_000  # of a training set that one thread is fastest with
LOOKED_AT = 1000  # rows on which a classifier is asked whether its training went well
FAILURES = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)  # of classifiers


@dataclass(frozen=True)
class Clone(Savable):
    """A clone that was fitted, None where there was no second class to learn, and the classes that it knows."""

    model: BaseEstimator | None
    classes: Ints

    def log_p(self, x: Floats, n_classes: int) -> Floats:
        """Log-probabilities (m, n_classes) for rows x (m, d); classes that it does not know have the floor."""
        log_p = np.full((len(x), n_classes), np.log(FLOOR))
        if self.model is None:
            log_p[:, self.classes] = 0.0
        elif len(x):
            try:
                with few_threads(len(x)):
                    p = np.nan_to_num(self.model.predict_proba(x), nan=1 / len(self.classes))
            except FAILURES as error:
                raise InvalidParameterError(
                    f"A classifier must answer for rows that it did not learn from; {type(self.model).__name__} does "
                    f"not: {_first_line(error)}; give another one."
                ) from error
            log_p[:, self.classes] = np.log(np.clip(p, FLOOR, 1.0))
        return log_p


class Clones:
    """Fits clones of one classifier; `replaced` counts the fits in which it failed and another took its place.

    Some classifiers refuse classes with few rows: nearest neighbours want as many rows as neighbours, quadratic
    discriminants more rows of each class than features. A linear discriminant with a covariance that is shrunk as far
    as the number of rows asks for takes any, and answers in their place; where even that fails, the classes' shares
    do. That is warned of once. A classifier that fails on plenty of rows as well is refused.
    """

    def __init__(self, classifier: BaseEstimator, seed: int) -> None:
        self.classifier = classifier
        self.seed = seed
        self.replaced = 0

    def bare(self) -> BaseEstimator:
        """A clone; what it would draw at random is drawn from the oracle's seed, unless it has one of its own."""
        fresh = clone(self.classifier)
        seeds = [name for name in fresh.get_params() if name.split("__")[-1] == "random_state"]
        return fresh.set_params(**{name: self.seed for name in seeds if fresh.get_params()[name] is None})

    def with_probabilities(self) -> BaseEstimator:
        fresh = self.bare()
        if hasattr(fresh, "predict_proba") or not hasattr(fresh, "decision_function"):
            return fresh  # with neither of them, it may have the first once it is fitted
        from sklearn.calibration import CalibratedClassifierCV  # slow to import

        return CalibratedClassifierCV(fresh, cv=MIN_ROWS)

    def fit(self, x: Floats, label: Ints) -> Clone:
        """A clone fitted to rows x (m, d) and their classes; those too rare are left out."""
        names, counts = np.unique(label, return_counts=True)
        classes = names[counts >= MIN_ROWS]
        if len(classes) < 2:
            return Clone(None, classes)
        known = np.isin(label, classes)
        return Clone(self.fitted(x[known], label[known], self.with_probabilities), classes)

    def fitted(self, x: Floats, label: Ints, make: Maker, ask: str = "predict_proba") -> BaseEstimator:
        """What `make` makes, fitted; or, where it fails, what takes its place. It will be asked to `ask`."""
        try:
            return _fitted(x, label, make, ask)
        except FAILURES as error:
            if not self.replaced:
                self._warn_or_refuse(error, x, label)
            self.replaced += 1
        try:
            return _fitted(x, label, _linear_discriminant, ask)
        except FAILURES:
            from sklearn.dummy import DummyClassifier  # slow to import

            return DummyClassifier(strategy="prior").fit(x, label)

    def _warn_or_refuse(self, error: Exception, x: Floats, label: Ints) -> None:
        """Warn that rows were too few, or refuse a classifier that no rows are enough for."""
        name, d = type(self.classifier).__name__, x.shape[1]
        plenty = np.random.default_rng(self.seed).normal(size=(min(max(4 * d, 200), 2000), d))
        try:
            _fitted(plenty, np.arange(len(plenty)) % 2, self.with_probabilities, "predict_proba")
        except FAILURES as always:
            raise InvalidParameterError(
                f"classifier must be one that learns; {name} fails on {len(plenty)} rows of {d} random features, too: "
                f"{_first_line(always)}; correct it or give another one."
            ) from always
        warnings.warn(
            f"{name} could not learn {len(np.unique(label))} classes from {len(x)} rows ({_first_line(error)}): a "
            "linear discriminant takes its place here, and wherever else it fails; record more trajectories, or give a "
            "classifier that takes fewer.",
            AssumptionWarning,
            stacklevel=2,
        )

    def held_out(self, x: Floats, label: Ints, n_classes: int, folds: int) -> tuple[Bools, Floats]:
        """Which rows (m,), and their log-probabilities (those, n_classes) from clones that did not see them.

        No more folds are held out than give enough rows of the rarest class to measure error rates: with many classes
        each fold takes long.
        """
        rarest = int(np.unique(label, return_counts=True)[1].min(initial=len(label)))
        turns = min(folds, -(-MIN_HELD_OUT * folds // max(rarest, 1)))
        fold_of = stratified_folds(label, folds, np.random.default_rng(self.seed))
        log_p = np.empty((len(x), n_classes))
        for fold in range(turns):
            own = fold_of == fold
            if own.any():
                log_p[own] = self.fit(x[~own], label[~own]).log_p(x[own], n_classes)
        return fold_of < turns, log_p[fold_of < turns]


def _linear_discriminant() -> BaseEstimator:
    """Fisher's, with a covariance that is shrunk as far as the number of rows asks for (Ledoit and Wolf)."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # slow to import

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _fitted(x: Floats, label: Ints, make: Maker, ask: str) -> BaseEstimator:
    """A new classifier of these rows; one for each class against the rest, where one for all of them diverged.

    It is asked about a row at once: some notice only then that they have learned from too few. Boosted trees of more
    than two classes sometimes diverge: where labels are not all right, a leaf without much weight may take a huge step,
    and the ones after it do not find back. Such a model does worse on the very rows that it learned from than one that
    knows nothing but the classes' shares.
    """
    names, own = np.unique(label, return_inverse=True)
    with few_threads(len(x)):
        model = make().fit(x, label)
        shape = np.shape(getattr(model, ask)(x[:1]))
        if shape != ((1, len(names)) if ask == "predict_proba" else (1,)):
            raise ValueError(f"{ask} answers for one row in shape {shape}")
        if len(names) < 3 or not hasattr(model, "predict_proba"):
            return model
        some = slice(None, None, max(len(x) // LOOKED_AT, 1))
        log_p = Clone(model, np.arange(len(names))).log_p(x[some], len(names))
        if -log_p[np.arange(len(log_p)), own[some]].mean() <= chance_loss(own):
            return model
        from sklearn.multiclass import OneVsRestClassifier  # seldom needed

        return OneVsRestClassifier(make()).fit(x, label)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__).strip().rstrip(".")


def few_threads(n_rows: int) -> AbstractContextManager[object]:
    """One thread where there is little to do: threads that wait for one another take many times as long."""
    return _libraries(len(sys.modules)).limit(limits=1) if n_rows < FEW_ROWS else nullcontext()


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """The libraries with threads, looked for again once more modules are loaded: that takes as long as a small fit."""
    return ThreadpoolController()


def calibrated_by_others(log_p: Floats, target: Ints, fold: Ints) -> Floats:
    """Log-probabilities, those of each fold calibrated by what the others say: what the logits are worth."""
    found = log_p.copy()
    for k in np.unique(fold):
        scale, shift = calibration(log_p[fold != k], target[fold != k])
        found[fold == k] = log_p[fold == k] * scale + shift
    return np.asarray(log_softmax(found, axis=1))
