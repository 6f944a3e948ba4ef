"""Any scikit-learn classifier as an oracle, for feature vectors.

Default classifiers stay near chance on raw bits such as the paper's: they are for features in which the
states are not hidden behind a XOR.

Paper: Lines 10, 25 and 46, with a classifier in place of finite classes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator

from craftrl.arguments import check_flag, check_whole, shown
from craftrl.core.encoders import ConstantEncoder
from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.core.grid import Grid
from craftrl.core.learned import PreparedLearned, Profiles
from craftrl.core.merging import CHANCE_HALF
from craftrl.core.saved import Savable
from craftrl.core.starts import StartTest, paired_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Coupling, EncoderFit, LogOdds, Oracle, Separation, check_data
from craftrl.oracles.cross_fitting import (
    Clones,
    calibrated_by_others,
    calibration,
    few_threads,
    linear_discriminant,
)
from craftrl.oracles.learned import SCATTERED, check_independent, stratified_folds, to_bins
from craftrl.oracles.pair_classifiers import ClassifierLogOdds, PairClassifiers, smoothed

__all__ = ["ClassifierEncoder", "ClassifierOracle"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
READING_FOLDS = 2  # of those whose clones read the states of all rows: more read them no better, and are dearer
MOST_REPEATS = 1000
MOST_SEED = 2**32 - 1  # what scikit-learn takes
MOST_PROFILES = 1_000_000  # observations times states whose profiles are asked for, at most
ENOUGH = 500  # observations of either set that are looked at to tell two sets apart


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
        How often trajectories are dealt into folds for the log-odds. What the clones of different repeats say is
        averaged, which steadies it; takes as many times longer.
    """

    shares_over_time = True

    def __init__(
        self, classifier: BaseEstimator, folds: int = 3, calibrate: bool = True, seed: int = 0, repeats: int = 4
    ) -> None:
        self.classifier = classifier
        self.folds = folds
        self.calibrate = calibrate
        self.seed = seed
        self.repeats = repeats

    def prepare(self, tau: TrajectoryDataset) -> PreparedClassifier:
        check_data(tau)
        check_whole("folds", self.folds, 2)
        check_whole("repeats", self.repeats, 1, MOST_REPEATS)
        check_whole("seed", self.seed, 0, MOST_SEED)
        check_flag("calibrate", self.calibrate)
        can = [hasattr(self.classifier, name) for name in ("fit", "get_params", "set_params")]
        if isinstance(self.classifier, type) or not all(can):
            raise InvalidParameterError(
                f"classifier must be a scikit-learn classifier, such as HistGradientBoostingClassifier(); "
                f"{shown(self.classifier)} was given."
            )
        if not any(hasattr(self.classifier, name) for name in ("predict_proba", "decision_function")):
            raise InvalidParameterError(
                f"A classifier needs predict_proba or decision_function; {type(self.classifier).__name__} has neither; "
                "wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        if self.folds > tau.n:
            raise InvalidParameterError(
                f"folds must be at most the number of trajectories, {tau.n}; {self.folds} was given."
            )
        return PreparedClassifier(self, tau)

    def suits(self) -> tuple[Choice, ...]:
        return SCATTERED

    def refits(self) -> int:
        return 3


class PreparedClassifier(PreparedLearned):
    """The three training problems on one dataset; each is fitted when asked for."""

    def __init__(self, oracle: ClassifierOracle, tau: TrajectoryDataset) -> None:
        self.tau = tau
        self.seed = oracle.seed
        self.folds = oracle.folds
        self.calibrate = oracle.calibrate
        self.clones = Clones(oracle.classifier, oracle.seed)
        self.pairs = PairClassifiers(self.clones, tau, oracle.folds, oracle.repeats)
        self._last_profiles: dict[int, tuple[bytes, Ints, Floats]] = {}  # of each h: for which states, and `_profiles`

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Steps are independent of one another, or all have one classifier; trained once, whatever the grid."""
        check_independent(coupling, "ClassifierOracle", "only the encoders of a finite class can be chained")
        n, H, K = self.tau.n, self.tau.H, self.tau.K
        bins = np.full((n, H - 1, K - 1), -1, dtype=np.int16)
        loss, chance, p_value = np.zeros((3, H - 1))
        scale, shift = self._calibration
        for h in range(1, H):
            there = self.tau.present(h + 1)
            agent, said = self.tau.agent[there], self.pairs.log_p[there, h - 1]
            log_p = np.asarray(log_softmax(said * scale[h - 1] + shift[h - 1], axis=1))
            bins[there, h - 1] = to_bins(log_p[:, :1] - log_p[:, 1:], grid)
            if self.calibrate:
                log_p = calibrated_by_others(said, agent, self.pairs.fold_of[0][there])
            loss[h - 1] = -log_p[np.arange(len(agent)), agent].mean()
            chance[h - 1], p_value[h - 1] = chance_loss(agent), held_out_p_value(log_p, agent)
        f = ClassifierLogOdds(self.pairs.last, self.pairs.together, scale, shift)
        return LogOdds(bins, loss, chance=chance, p_value=p_value, f=f)

    @cached_property
    def _calibration(self) -> tuple[Floats, Floats]:
        """A factor (H-1,) and offsets (H-1, K) for what the clones say of the pairs at each step."""
        there, log_p = self.tau.lengths[:, None] > np.arange(1, self.tau.H), self.pairs.log_p
        found = [self._calibrated(log_p[rows, h], self.tau.agent[rows])[1:] for h, rows in enumerate(there.T)]
        return np.array([scale for scale, _ in found]), np.array([shift for _, shift in found])

    def _calibrated(self, log_p: Floats, agent: Ints) -> tuple[Floats, float, Floats]:
        """Normalised log-probabilities, and the factor and offsets that they were calibrated with."""
        scale, shift = calibration(log_p, agent) if self.calibrate else (1.0, np.zeros(log_p.shape[1]))
        return np.asarray(log_softmax(log_p * scale + shift, axis=1)), scale, shift

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
        """Rows, and the profiles (m, S + A, K) of their x_{h+1}: centred log-probabilities of the agents, smoothed.

        No further from even than the grid goes: a clone that is too sure of itself must not drown the rest. What does
        not depend on the grid is kept: both questions need it, and so do other bounds.
        """
        n_states = int(label.max(initial=-1)) + 1
        if self._last_profiles.get(h, (b"",))[0] != label.tobytes():
            rows: Ints = np.flatnonzero((label >= 0) & self.tau.present(h + 1))
            if not 0 < len(rows) * n_states <= MOST_PROFILES:
                return rows[:0], np.empty((0, 0, self.tau.K))
            rng, scale = np.random.default_rng([self.seed, h]), self._calibration[0]
            before = self.pairs.beside_predecessors(h, label, rows, rng) * scale[h - 1]
            after = self.pairs.beside_successors(h + 1, rows, rng) * scale[min(h, self.tau.H - 2)]
            log_p = np.concatenate([before, after], axis=1)
            self._last_profiles[h] = label.tobytes(), rows, log_p - log_p.mean(axis=-1, keepdims=True)
        _, rows, log_p = self._last_profiles[h]
        most = grid.xi * grid.n_xi / 4
        return rows, smoothed(np.clip(log_p, -most, most), n_states)

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> Separation:
        """A classifier for each two sets, and none where a linear discriminant tells them apart, as it mostly does.

        One classifier over all clusters of a step would answer every question of the step at once. Boosted trees cannot
        be relied on for that: among dozens of classes, several of which are the same state and so cannot be told apart,
        the scores of the others may grow without bound, until it is sure of itself and wrong nearly everywhere.

        Paper: Line 25, Equation 17
        """
        rows: Ints = np.flatnonzero((cluster >= 0) & self.tau.present(h))
        rows = np.random.default_rng(self.seed).permutation(rows)  # so that the first of any cluster are a fair sample
        x, cluster = self._vectors(h)[rows], cluster[rows]

        def loss(new: int, state: Sequence[int]) -> float:
            sets = [np.flatnonzero(np.isin(cluster, names))[:ENOUGH] for names in (state, [new])]
            if not all(map(len, sets)):
                return 0.0
            both, label = x[np.concatenate(sets)], np.repeat([0, 1], [len(one) for one in sets])
            found = 1.0
            for make in (linear_discriminant, self.clones.with_probabilities):
                held_out, log_p = self.clones.held_out(both, label, 2, self.folds, all_rows=False, make=make)
                is_new = label[held_out] == 1
                odds = log_p - np.log([(~is_new).sum(), is_new.sum()])  # as if both sets were of one size
                takes = odds[:, 1] > odds[:, 0]
                found = float((~takes[is_new]).mean() + takes[~is_new].mean())
                if found <= CHANCE_HALF:
                    break
            return found

        return loss

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
        return self._encoder(x, target, n_states, all_rows=False)[0]

    def _encoder(self, x: Floats, target: Ints, n_states: int, all_rows: bool) -> tuple[EncoderFit, Ints]:
        """phi' of these observations, and what clones that did not see them make of those that were held out."""
        if len(np.unique(target)) < 2:
            return EncoderFit(ConstantEncoder(int(target[0]) if len(target) else 0), 0.0), target
        folds = READING_FOLDS if all_rows else self.folds
        held_out, log_p = self.clones.held_out(x, target, n_states, folds, all_rows)
        read, tested = log_p.argmax(axis=1), target[held_out]
        rates = [(read != tested)[tested == s].mean() for s in np.unique(tested)]
        model = self.clones.fitted(x, target, self.clones.bare, "predict")
        return EncoderFit(ClassifierEncoder(model), float(np.sum(rates))), read

    def test_start(self) -> StartTest:
        """Classifiers of x_1 alone, of x_2 alone and of both, trained alike, on trajectories that they did not see.

        Columns of noise may steady a classifier. So both must also beat x_2 beside the x_1 of another trajectory,
        which has as many columns: the harder of the two comparisons counts.
        """
        there, folds = self.tau.present(2), self.folds
        agent, x, x_next = self.tau.agent[there], self._vectors(1)[there], self._vectors(2)[there]
        other = np.random.default_rng(self.seed).permutation(x)

        def of_agents(x: Floats) -> Floats:
            return self._calibrated(self.clones.held_out(x, agent, self.tau.K, folds)[1], agent)[0]

        pairs = np.hstack([x, x_next]), x_next, np.hstack([other, x_next])
        both, *rest = (of_agents(pair)[np.arange(len(agent)), agent] for pair in pairs)
        gains = [both - without for without in rest]
        gain, told = min(gains, key=np.mean), float(both.mean()) + chance_loss(agent)
        # Of x_1 alone fold by fold: folds that train one another are not independent.
        first, fold_of = of_agents(x), stratified_folds(agent, folds, np.random.default_rng(self.seed))
        by_fold = [held_out_p_value(first[fold_of == k], agent[fold_of == k]) for k in range(folds)]
        p_first = min(1.0, folds * min(by_fold))
        return StartTest(p_first, max(map(paired_p_value, gains)), float(gain.mean()), told)

    def _vectors(self, h: int) -> Floats:
        return self.tau.at(h).reshape(self.tau.n, -1).astype(np.float64)


@dataclass(frozen=True)
class ClassifierEncoder(Savable):
    """phi'_h: the classifier's own prediction."""

    model: BaseEstimator

    def __call__(self, x: NDArray[np.generic]) -> Ints:
        if not len(x):
            return np.empty(0, dtype=np.int64)
        with few_threads(len(x)):
            return np.asarray(self.model.predict(x.reshape(len(x), -1).astype(np.float64)), dtype=np.int64)
