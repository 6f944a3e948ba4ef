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
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, is_classifier

from craftrl.arguments import check_flag, check_whole, shown
from craftrl.arrays import Floats, Ints, Observations
from craftrl.core.clusters import CHANCE_HALF
from craftrl.core.encoders import ConstantEncoder
from craftrl.core.evidence import chance_loss, held_out_p_value, paired_p_value
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, n_labels
from craftrl.core.learned import PreparedLearned, Profiles
from craftrl.core.saved import Savable
from craftrl.core.starts import StartTest
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Coupling, EncoderFit, LogOdds, Oracle, Separation, check_data
from craftrl.oracles.cross_fitting import (
    Clone,
    Clones,
    calibrated_by_others,
    calibration,
    few_threads,
    linear_discriminant,
)
from craftrl.oracles.learned import SCATTERED, check_independent, stratified_folds, to_bins

__all__ = ["ClassifierEncoder", "ClassifierLogOdds", "ClassifierOracle"]

READING_FOLDS = 2  # of those whose clones read the states of all rows: more read them no better, and are dearer
MOST_REPEATS = 1000
MOST_SEED = 2**32 - 1  # what scikit-learn takes
MOST_PROFILES = 1_000_000  # observations times states whose profiles are asked for, at most
OTHERS, OTHERS_IN_ALL = 8, 50_000  # with how many x_h of a state x_{h+1} is seen at most, and all of them together
AFTER, LEAST_AFTER, AFTER_IN_ALL = 16, 8, 50_000  # x_{h+2} beside which it is seen: at most, at least, and in all
AT_ONCE = 2**21  # numbers that a classifier is shown at a time, at most
NEIGHBOURS = 16  # whose profiles are averaged, once: done again, it makes clumps of an even spread
DIMENSIONS = 10  # principal components in which neighbours are looked for: beyond these there is noise
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
        check_whole("repeats", self.repeats, 1, MOST_REPEATS)
        check_whole("seed", self.seed, 0, MOST_SEED)
        check_flag("calibrate", self.calibrate)
        check_whole("folds", self.folds, 2, max(tau.n, 2), "a fold has one trajectory at least")
        # By what it has, or what it says: some, such as a stack, have neither method before they are fitted.
        told = any(hasattr(self.classifier, name) for name in ("predict_proba", "decision_function"))
        told = told or (hasattr(self.classifier, "__sklearn_tags__") and is_classifier(self.classifier))
        if isinstance(self.classifier, type) or not (hasattr(self.classifier, "set_params") and told):
            raise InvalidParameterError(
                "classifier must be a scikit-learn classifier with predict_proba or decision_function, such as "
                f"HistGradientBoostingClassifier(); {shown(self.classifier)} was given."
            )
        return PreparedClassifier(self, tau)

    def suits(self) -> tuple[Choice, ...]:
        return SCATTERED

    def refits(self) -> int:
        return 3


class PreparedClassifier(PreparedLearned):
    """The three training problems on one dataset; each is fitted when asked for.

    For log-odds, each step can have a classifier of its own, or one can serve all steps, with h/H as one more feature:
    then it learns from H-1 times as many pairs, which helps wherever observations mean much the same at every step.
    Which of the two tells the agents of unseen trajectories apart better is measured, not assumed.

    Trajectories are dealt into folds several times, `fold_of` (repeats, n), and what the clones of different repeats
    say is averaged: what one makes of the noise, another does not.
    """

    def __init__(self, oracle: ClassifierOracle, tau: TrajectoryDataset) -> None:
        self.tau = tau
        self.seed = oracle.seed
        self.folds = oracle.folds
        self.calibrate = oracle.calibrate
        self.clones = Clones(oracle.classifier, oracle.seed)
        rng = np.random.default_rng(oracle.seed)
        self.fold_of = [stratified_folds(tau.agent, oracle.folds, rng) for _ in range(oracle.repeats)]
        self._of_pairs: dict[tuple[bool, int, int], list[Clone]] = {}
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
            agent, said = self.tau.agent[there], self.log_p[there, h - 1]
            log_p = np.asarray(log_softmax(said * scale[h - 1] + shift[h - 1], axis=1))
            bins[there, h - 1] = to_bins(log_p[:, :1] - log_p[:, 1:], grid)
            if self.calibrate:
                log_p = calibrated_by_others(said, agent, self.fold_of[0][there])
            loss[h - 1] = -log_p[np.arange(len(agent)), agent].mean()
            chance[h - 1], p_value[h - 1] = chance_loss(agent), held_out_p_value(log_p, agent)
        # For trajectories to come, of each repeat the clone of the last fold answers, which saw all but that.
        repeats, steps = range(len(self.fold_of)), [1] if self.together else range(1, H)
        last = tuple(tuple(self._clones_of(h, repeat, self.together)[-1] for repeat in repeats) for h in steps)
        f = ClassifierLogOdds(last, self.together, scale, shift)
        return LogOdds(bins, loss, chance=chance, p_value=p_value, f=f)

    @cached_property
    def together(self) -> bool:
        """Whether one classifier for all steps does better on unseen trajectories, by the first repeat.

        Calibrated values are compared: clones that are too sure of themselves may know more all the same.
        """
        loss = {True: 0.0, False: 0.0}
        for together in loss:
            for h in range(1, self.tau.H if self.tau.H > 2 else 1):
                rows = np.flatnonzero(self.tau.present(h + 1))
                agent, log_p = self.tau.agent[rows], self._log_p_of(h, rows, rows, rows, 0, together)
                log_p = calibrated_by_others(log_p, agent, self.fold_of[0][rows])
                loss[together] -= float(log_p[np.arange(len(rows)), agent].sum())
        return loss[True] < loss[False]

    @cached_property
    def log_p(self) -> Floats:
        """Log-probabilities (n, H-1, K) of the agents of all pairs, averaged over repeats; NaN where there is none."""
        found = np.full((self.tau.n, self.tau.H - 1, self.tau.K), np.nan)
        for h in range(1, self.tau.H):
            rows = np.flatnonzero(self.tau.present(h + 1))
            of_repeats = [self._log_p_of(h, rows, rows, rows, repeat) for repeat in range(len(self.fold_of))]
            found[rows, h - 1] = np.mean(of_repeats, axis=0)
        return found

    @cached_property
    def _calibration(self) -> tuple[Floats, Floats]:
        """A factor (H-1,) and offsets (H-1, K) for what the clones say of the pairs at each step."""
        scale, shift = np.ones(self.tau.H - 1), np.zeros((self.tau.H - 1, self.tau.K))
        for h in range(1, self.tau.H if self.calibrate else 1):
            there = self.tau.present(h + 1)
            scale[h - 1], shift[h - 1] = calibration(self.log_p[there, h - 1], self.tau.agent[there])
        return scale, shift

    def _calibrated(self, log_p: Floats, agent: Ints) -> Floats:
        scale, shift = calibration(log_p, agent) if self.calibrate else (1.0, 0.0)
        return np.asarray(log_softmax(log_p * scale + shift, axis=1))

    def _log_p_of(
        self, h: int, first: Ints, second: Ints, unseen: Ints, repeat: int, together: bool | None = None
    ) -> Floats:
        """Log-probabilities (m, K) of the agents for x_h of trajectories `first` with x_{h+1} of `second`.

        They come from clones that did not see the trajectories `unseen`, which are the ones or the others; where both
        are of the same fold, the clones saw neither.
        """
        together = self.together if together is None else together
        log_p, fold = np.empty((len(first), self.tau.K)), self.fold_of[repeat][unseen]
        some = max(AT_ONCE // (2 * int(np.prod(self.tau.obs_shape))), 1)
        for k, one in enumerate(self._clones_of(h, repeat, together)):
            own = np.flatnonzero(fold == k)
            for rows in np.split(own, range(some, len(own), some)):
                log_p[rows] = one.log_p(self._features(h, first[rows], second[rows], together), self.tau.K)
        return log_p

    def _clones_of(self, h: int, repeat: int, together: bool) -> list[Clone]:
        """For each fold a clone that learned the agents of pairs from all others."""
        key = (together, 0 if together else h, repeat)
        if key not in self._of_pairs:
            clones, steps = [], range(1, self.tau.H) if together else [h]
            for fold in range(self.folds):
                learned = self.fold_of[repeat] != fold
                rows = [(step, np.flatnonzero(self.tau.present(step + 1) & learned)) for step in steps]
                x = np.concatenate([self._features(step, own, own, together) for step, own in rows])
                clones.append(self.clones.fit(x, np.concatenate([self.tau.agent[own] for _, own in rows])))
            self._of_pairs[key] = clones
        return self._of_pairs[key]

    def _features(self, h: int, first: Ints, second: Ints, together: bool) -> Floats:
        x_h, x_next = self.tau.at(h)[first], self.tau.at(h + 1)[second]
        return _pair_features(x_h, x_next, h / self.tau.H if together else None)

    def log_odds_given(self, h: int, label: Labels, f: LogOdds, grid: Grid) -> NDArray[np.int16]:
        """The state's own part of the profile of x_{h+1}, calibrated state by state.

        Trees level out what they saw little of, and not by as much in every state: so each state has a factor and
        offsets of its own.
        """
        rows, profile = self._profiles(h, label, grid)
        bins = f.bins[:, h - 1].copy()
        for s in np.unique(label[rows]):
            mine = label[rows] == s
            log_p = self._calibrated(profile[mine, s], self.tau.agent[rows[mine]])
            bins[rows[mine]] = to_bins(log_p[:, :1] - log_p[:, 1:], grid)
        return bins

    def profiles(self, h: int, label: Labels, f: LogOdds, grid: Grid) -> Profiles | None:
        rows, profile = self._profiles(h, label, grid)
        if not len(rows):
            return None
        found = np.full((self.tau.n, profile.shape[1], self.tau.K - 1), np.nan)
        found[rows] = profile[..., :1] - profile[..., 1:]
        return Profiles(found, n_labels(label))

    def _profiles(self, h: int, label: Labels, grid: Grid) -> tuple[Ints, Floats]:
        """Rows, and the profiles (m, S + A, K) of their x_{h+1}: centred log-probabilities of the agents, smoothed.

        f_h depends on observations through their states alone. So x_{h+1} is seen beside other observations x_h of each
        of S states, and beside A observations of h+2, which tell its states apart where h has few. Many of the pairs
        never occur. What a classifier makes of them is no log-odds of anything, but as long as it looks at states and
        not at noise it says the same for one state. A state that no trajectory is read to be in says nothing: zeros.

        Profiles are clipped to the grid: a clone that is too sure of itself must not drown the rest. What does not
        depend on the grid is kept: both questions need it, and so do other bounds.
        """
        tau, n_states = self.tau, n_labels(label)
        if self._last_profiles.get(h, (b"",))[0] != label.tobytes():
            rows: Ints = np.flatnonzero((label >= 0) & tau.present(h + 1))
            m = len(rows)
            if not 0 < m * n_states <= MOST_PROFILES:
                return rows[:0], np.empty((0, 0, tau.K))
            rng, scale = np.random.default_rng([self.seed, h]), self._calibration[0]
            turns = int(np.clip(OTHERS_IN_ALL // (m * n_states), 1, OTHERS))
            before = np.zeros((m, n_states, tau.K))
            for repeat, fold_of in enumerate(self.fold_of):
                for s in np.unique(label[label >= 0]):
                    beside, of_state = np.empty((turns, m), dtype=np.int64), np.flatnonzero(label == s)
                    for turn, fold in np.ndindex(turns, self.folds):
                        mine = fold_of[rows] == fold
                        near = of_state[fold_of[of_state] == fold]  # so that no clone saw either trajectory
                        if mine.any():
                            beside[turn, mine] = rng.choice(near if len(near) else of_state, size=int(mine.sum()))
                    of_all = np.tile(rows, turns)
                    log_p = self._log_p_of(h, beside.ravel(), of_all, of_all, repeat)
                    before[:, s] += log_p.reshape(turns, m, -1).sum(axis=0)
            there = np.flatnonzero(tau.present(h + 2)) if h + 1 < tau.H else np.empty(0, dtype=np.int64)
            wanted = int(np.clip(AFTER_IN_ALL // m, LEAST_AFTER, AFTER))
            drawn = rng.choice(there, size=min(wanted, len(there)), replace=False)
            after = np.zeros((len(drawn), m, tau.K))
            for repeat in range(len(self.fold_of) if len(drawn) else 0):
                of_all = np.tile(rows, len(drawn))
                log_p = self._log_p_of(h + 1, of_all, np.repeat(drawn, m), of_all, repeat)
                after += log_p.reshape(after.shape)
            before, after = before / (turns * len(self.fold_of)), after.swapaxes(0, 1) / len(self.fold_of)
            log_p = np.concatenate([before * scale[h - 1], after * scale[min(h, tau.H - 2)]], axis=1)
            self._last_profiles[h] = label.tobytes(), rows, log_p - log_p.mean(axis=-1, keepdims=True)
        _, rows, log_p = self._last_profiles[h]
        most = grid.xi * grid.n_xi / 4
        return rows, _smoothed(np.clip(log_p, -most, most), n_states)

    def separation(self, h: int, cluster: Labels, n_clusters: int) -> Separation:
        """A classifier for each two sets, and none where a linear discriminant tells them apart, as it mostly does.

        One classifier over all clusters of a step would answer every question at once. But of boosted trees for dozens
        of classes, several of which are the same state, the scores may grow without bound.

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

    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        """With the states as clones read them that did not see the trajectory: trees learn wrong labels by heart."""
        chosen = (label >= 0) & self.tau.present(h)
        fit, read = self._encoder(self._vectors(h)[chosen], label[chosen], n_states, all_rows=True)
        unseen = np.full(self.tau.n, -1)
        unseen[chosen] = read
        return replace(fit, unseen=unseen)

    def share(self, labels: Labels, n_states: int, name: str) -> EncoderFit:
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
            return self._calibrated(self.clones.held_out(x, agent, self.tau.K, folds)[1], agent)

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
        return _as_vectors(self.tau.at(h))


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

    clones        for each step those that answer; one entry for all steps if `together`
    together      whether h/H is one more feature
    scale, shift  float (H-1,) and (H-1, K): what calibrates them
    """

    clones: tuple[tuple[Clone, ...], ...]
    together: bool
    scale: Floats
    shift: Floats

    def __call__(self, x: Observations) -> Floats:
        H, K = x.shape[1], self.shift.shape[1]
        found = np.empty((len(x), H - 1, K - 1))
        for h in range(1, H):
            z = _pair_features(x[:, h - 1], x[:, h], h / (len(self.scale) + 1) if self.together else None)
            said = [clone.log_p(z, K) for clone in self.clones[0 if self.together else h - 1]]
            log_p = np.mean(said, axis=0) * self.scale[h - 1] + self.shift[h - 1]
            found[:, h - 1] = log_p[:, :1] - log_p[:, 1:]
        return found


def _as_vectors(x: Observations) -> Floats:
    return x.reshape(len(x), -1).astype(np.float64)


def _pair_features(x_h: Observations, x_next: Observations, time: float | None) -> Floats:
    """What a classifier sees of pairs: both vectors, and how far on they are where one classifier serves all steps."""
    vectors = [_as_vectors(x_h), _as_vectors(x_next)]
    return np.hstack(vectors if time is None else [*vectors, np.full((len(x_h), 1), time)])


def _smoothed(profile: Floats, n_states: int) -> Floats:
    """Each profile (m, C, D) averaged with those nearest to it, which are of the same state.

    Neighbours are fewer where a state has few observations; there are about as many states as at h, `n_states`.
    """
    m = len(profile)
    near = min(NEIGHBOURS, m // max(8 * n_states, 1))
    if near < 2:
        return profile
    flat = main = profile.reshape(m, -1)
    if flat.shape[1] > DIMENSIONS:
        centred = flat - flat.mean(axis=0)
        main = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -DIMENSIONS:]
    found = cKDTree(main).query(main, k=near)[1].ravel()
    mean = csr_matrix((np.full(m * near, 1 / near), found, np.arange(m + 1) * near), shape=(m, m))
    return np.asarray(mean @ flat).reshape(profile.shape)
