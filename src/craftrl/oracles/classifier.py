"""Any scikit-learn classifier as an oracle, for feature vectors.

Default classifiers stay near chance on raw bits such as the paper's: they are for features in which the
states are not hidden behind a XOR.

Paper: Lines 10, 25 and 46, with a classifier in place of finite classes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from craftrl.core.encoders import ConstantEncoder
from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.core.grid import Grid
from craftrl.core.saved import Savable
from craftrl.core.starts import StartTest, paired_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Coupling, EncoderFit, LogOdds, Oracle, PreparedOracle
from craftrl.oracles.pair_functions import ClassifierLogOdds, agent_log_p
from craftrl.oracles.probabilities import SCATTERED, ClassifierSeparation, check_independent, to_bins

__all__ = ["ClassifierEncoder", "ClassifierOracle"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
CALIBRATION_FOLDS = 3
FEW_ROWS = 20_000  # of a training set that one thread is fastest with


class ClassifierOracle(Oracle):
    """Cross-fitted log-odds, separation and encoding by clones of one classifier, for feature vectors.

    Parameters
    ----------
    classifier
        Any scikit-learn classifier with `predict_proba` or `decision_function`. For log-odds it must see how x_h and
        x_{h+1} go together: give a linear one a pipeline with PolynomialFeatures.
    folds
        Of the cross-fitting: each value comes from a clone that never saw the trajectory. More folds train on more
        of the data, and take longer.
    calibrate
        Whether log-odds pass through scikit-learn's CalibratedClassifierCV; scores that are no probabilities always
        do. Switch it off for classifiers whose probabilities can be trusted as they are.
    seed
        Of the folds; the classifier has a `random_state` of its own.
    """

    def __init__(self, classifier: Any, folds: int = 3, calibrate: bool = True, seed: int = 0) -> None:
        self.classifier = classifier
        self.folds = folds
        self.calibrate = calibrate
        self.seed = seed

    def prepare(self, tau: TrajectoryDataset) -> PreparedClassifier:
        self.check()
        if self.folds > tau.n:
            raise InvalidParameterError(
                f"folds must be at most the number of trajectories, {tau.n}; {self.folds} was given."
            )
        return PreparedClassifier(self, tau)

    def suits(self) -> tuple[Choice, ...]:
        return SCATTERED

    def refits(self) -> int:
        return 3

    def check(self) -> None:
        """Raise where a parameter means nothing."""
        if isinstance(self.folds, bool) or not (isinstance(self.folds, (int, np.integer)) and self.folds >= 2):
            raise InvalidParameterError(f"folds must be an integer of at least 2; {self.folds} was given.")
        if isinstance(self.seed, bool) or not (isinstance(self.seed, (int, np.integer)) and self.seed >= 0):
            raise InvalidParameterError(f"seed must be an integer of at least 0; {self.seed!r} was given.")
        if isinstance(self.classifier, type) or not hasattr(self.classifier, "fit"):
            raise InvalidParameterError(
                f"classifier must be a scikit-learn classifier, such as HistGradientBoostingClassifier(); "
                f"{self.classifier!r} was given."
            )
        if not any(hasattr(self.classifier, name) for name in ("predict_proba", "decision_function")):
            raise InvalidParameterError(
                f"A classifier needs predict_proba or decision_function; {type(self.classifier).__name__} has neither; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV."
            )


class PreparedClassifier(PreparedOracle):
    """The three training problems on one dataset; each is fitted when asked for."""

    def __init__(self, oracle: ClassifierOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self._log_p: dict[int, tuple[Floats, Any, Ints]] = {}

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """One classifier per step, independent of the others."""
        check_independent(coupling, "ClassifierOracle", "only the encoders of a finite class can be chained")
        n, H, K = self.tau.n, self.tau.H, self.tau.K
        bins = np.full((n, H - 1, K - 1), -1, dtype=np.int16)
        loss, chance, p_value = np.zeros((3, H - 1))
        for h in range(1, H):
            there = self.tau.present(h + 1)
            agent = self.tau.agent[there]
            log_p = self._agent_log_p(h)[0]
            bins[there, h - 1] = to_bins(log_p[:, :1] - log_p[:, 1:], grid)
            loss[h - 1] = -log_p[np.arange(len(agent)), agent].mean()
            chance[h - 1], p_value[h - 1] = chance_loss(agent), held_out_p_value(log_p, agent)
        _, models, classes = zip(*(self._agent_log_p(h) for h in range(1, H)))
        return LogOdds(bins, loss, chance=chance, p_value=p_value, f=ClassifierLogOdds(models, classes, K))

    def test_start(self) -> StartTest:
        """Classifiers of x_1 alone, of x_2 alone and of both, all on trajectories that they did not see."""
        there = self.tau.present(2)
        agent = self.tau.agent[there]
        first, second = (
            self._cross_fitted(self._vectors(h)[there], agent, self.tau.K, self.oracle.calibrate)[0] for h in (1, 2)
        )
        right = np.arange(len(agent)), agent
        both = self._agent_log_p(1)[0][right]
        gain = both - second[right]
        told = float(both.mean()) + chance_loss(agent)
        return StartTest(held_out_p_value(first, agent), paired_p_value(gain), float(gain.mean()), told)

    def _agent_log_p(self, h: int) -> tuple[Floats, Any, Ints]:
        """Log-probabilities of the agents for the pairs that exist at h, with the classifier of the last fold and the
        agents that it knows; trained once, whatever the grid."""
        if h not in self._log_p:
            there = self.tau.present(h + 1)
            agent = self.tau.agent[there]
            self._log_p[h] = self._cross_fitted(self._pairs(h)[there], agent, self.tau.K, self.oracle.calibrate)
        return self._log_p[h]

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> ClassifierSeparation:
        chosen = (cluster >= 0) & self.tau.present(h)
        label = cluster[chosen]
        if n_clusters < 2:
            return ClassifierSeparation(np.zeros((len(label), n_clusters)), label, n_clusters)
        log_p, _, _ = self._cross_fitted(self._vectors(h)[chosen], label, n_clusters)
        return ClassifierSeparation(log_p, label, n_clusters)

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        chosen = (label >= 0) & self.tau.present(h)
        return self._encoder(self._vectors(h)[chosen], label[chosen], n_states)

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        """One classifier on the observations of all steps together."""
        steps = range(1, self.tau.H + 1)
        chosen = [(labels[:, h - 1] >= 0) & self.tau.present(h) for h in steps]
        x = np.concatenate([self._vectors(h)[rows] for h, rows in zip(steps, chosen)])
        return self._encoder(x, np.concatenate([labels[rows, h - 1] for h, rows in zip(steps, chosen)]), n_states)

    def _encoder(self, x: Floats, target: Ints, n_states: int) -> EncoderFit:
        if len(np.unique(target)) < 2:
            return EncoderFit(ConstantEncoder(int(target[0]) if len(target) else 0), 0.0)
        wrong = self._cross_fitted(x, target, n_states)[0].argmax(axis=1) != target
        rates = [wrong[target == s].mean() for s in np.unique(target)]
        with _few_threads(len(x)):
            encoder = self._fresh().fit(x, target)  # bare: it is asked for predictions, not for probabilities
        return EncoderFit(ClassifierEncoder(encoder), float(np.sum(rates)))

    def _vectors(self, h: int) -> Floats:
        return self.tau.at(h).reshape(self.tau.n, -1).astype(np.float64)

    def _pairs(self, h: int) -> Floats:
        x_h, x_next = self._vectors(h), self._vectors(h + 1)
        return np.hstack([x_h, x_next])

    def _fresh(self) -> Any:
        return clone(self.oracle.classifier)

    def _with_probabilities(self, calibrate: bool) -> Any:
        fresh = self._fresh()
        if hasattr(fresh, "predict_proba") and not calibrate:
            return fresh
        from sklearn.calibration import CalibratedClassifierCV  # dear to import

        return CalibratedClassifierCV(fresh, cv=CALIBRATION_FOLDS)

    def _cross_fitted(
        self, x: Floats, label: Ints, n_classes: int, calibrate: bool = False
    ) -> tuple[Floats, Any, Ints]:
        """Log-probabilities (m, n_classes) of every row, from clones that did not see it.

        With them the last of these clones, None if it had nothing to learn, and the classes that it knows.
        """
        rng = np.random.default_rng(self.oracle.seed)
        fold_of = _stratified_folds(label, self.oracle.folds, rng)
        log_p = np.empty((len(x), n_classes))
        for fold in range(self.oracle.folds):
            seen, own = fold_of != fold, fold_of == fold
            names, counts = np.unique(label[seen], return_counts=True)
            classes = names[counts >= CALIBRATION_FOLDS]  # a rarer class cannot be learned, and keeps the floor
            seen &= np.isin(label, classes)
            model = None
            with _few_threads(len(x)):
                if len(classes) >= 2 and own.any():
                    model = self._with_probabilities(calibrate).fit(x[seen], label[seen])
                log_p[own] = agent_log_p(model, classes, x[own], n_classes)
        return log_p, model, classes


def _few_threads(n_rows: int) -> Any:
    """One thread where there is little to do: threads that wait for one another take many times as long."""
    return threadpool_limits(1 if n_rows < FEW_ROWS else None)


def _stratified_folds(label: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """A fold for each row, every class spread evenly over all folds."""
    order = rng.permutation(len(label))
    order = order[np.argsort(label[order], kind="stable")]
    fold_of = np.empty(len(label), dtype=np.int64)
    fold_of[order] = np.arange(len(label)) % folds
    return fold_of


@dataclass(frozen=True)
class ClassifierEncoder(Savable):
    """phi'_h: the classifier's own prediction."""

    model: Any

    def __call__(self, x: NDArray[Any]) -> Ints:
        if not len(x):
            return np.empty(0, dtype=np.int64)
        with _few_threads(len(x)):
            return np.asarray(self.model.predict(x.reshape(len(x), -1).astype(np.float64)), dtype=np.int64)
