"""Any scikit-learn classifier as an oracle, for feature vectors.

Default classifiers stay near chance on raw bits such as the paper's: they are for features in which the
states are not hidden behind a XOR.

Paper: Lines 10, 25 and 46, with a classifier in place of finite classes
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, is_classifier

from craftrl.arguments import check_flag, check_kind, check_whole, quoted
from craftrl.arrays import Floats, Ints, Observations
from craftrl.core.encoders import ConstantEncoder
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Oracle
from craftrl.oracles.cross_fitting import Clone, Clones, calibrated_by_others, few_threads
from craftrl.oracles.learned import (
    PreparedLearned,
    calibration,
    check_independent,
    judged,
    stratified_folds,
    to_bins,
)

MAX_REPEATS = 1000
MAX_SEED = 2**32 - 1  # what scikit-learn takes
REFERENCES, MIN_REFERENCES = 24, 8  # observations beside which all others are seen, as first and as second of a pair
PAIRS_IN_ALL = 3_000_000  # of observations with references, beyond which there are fewer references
AT_ONCE = 2**21  # numbers that a classifier is shown at a time, at most
DIMENSIONS = 16  # principal components of the log-odds that are kept: beyond these there is noise


class ClassifierOracle(Oracle):
    """Cross-fitted log-odds, separation and encoding by clones of one classifier, for feature vectors.

    Parameters
    ----------
    classifier
        Any scikit-learn classifier with `predict_proba` or `decision_function`. For log-odds it must see how x_h and
        x_{h+1} go together: give a linear one a pipeline with PolynomialFeatures. Where a state has too few
        observations for it, a linear discriminant takes its place.
    folds
        Of the cross-fitting: each value comes from a clone that never saw the trajectory. More folds train on more
        of the data, and take longer.
    calibrate
        Whether log-odds are scaled and shifted, step by step, to be right on trajectories that the clones did not see.
        Switch it off for classifiers whose probabilities can be trusted as they are. Scores that are no probabilities
        always pass through scikit-learn's CalibratedClassifierCV first.
    seed
        Of the folds, and of a classifier whose `random_state` is None.
    repeats
        How often trajectories are divided into folds for the log-odds. What the clones of different repeats say is
        averaged, which steadies it; takes as many times longer.
    """

    shares_over_time = True

    def __init__(
        self, classifier: BaseEstimator, folds: int = 5, calibrate: bool = True, seed: int = 0, repeats: int = 4
    ) -> None:
        self.classifier = classifier
        self.folds = folds
        self.calibrate = calibrate
        self.seed = seed
        self.repeats = repeats

    def prepare(self, tau: TrajectoryDataset) -> PreparedClassifier:
        check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
        check_whole("repeats", self.repeats, 1, MAX_REPEATS)
        check_whole("seed", self.seed, 0, MAX_SEED)
        check_flag("calibrate", self.calibrate)
        check_whole("folds", self.folds, 2, max(tau.n, 2), "a fold has one trajectory at least")
        # By what it has, or what it says: some, such as a stack, have neither method before they are fitted.
        predicts = any(hasattr(self.classifier, name) for name in ("predict_proba", "decision_function"))
        predicts = predicts or (hasattr(self.classifier, "__sklearn_tags__") and is_classifier(self.classifier))
        if isinstance(self.classifier, type) or not (hasattr(self.classifier, "set_params") and predicts):
            raise InvalidParameterError(
                "classifier must be a scikit-learn classifier with predict_proba or decision_function, such as "
                f"HistGradientBoostingClassifier(); {quoted(self.classifier)} was given."
            )
        return PreparedClassifier(self, tau)

    def refits(self) -> int:
        return 3


class PreparedClassifier(PreparedLearned):
    """The training problems on one dataset; each is fitted when asked for.

    One classifier tells the agents of pairs apart at all steps, with h/H as one more feature. Trajectories are divided
    into folds several times, `fold_of` (repeats, n), and what the clones of different repeats say is averaged: what one
    makes of the noise, another does not.
    """

    def __init__(self, oracle: ClassifierOracle, tau: TrajectoryDataset) -> None:
        self.tau = tau
        self.seed = oracle.seed
        self.folds = oracle.folds
        self.calibrate = oracle.calibrate
        self.clones = Clones(oracle.classifier, oracle.seed)
        rng = np.random.default_rng(oracle.seed)
        self.fold_of = [stratified_folds(tau.agent, oracle.folds, rng) for _ in range(oracle.repeats)]

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Trained once, whatever the grid; calibrated step by step."""
        check_independent(coupling, "ClassifierOracle", "only the encoders of a finite class can be chained")
        tau, (scale, shift) = self.tau, self._calibration
        log_p = np.asarray(log_softmax(self._log_p * scale[:, None] + shift, axis=2))
        bins = to_bins(log_p[..., :1] - log_p[..., 1:], grid)
        bins[tau.lengths[:, None] <= np.arange(1, tau.H)] = -1
        for h in range(1, tau.H if self.calibrate else 1):
            there = tau.present(h + 1)
            said, fold = self._log_p[there, h - 1], self.fold_of[0][there]
            log_p[there, h - 1] = calibrated_by_others(said, tau.agent[there], fold)
        loss, chance, p_value = judged(log_p, tau.agent, tau.lengths)
        # For trajectories to come, of each repeat the clone of the last fold answers, which saw all but that.
        f = ClassifierLogOdds(tuple(clones[-1] for clones in self._of_pairs), scale, shift)
        return LogOdds(bins, loss, chance=chance, p_value=p_value, f=f)

    @cached_property
    def _of_pairs(self) -> list[list[Clone]]:
        """For each repeat and each fold, a clone that learned the agents of pairs from the other folds."""
        tau, found = self.tau, []
        for fold_of in self.fold_of:
            clones = []
            for fold in range(self.folds):
                rows = [np.flatnonzero(tau.present(h + 1) & (fold_of != fold)) for h in range(1, tau.H)]
                x = [_pair_features(tau.at(h)[i], tau.at(h + 1)[i], h / tau.H) for h, i in enumerate(rows, start=1)]
                clones.append(self.clones.fit(np.concatenate(x), tau.agent[np.concatenate(rows)]))
            found.append(clones)
        return found

    @cached_property
    def _log_p(self) -> Floats:
        """Log-probabilities (n, H-1, K) of the agents of all pairs, averaged over repeats; 0 where there is none."""
        found = np.zeros((self.tau.n, self.tau.H - 1, self.tau.K))
        for h in range(1, self.tau.H):
            rows = np.flatnonzero(self.tau.present(h + 1))
            x, x_next = (_as_vectors(self.tau.at(step)[rows]) for step in (h, h + 1))
            found[rows, h - 1] = self._unseen(rows, x, x_next[:, None], np.array([h / self.tau.H]))[:, 0]
        return found

    @cached_property
    def _calibration(self) -> tuple[Floats, Floats]:
        """A factor (H-1,) and offsets (H-1, K) for what the clones say of the pairs at each step."""
        scale, shift = np.ones(self.tau.H - 1), np.zeros((self.tau.H - 1, self.tau.K))
        for h in range(1, self.tau.H if self.calibrate else 1):
            there = self.tau.present(h + 1)
            scale[h - 1], shift[h - 1] = calibration(self._log_p[there, h - 1], self.tau.agent[there])
        return scale, shift

    def _unseen(self, rows: Ints, x: Floats, others: Floats, times: Floats, second: bool = False) -> Floats:
        """Log-probabilities (m, R, K) of the agents for x (m, d) beside each of others (m, R, d), at times (R,).

        They come from clones that did not see the trajectories `rows` (m,) that x is from, averaged over repeats.
        `second`: x is the second of each pair.
        """
        R = others.shape[1]
        total = np.zeros((len(rows), R, self.tau.K))
        some = max(AT_ONCE // (2 * R * x.shape[1]), 1)
        for fold_of, clones in zip(self.fold_of, self._of_pairs):
            for fold, one in enumerate(clones):
                own = np.flatnonzero(fold_of[rows] == fold)
                for part in np.split(own, range(some, len(own), some)):
                    pair = [np.repeat(x[part], R, axis=0), others[part].reshape(-1, x.shape[1])]
                    seen = np.hstack([*(pair[::-1] if second else pair), np.tile(times, len(part))[:, None]])
                    total[part] += one.log_p(seen, self.tau.K).reshape(len(part), R, self.tau.K)
        return total / len(self.fold_of)

    def embed(self) -> Floats:
        """The main directions of the log-odds of an observation beside references, as first and as second of a pair.

        They depend on the observation through its state alone. Many of the pairs never occur. What a classifier makes
        of them is no log-odds of anything, but as long as it looks at states and not at noise, it says the same for all
        observations of one state. A reference keeps the step that it is from, so that all steps have the same ones.
        """
        return self._embedding

    @cached_property
    def _embedding(self) -> Floats:
        tau, rng = self.tau, np.random.default_rng(self.seed)
        there = np.arange(tau.H) < tau.lengths[:, None]
        row, step = np.nonzero(there[:, 1:])  # of all pairs
        R = int(np.clip(PAIRS_IN_ALL // (2 * len(self.fold_of) * int(there.sum())), MIN_REFERENCES, REFERENCES))
        found = np.zeros((tau.n, tau.H, 2, R, tau.K))
        for second in (0, 1):  # which of the pair the observation is
            drawn = rng.choice(len(row), size=R)
            at = zip(row[drawn], step[drawn] + 2 - second)
            references = np.concatenate([_as_vectors(tau.at(int(h))[i : i + 1]) for i, h in at])
            for h in range(1, tau.H + 1):
                rows = np.flatnonzero(there[:, h - 1])
                x, others = _as_vectors(tau.at(h)[rows]), np.broadcast_to(references, (len(rows), *references.shape))
                found[rows, h - 1, second] = self._unseen(rows, x, others, (step[drawn] + 1) / tau.H, bool(second))
            found[:, :, second] *= self._calibration[0][step[drawn], None]
        found = (found - found.mean(axis=-1, keepdims=True)).reshape(tau.n, tau.H, -1)
        return _main_directions(found, there)

    def fit_encoder(self, labels: Labels, n_states: int) -> EncoderFit:
        """One classifier on the observations of all steps together."""
        steps = range(1, self.tau.H + 1)
        chosen = [(labels[:, h - 1] >= 0) & self.tau.present(h) for h in steps]
        x = np.concatenate([_as_vectors(self.tau.at(h)[rows]) for h, rows in zip(steps, chosen)])
        target = np.concatenate([labels[rows, h - 1] for h, rows in zip(steps, chosen)])
        if len(np.unique(target)) < 2:
            return EncoderFit(ConstantEncoder(int(target[0]) if len(target) else 0), 0.0)
        held_out, log_p = self.clones.held_out(x, target, n_states, self.folds)
        read, tested = log_p.argmax(axis=1), target[held_out]
        rates = [(read != tested)[tested == s].mean() for s in np.unique(tested)]
        model = self.clones.fitted(x, target, self.clones.bare, "predict")
        return EncoderFit(ClassifierEncoder(model), float(np.sum(rates)))


@dataclass(frozen=True)
class ClassifierEncoder(Savable):
    """phi'_h: the classifier's own prediction."""

    model: BaseEstimator

    def __call__(self, x: Observations) -> Ints:
        if not len(x):
            return np.empty(0, dtype=np.int64)
        with few_threads(len(x)):
            return np.asarray(self.model.predict(_as_vectors(x)), dtype=np.int64)


@dataclass(frozen=True)
class ClassifierLogOdds(Savable):
    """f_1..f_{H-1} for trajectories to come, by clones that are averaged.

    scale, shift  float (H-1,) and (H-1, K): what calibrates them
    """

    clones: tuple[Clone, ...]
    scale: Floats
    shift: Floats

    def __call__(self, x: Observations) -> Floats:
        H, K = x.shape[1], self.shift.shape[1]
        found = np.empty((len(x), H - 1, K - 1))
        for h in range(1, H):
            z = _pair_features(x[:, h - 1], x[:, h], h / (len(self.scale) + 1))
            log_p = np.mean([clone.log_p(z, K) for clone in self.clones], axis=0)
            log_p = log_p * self.scale[h - 1] + self.shift[h - 1]
            found[:, h - 1] = log_p[:, :1] - log_p[:, 1:]
        return found


def _as_vectors(x: Observations) -> Floats:
    return x.reshape(len(x), int(np.prod(x.shape[1:]))).astype(np.float64)


def _pair_features(x_h: Observations, x_next: Observations, time: float) -> Floats:
    """What a classifier sees of pairs: both vectors, and how far on they are."""
    return np.hstack([_as_vectors(x_h), _as_vectors(x_next), np.full((len(x_h), 1), time)])


def _main_directions(columns: Floats, there: NDArray[np.bool_]) -> Floats:
    """The principal components (n, H, d) of columns (n, H, c), in units of the largest one's deviation."""
    x = columns[there]
    mean = x.mean(axis=0) if len(x) else 0.0
    _, axes = np.linalg.eigh((x - mean).T @ (x - mean))
    found = np.zeros((*there.shape, DIMENSIONS))
    z = (x - mean) @ axes[:, ::-1][:, :DIMENSIONS]
    found[there, : z.shape[1]] = z / max(float(z.std(axis=0).max(initial=0.0)), 1e-12)
    return found
