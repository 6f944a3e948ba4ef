"""Any scikit-learn classifier as an oracle, for feature vectors.

Default classifiers stay near chance on raw bits such as the paper's: they are for features in which the
states are not hidden behind a XOR.

Paper: Lines 10, 25 and 46, with a classifier in place of finite classes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import clone

from craftrl.arguments import check_flag, check_whole, shown
from craftrl.core.encoders import ConstantEncoder
from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.core.grid import Grid
from craftrl.core.learned import PreparedLearned, Profiles
from craftrl.core.saved import Savable
from craftrl.core.starts import StartTest, paired_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Coupling, EncoderFit, LogOdds, Oracle, check_data
from craftrl.oracles.pair_classifiers import (
    CALIBRATION_FOLDS,
    PairClassifiers,
    few_threads,
    fitted,
    stratified_folds,
    trained,
)
from craftrl.oracles.pair_functions import ClassifierLogOdds, agent_log_p
from craftrl.oracles.probabilities import (
    SCATTERED,
    calibrated_by_others,
    calibration,
    check_independent,
    to_bins,
)
from craftrl.oracles.set_separation import SetSeparation, linear_discriminant
from craftrl.oracles.successor_profiles import MOST, beside_predecessors, beside_successors, smoothed

__all__ = ["ClassifierEncoder", "ClassifierOracle"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
READING_FOLDS = 2  # of those whose clones read the states of all rows: more read them no better, and are dearer
MOST_DEALS = 1000
MOST_SEED = 2**32 - 1  # what scikit-learn takes
HEARD = 6  # held-out rows of the rarest class that an error rate is measured on, at least


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
    deals
        How often trajectories are dealt into folds for the log-odds. What the clones of different deals say is
        averaged, which steadies it; takes as many times longer.
    calibrate
        Whether log-odds are scaled and shifted, step by step, to be right on trajectories that the clones did not see.
        Switch it off for classifiers whose probabilities can be trusted as they are. Scores that are no probabilities
        always pass through scikit-learn's CalibratedClassifierCV first.
    seed
        Of the folds, and of a classifier whose `random_state` is None.
    """

    shares_over_time = True

    def __init__(self, classifier: Any, folds: int = 3, calibrate: bool = True, seed: int = 0, deals: int = 4) -> None:
        self.classifier = classifier
        self.folds = folds
        self.deals = deals
        self.calibrate = calibrate
        self.seed = seed

    def prepare(self, tau: TrajectoryDataset) -> PreparedClassifier:
        check_data(tau)
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
        check_whole("folds", self.folds, 2)
        check_whole("deals", self.deals, 1, MOST_DEALS)
        check_whole("seed", self.seed, 0, MOST_SEED)
        check_flag("calibrate", self.calibrate)
        if isinstance(self.classifier, type) or not hasattr(self.classifier, "fit"):
            raise InvalidParameterError(
                f"classifier must be a scikit-learn classifier, such as HistGradientBoostingClassifier(); "
                f"{shown(self.classifier)} was given."
            )
        if not any(hasattr(self.classifier, name) for name in ("predict_proba", "decision_function")):
            raise InvalidParameterError(
                f"A classifier needs predict_proba or decision_function; {type(self.classifier).__name__} has neither; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV."
            )


class PreparedClassifier(PreparedLearned):
    """The three training problems on one dataset; each is fitted when asked for."""

    def __init__(self, oracle: ClassifierOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.seed = oracle.seed
        rng = np.random.default_rng(oracle.seed)
        self.pairs = PairClassifiers(self._with_probabilities, tau, oracle.folds, oracle.deals, rng)
        self._log_p: Floats | None = None
        self._scale = np.ones(tau.H - 1)
        self._said: dict[int, tuple[bytes, Ints, Floats]] = {}  # of each h the last states, rows and their profiles

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Steps are independent of one another, or all have one classifier; trained once, whatever the grid."""
        check_independent(coupling, "ClassifierOracle", "only the encoders of a finite class can be chained")
        n, H, K = self.tau.n, self.tau.H, self.tau.K
        if self._log_p is None:
            self._log_p = np.stack([self.pairs.log_p(h) for h in range(1, H)], axis=1)
        bins = np.full((n, H - 1, K - 1), -1, dtype=np.int16)
        loss, chance, p_value, scale = np.zeros((4, H - 1))
        shift = np.zeros((H - 1, K))
        for h in range(1, H):
            there = self.tau.present(h + 1)
            agent = self.tau.agent[there]
            log_p, scale[h - 1], shift[h - 1] = self._calibrated(self._log_p[there, h - 1], agent)
            bins[there, h - 1] = to_bins(log_p[:, :1] - log_p[:, 1:], grid)
            if self.oracle.calibrate:
                log_p = calibrated_by_others(self._log_p[there, h - 1], agent, self.pairs.fold_of[0][there])
            loss[h - 1] = -log_p[np.arange(len(agent)), agent].mean()
            chance[h - 1], p_value[h - 1] = chance_loss(agent), held_out_p_value(log_p, agent)
        models, classes = zip(*(zip(*self.pairs.last(h)) for h in range(1, H)))
        self._scale = scale
        f = ClassifierLogOdds(models, classes, self.pairs.together, scale, shift, H)
        return LogOdds(bins, loss, chance=chance, p_value=p_value, f=f)

    def log_odds_given(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> NDArray[np.int16]:
        """The state's own part of the profile of x_{h+1}, calibrated state by state.

        Trees level out what they saw little of, and not by as much in every state: so each state has a factor and
        offsets of its own.
        """
        rows, profile = self._profiles(h, label, grid)
        bins = f.bins[:, h - 1].copy()
        for s in np.unique(label[rows]):
            mine = label[rows] == s
            log_p, _, _ = self._calibrated(profile[mine, s], self.tau.agent[rows[mine]])
            bins[rows[mine]] = to_bins(log_p[:, :1] - log_p[:, 1:], grid)
        return bins

    def profiles(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> Profiles | None:
        rows, profile = self._profiles(h, label, grid)
        if not len(rows):
            return None
        found = np.full((self.tau.n, profile.shape[1], self.tau.K - 1), np.nan)
        found[rows] = profile[..., :1] - profile[..., 1:]
        return Profiles(found, int(label.max()) + 1)

    def _profiles(self, h: int, label: Ints, grid: Grid) -> tuple[Ints, Floats]:
        """Rows, and the profiles (m, S + A, K) of their x_{h+1}.

        No further from even than the grid goes: a clone that is too sure of itself must not drown the rest. What does
        not depend on the grid is kept: both questions need it, and so do other bounds.
        """
        key = label.tobytes()
        if h not in self._said or self._said[h][0] != key:
            self._said[h] = key, *self._read_profiles(h, label)
        _, rows, log_p = self._said[h]
        most = grid.xi * grid.n_xi / 4
        return rows, smoothed(np.clip(log_p, -most, most), int(label.max(initial=-1)) + 1)

    def _read_profiles(self, h: int, label: Ints) -> tuple[Ints, Floats]:
        """Rows, and centred log-probabilities of their x_{h+1} beside the states of h and beside what may follow."""
        rows = np.flatnonzero((label >= 0) & self.tau.present(h + 1))
        if not 0 < len(rows) * (label.max(initial=-1) + 1) <= MOST:
            return rows[:0], np.empty((0, 0, self.tau.K))
        rng = np.random.default_rng([self.seed, h])
        before = beside_predecessors(self.pairs, h, label, rows, rng) * self._scale[h - 1]
        after = beside_successors(self.pairs, h + 1, rows, rng) * self._scale[min(h, self.tau.H - 2)]
        log_p = np.concatenate([before, after], axis=1)
        return rows, log_p - log_p.mean(axis=-1, keepdims=True)

    def _calibrated(self, log_p: Floats, agent: Ints) -> tuple[Floats, float, Floats]:
        """Normalised log-probabilities, and the factor and offsets that they were calibrated with."""
        scale, shift = calibration(log_p, agent) if self.oracle.calibrate else (1.0, np.zeros(log_p.shape[1]))
        return np.asarray(log_softmax(log_p * scale + shift, axis=1)), scale, shift

    def test_start(self) -> StartTest:
        """Classifiers of x_1 alone, of x_2 alone and of both, trained alike, on trajectories that they did not see.

        Columns of noise may steady a classifier. So both must also beat x_2 beside the x_1 of another trajectory,
        which has as many columns: the harder of the two comparisons counts.
        """
        there = self.tau.present(2)
        agent, x, x_next = self.tau.agent[there], self._vectors(1)[there], self._vectors(2)[there]
        other = np.random.default_rng(self.oracle.seed).permutation(x)
        right = np.arange(len(agent)), agent
        both, *rest = (
            self._of_agents(pair, agent)[right] for pair in (np.hstack([x, x_next]), x_next, np.hstack([other, x_next]))
        )
        gains = [both - without for without in rest]
        gain = min(gains, key=np.mean)
        told = float(both.mean()) + chance_loss(agent)
        return StartTest(self._first_p_value(x, agent), max(map(paired_p_value, gains)), float(gain.mean()), told)

    def _first_p_value(self, x: Floats, agent: Ints) -> float:
        """Of classifiers of x_1 alone: fold by fold, since folds that train one another are not independent."""
        folds, log_p = self.oracle.folds, self._of_agents(x, agent)
        fold_of = stratified_folds(agent, folds, np.random.default_rng(self.oracle.seed))
        by_fold = [held_out_p_value(log_p[fold_of == fold], agent[fold_of == fold]) for fold in range(folds)]
        return min(1.0, folds * min(by_fold))

    def _of_agents(self, x: Floats, agent: Ints) -> Floats:
        """Calibrated log-probabilities of the agents, from classifiers that did not see the trajectory."""
        return self._calibrated(self._cross_fitted(x, agent, self.tau.K), agent)[0]

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> SetSeparation:
        chosen = (cluster >= 0) & self.tau.present(h)
        makers = (linear_discriminant, self._with_probabilities)
        return SetSeparation(makers, self._held_out_pair, self._vectors(h)[chosen], cluster[chosen], self.seed)

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        """With the states as clones read them that did not see the trajectory: trees learn wrong labels by heart."""
        chosen = (label >= 0) & self.tau.present(h)
        fit, read = self._encoder(self._vectors(h)[chosen], label[chosen], n_states, all_rows=True)
        unseen = np.full(self.tau.n, -1)
        unseen[chosen] = read
        return replace(fit, unseen=unseen)

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        """One classifier on the observations of all steps together."""
        steps = range(1, self.tau.H + 1)
        chosen = [(labels[:, h - 1] >= 0) & self.tau.present(h) for h in steps]
        x = np.concatenate([self._vectors(h)[rows] for h, rows in zip(steps, chosen)])
        target = np.concatenate([labels[rows, h - 1] for h, rows in zip(steps, chosen)])
        return self._encoder(x, target, n_states)[0]

    def _encoder(self, x: Floats, target: Ints, n_states: int, all_rows: bool = False) -> tuple[EncoderFit, Ints]:
        """phi' of these observations, and what clones that did not see them make of those that were held out."""
        if len(np.unique(target)) < 2:
            return EncoderFit(ConstantEncoder(int(target[0]) if len(target) else 0), 0.0), target
        folds = READING_FOLDS if all_rows else self.oracle.folds
        held_out, log_p = self._held_out(x, target, n_states, folds, all_rows)
        read, tested = log_p.argmax(axis=1), target[held_out]
        rates = [(read != tested)[tested == s].mean() for s in np.unique(tested)]
        encoder = trained(self._fresh, x, target)  # bare: it is asked for predictions, not for probabilities
        return EncoderFit(ClassifierEncoder(encoder), float(np.sum(rates))), read

    def _vectors(self, h: int) -> Floats:
        return self.tau.at(h).reshape(self.tau.n, -1).astype(np.float64)

    def _fresh(self) -> Any:
        """A clone; what it would draw at random is drawn from the oracle's seed, unless it has one of its own."""
        fresh = clone(self.oracle.classifier)
        unseeded = {name: self.seed for name, value in fresh.get_params().items() if _is_seed(name) and value is None}
        return fresh.set_params(**unseeded)

    def _with_probabilities(self) -> Any:
        fresh = self._fresh()
        if hasattr(fresh, "predict_proba"):
            return fresh
        from sklearn.calibration import CalibratedClassifierCV  # dear to import

        return CalibratedClassifierCV(fresh, cv=CALIBRATION_FOLDS)

    def _cross_fitted(self, x: Floats, label: Ints, n_classes: int) -> Floats:
        """Log-probabilities (m, n_classes) of every row, from clones that did not see it."""
        return self._held_out(x, label, n_classes, self.oracle.folds, all_rows=True)[1]

    def _held_out_pair(self, maker: Callable[[], Any], x: Floats, label: Ints) -> tuple[NDArray[np.bool_], Floats]:
        return self._held_out(x, label, 2, self.oracle.folds, maker=maker)

    def _held_out(
        self,
        x: Floats,
        label: Ints,
        n_classes: int,
        folds: int,
        all_rows: bool = False,
        maker: Callable[[], Any] | None = None,
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Rows, and their log-probabilities (m, n_classes) from clones that did not see them.

        Unless all rows are asked for, as many folds take their turn as it takes to hear enough rows of the rarest
        class: error rates need no more, and with many classes each fold is dear. `maker` is of another kind of
        classifier.
        """
        rarest = int(np.unique(label, return_counts=True)[1].min(initial=len(label)))
        turns = folds if all_rows else min(folds, -(-HEARD * folds // max(rarest, 1)))
        fold_of = stratified_folds(label, folds, np.random.default_rng(self.oracle.seed))
        log_p = np.empty((len(x), n_classes))
        for fold in range(turns):
            own = fold_of == fold
            if own.any():
                model, classes = fitted(maker or self._with_probabilities, x[~own], label[~own])
                with few_threads(len(x)):
                    log_p[own] = agent_log_p(model, classes, x[own], n_classes)
        return fold_of < turns, log_p[fold_of < turns]


def _is_seed(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")


@dataclass(frozen=True)
class ClassifierEncoder(Savable):
    """phi'_h: the classifier's own prediction."""

    model: Any

    def __call__(self, x: NDArray[Any]) -> Ints:
        if not len(x):
            return np.empty(0, dtype=np.int64)
        with few_threads(len(x)):
            return np.asarray(self.model.predict(x.reshape(len(x), -1).astype(np.float64)), dtype=np.int64)
