"""Any scikit-learn classifier is an oracle for feature vectors, also where a state has few members."""

import warnings

import numpy as np
import pytest
from feature_world import feature_data
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from craftrl import CRAFT, AssumptionWarning, ClassifierOracle, TrajectoryDataset, load
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import accuracy, accuracy_by_step, encoder_accuracy
from craftrl.oracles import classifier as module
from craftrl.oracles.cross_fitting import Clones, calibrated_by_others, few_threads
from craftrl.oracles.learned import calibration, judged, to_bins

GRID, BOUNDS = Grid.from_bounds(1.0, 0.02), {"alpha": 1.0, "eta": 0.05, "nu": 0.05}
TREE = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
TREES = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8)
PRODUCTS = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression())


@pytest.fixture(scope="module")
def data():
    return feature_data(400)


@pytest.fixture(scope="module")
def shuffled(data):
    return data.tau.select(np.arange(data.tau.n), np.random.default_rng(0).permutation(data.tau.agent))


def log_odds(classifier, tau, **settings):
    return ClassifierOracle(classifier, **settings).prepare(tau).log_odds(GRID, "independent")


# -- log-odds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", [TREE, RidgeClassifier()], ids=["probabilities", "scores"])
def test_log_odds_are_cross_fitted_and_better_than_chance(classifier, data):
    f = log_odds(classifier, data.tau)
    assert f.bins.shape == (data.tau.n, 3, 1)
    assert (f.loss < np.log(2)).all()


def test_nothing_is_learned_where_there_is_nothing_to_learn(shuffled):
    """In-sample a tree would tell shuffled agents apart; cross-fitted it cannot, and nor can its embedding."""
    oracle = ClassifierOracle(DecisionTreeClassifier(min_samples_leaf=2, random_state=0), repeats=1)
    prepared = oracle.prepare(shuffled)
    f = prepared.log_odds(GRID, "independent")
    assert (f.loss > f.chance - 0.001).all()
    assert (f.p_value > 0.01).all()
    z, known = prepared.embed(), np.arange(shuffled.n) % 2 == 0
    neighbours = KNeighborsClassifier(15).fit(z[known, 1], shuffled.agent[known])
    assert neighbours.score(z[~known, 1], shuffled.agent[~known]) < 0.57


def test_agents_that_differ_are_told_apart_by_all_trajectories_and_not_by_a_part_of_them():
    """120 of 150 against 36 of 150 move: the p-value is that of such a table, not that of thirty held out."""
    rng = np.random.default_rng(0)
    moved = np.concatenate([np.arange(150) < 120, np.arange(150) < 36]).astype(float)
    x = np.stack([np.zeros(300), moved], axis=1)[..., None] + rng.normal(0, 0.1, (300, 2, 2))
    tau = TrajectoryDataset.from_arrays([x[:150], x[150:]])
    assert log_odds(DecisionTreeClassifier(max_depth=2), tau).p_value[0] < 1e-12


def test_default_classifiers_stay_near_chance_on_the_papers_bits():
    world = BitsExBMDP(horizon=3, n_features=32, seed=0)
    tau = collect(world, world.paper_policies(), 500, seed=0).tau
    assert log_odds(LogisticRegression(), tau).loss[1] > np.log(2) - 0.05


def test_classifiers_are_trained_once_for_all_grids(data, monkeypatch):
    times, fit = [], Clones.fit
    monkeypatch.setattr(Clones, "fit", lambda self, *given: times.append(1) or fit(self, *given))
    prepared = ClassifierOracle(TREE, folds=2, repeats=1).prepare(data.tau)
    for grid in (GRID, Grid.from_bounds(0.5, 0.1)):
        prepared.log_odds(grid, "independent")
    prepared.embed()
    assert len(times) == 2  # one for each fold


def test_an_unseeded_classifier_gives_the_same_result_twice(data):
    unseeded = DecisionTreeClassifier(max_features=1, min_samples_leaf=10)
    first, second, other = (log_odds(unseeded, data.tau, seed=seed, repeats=1) for seed in (0, 0, 1))
    assert (first.bins == second.bins).all()
    assert (first.bins != other.bins).any()


def test_values_are_rounded_to_the_nearest_grid_point_and_clipped():
    grid = Grid.from_bounds(1.0, 0.2)
    assert to_bins(np.array([-99.0, 0.0, grid.values[3] + 0.1, 99.0]), grid).tolist() == [0, 6, 3, 12]


def test_calibration_finds_factor_and_offsets_and_gives_up_on_noise():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(20000, 3))
    target = (log_softmax(true, axis=1) + rng.gumbel(size=true.shape)).argmax(axis=1)
    scale, (shift,) = calibration(3 * true + [1, 0, 0], target)
    assert scale == pytest.approx(1 / 3, abs=0.02)
    assert shift[0] - shift[1] == pytest.approx(-1 / 3, abs=0.05)
    step = np.arange(20000) % 2
    scale, shift = calibration(3 * true + np.array([[1, 0, 0], [0, 0, 1]])[step], target, step, 2)
    assert shift[0, 0] - shift[0, 1] == pytest.approx(-1 / 3, abs=0.05)
    assert shift[1, 2] - shift[1, 1] == pytest.approx(-1 / 3, abs=0.05)
    wrong, (shares,) = calibration(-true, target)
    assert wrong == 0
    assert np.exp(shares).sum() == pytest.approx(1)


def test_what_log_odds_are_worth_is_asked_of_pairs_that_they_were_not_calibrated_by():
    tau = feature_data(30).tau
    prepared = ClassifierOracle(TREE, repeats=1).prepare(tau)
    said, fold = prepared._log_p[:, 0], prepared.fold_of[0]
    log_p = calibrated_by_others(said, tau.agent, fold)
    loss = prepared.log_odds(GRID, "independent").loss[0]
    assert loss == pytest.approx(-log_p[np.arange(60), tau.agent].mean())
    others = calibrated_by_others(said, np.where(fold == 0, 1 - tau.agent, tau.agent), fold)
    assert np.array_equal(log_p[fold == 0], others[fold == 0])  # whatever the agents there
    assert not np.allclose(log_p[fold == 1], others[fold == 1])


def test_every_step_is_judged_by_the_pairs_that_it_has():
    log_p = np.log(np.array([[[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [[0.2, 0.8], [0.3, 0.7], [0.5, 0.5]]]))
    loss, chance, p_value = judged(log_p, np.array([0, 1]), np.array([3, 2]))
    assert loss == pytest.approx([-np.log(0.9 * 0.8) / 2, -np.log(0.5), np.nan], nan_ok=True)
    assert chance == pytest.approx([np.log(2), 0, np.nan], nan_ok=True)
    assert p_value[1:].tolist() == [1, 1]


# -- embedding, separation, encoder -----------------------------------------------------------------------------------


def test_neighbours_in_the_embedding_are_of_one_state_whatever_the_distractors_show(data):
    z, states = ClassifierOracle(PRODUCTS).prepare(data.tau).embed(), data.truth.states
    assert z.shape == (800, 4, 16)
    assert z.dtype == np.float64
    new = np.arange(800) % 4 == 0
    neighbours = KNeighborsClassifier(5).fit(z[~new].reshape(-1, 16), states[~new].ravel())
    assert neighbours.score(z[new].reshape(-1, 16), states[new].ravel()) > 0.95


def test_many_questions_at_once_are_answered_as_one_after_the_other(monkeypatch):
    tau = feature_data(40).tau
    whole = ClassifierOracle(TREE, repeats=1).prepare(tau).embed()
    monkeypatch.setattr(module, "AT_ONCE", 1)
    np.testing.assert_allclose(ClassifierOracle(TREE, repeats=1).prepare(tau).embed(), whole)


def test_separation_and_encoding(data):
    prepared = ClassifierOracle(LogisticRegression()).prepare(data.tau)
    n, s = data.tau.n, data.truth.states[:, 3]
    separation = prepared.separation(4, 2 * (s % 2) + np.arange(n) % 2, 4)
    assert separation(0, [1]) > 0.5
    assert separation(0, [2, 3]) < 0.5
    fit = prepared.encode(4, np.where(np.arange(n) % 5 == 0, -1, s), 4)
    assert (fit.encoder(data.tau.at(4)) == s).mean() > 0.99
    assert fit.loss < 0.05
    assert (prepared.encode(2, np.full(n, -1), 0).encoder(data.tau.at(2)) == 0).all()  # no state
    assert prepared.separation(2, (np.arange(n) == 0).astype(int), 2)(1, [0]) <= 2  # a rare one
    label = np.full(n, -1)
    for state in (0, 1):  # two examples of each
        label[np.flatnonzero(s == state)[:2]] = state
    encoder = ClassifierOracle(LinearSVC()).prepare(data.tau).encode(4, label, 2).encoder
    assert (encoder(data.tau.at(4))[label >= 0] == label[label >= 0]).all()


def test_separation_is_by_neighbours_and_at_chance_for_sets_alike():
    def separation(x, cluster):
        tau = TrajectoryDataset.from_arrays([np.stack([x, x], axis=1)[own::2] for own in (0, 1)])
        prepared = ClassifierOracle(TREE, repeats=1).prepare(tau)
        prepared._embedding = np.stack([tau.at(h) for h in (1, 2)], axis=1)
        return prepared.separation(1, np.concatenate([cluster[own::2] for own in (0, 1)]), int(cluster.max()) + 1)

    rng = np.random.default_rng(0)
    loss = separation(rng.normal(size=(1200, 3)), (np.arange(1200) >= 1150).astype(int))
    assert loss(1, [0]) == pytest.approx(1.0, abs=0.3)  # whatever their sizes
    assert loss(1, [2]) == 0.0  # there is nothing of it
    assert separation(np.zeros((40, 3)), np.arange(40) % 2)(0, [1]) > 0.5
    x = rng.uniform(-1, 1, size=(600, 2))
    assert separation(x, (x[:, 0] * x[:, 1] > 0).astype(int))(1, [0]) < 0.3  # which no line tells apart
    x[500:520] = 0.2 * x[500:520] + 0.56  # a few, where there are about as many of the others
    assert separation(x[:520], (np.arange(520) >= 500).astype(int))(1, [0]) < 0.3
    few = np.array([0, 0, 0, 1, -1, -1, -1, -1])  # fewer than neighbours are asked for
    assert separation(x[:8], few)(1, [0]) <= 2


# -- in CRAFT ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stationary", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_boosted_trees_find_the_states_of_all_steps(stationary):
    data, test = feature_data(800, horizon=3), feature_data(200, horizon=3, seed=1)
    model = CRAFT(ClassifierOracle(TREES, repeats=2), stationary=stationary).fit(data.tau)
    assert hasattr(model, "encoder_") == stationary
    assert encoder_accuracy(model, test.tau.at, test.truth.states).mean() > 0.97
    if stationary:
        assert model.n_states_total_ == 4
        assert accuracy(model.transform(test.tau), test.truth.states) > 0.97


@pytest.mark.slow
def test_the_papers_algorithm_runs_on_learned_log_odds():
    model = CRAFT.paper(ClassifierOracle(TREES), alpha=1.0, eta=0.02, nu=0.05)
    model.fit(feature_data(1500, horizon=3).tau)
    assert [len(step.comparisons) > 0 for step in model.trace_] == [False, True]
    assert model.n_states_[2] > 1
    assert not hasattr(model, "rounds_")


def walk(n, horizon, leave, seed=0):
    """Two states that agents leave with these chances (agent, state), beside a frozen bit and noise."""
    rng = np.random.default_rng(seed)
    agent, beside = np.repeat([0, 1], n), rng.integers(2, size=(2 * n, 1))
    s = np.zeros((2 * n, horizon), dtype=int)
    for h in range(1, horizon):
        s[:, h] = s[:, h - 1] ^ (rng.random(2 * n) < np.array(leave)[agent, s[:, h - 1]])
    x = np.stack([s, np.broadcast_to(beside, s.shape), *rng.normal(size=(2, *s.shape))], axis=2)
    return x + rng.normal(0, 0.15, x.shape), agent, s


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_frozen_distractor_splits_no_state(seed):
    """With bounds that hold, three of four fits once found four states for two, in silence."""
    leave = [[0.2, 0.6], [0.6, 0.3]]
    x, agent, s = walk(600, 6, leave, seed)
    model = CRAFT(HistGradientBoostingClassifier(max_iter=50), alpha=1.0, eta=0.1, nu=0.1).fit(x, agent)
    assert model.n_states_total_ == 2
    x, _, s = walk(200, 6, leave, seed + 100)
    assert accuracy(model.transform(x), s) > 0.97


def test_states_are_as_right_at_the_end_of_long_trajectories_as_at_the_beginning():
    """One classifier for all steps learns what h means; products with h up to H kept its solver from converging."""
    x, agent, s = walk(150, 40, [[0.5, 0.5], [0.25, 0.25]])
    model = CRAFT(ClassifierOracle(PRODUCTS, folds=2, repeats=1)).fit(x, agent)
    assert model.n_states_total_ == 2
    assert (accuracy_by_step(model.labels_, s) > 0.95).all()


KINDS = [
    KNeighborsClassifier(25),
    KNeighborsClassifier(5, algorithm="kd_tree"),
    KNeighborsClassifier(5, algorithm="ball_tree", metric="manhattan"),
    KNeighborsClassifier(5, algorithm="brute"),
    QuadraticDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), PCA(2), LinearDiscriminantAnalysis()),
    GaussianNB(),
    SVC(),
    NuSVC(),
    RandomForestClassifier(5),
    ExtraTreesClassifier(5),
    HistGradientBoostingClassifier(max_iter=5, early_stopping=True),
    GradientBoostingClassifier(n_estimators=3),
    MLPClassifier((4,), max_iter=20, early_stopping=True),
    PRODUCTS,
    AdaBoostClassifier(n_estimators=5),
    CalibratedClassifierCV(RidgeClassifier(), cv=2),
    StackingClassifier([("tree", DecisionTreeClassifier()), ("Bayes", GaussianNB())], cv=2),
    DummyClassifier(),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_craft_takes_any_classifier_and_its_model_is_saved(kind, tmp_path):
    tau = feature_data(30).tau
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CRAFT(ClassifierOracle(kind, folds=2, repeats=1), **BOUNDS).fit(tau)
    states, f = model.transform(tau), model.log_odds(tau)
    assert states.shape == (60, 4)
    assert ((states >= 0) & (states < model.n_states_total_)).all()
    assert np.isfinite(f).all()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.transform(tau), states)
    assert np.allclose(again.log_odds(tau), f)


# -- classifiers that cannot learn ------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifier", [KNeighborsClassifier(25), QuadraticDiscriminantAnalysis()])
def test_a_state_with_few_members_is_learned_all_the_same_and_that_is_told_once(classifier):
    data = feature_data(100)
    s = data.truth.states[:, 2]
    rare, common = np.argsort(np.bincount(s))[[0, -1]]
    rows = np.concatenate([np.flatnonzero(s == rare)[:6], np.flatnonzero(s == common)[:12]])
    label = np.full(len(s), -1)
    label[rows] = s[rows] == rare
    prepared = ClassifierOracle(classifier).prepare(data.tau)
    with pytest.warns(AssumptionWarning, match=r"could not learn 2 classes from 14 rows \(.*\): a linear") as told:
        fit = prepared.encode(3, label, 2)
    assert len(told) == 1
    assert prepared.separation(3, label, 2)(0, [1]) < 0.5
    chosen = np.isin(s, [rare, common])
    assert (fit.encoder(data.tau.at(3)[chosen]) == (s[chosen] == rare)).mean() > 0.95


def test_where_nothing_can_be_learned_the_shares_answer():
    """Three rows, each a class of its own: even the linear discriminant refuses."""
    clones = Clones(QuadraticDiscriminantAnalysis(), 0)
    with pytest.warns(AssumptionWarning, match="takes its place"):
        model = clones.fitted(np.eye(3), np.arange(3), clones.bare, "predict")
    assert isinstance(model, DummyClassifier)


class SureAndWrong(DecisionTreeClassifier):
    """As boosting may end among many classes: sure of itself, and wrong. Two classes it tells apart."""

    def predict_proba(self, x):
        return np.roll(super().predict_proba(x), len(self.classes_) > 2, axis=1)


def test_a_classifier_that_diverged_is_replaced_by_one_for_each_class():
    x, label = np.arange(300.0)[:, None], np.repeat([0, 1, 2], 100)
    replaced = Clones(SureAndWrong(), 0).fit(x, label).model
    assert isinstance(replaced, OneVsRestClassifier)
    assert (replaced.predict(x) == label).all()
    assert isinstance(Clones(SureAndWrong(), 0).fit(x, label // 2).model, SureAndWrong)
    assert isinstance(Clones(TREE, 0).fit(x, label).model, DecisionTreeClassifier)


class Odd(ClassifierMixin, BaseEstimator):
    """A classifier of somebody's own; `fault` says what is wrong with it."""

    def __init__(self, fault="fit"):
        self.fault = fault

    def fit(self, x, y):
        if self.fault == "fit":
            raise KeyError("weights")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        shape = (len(x), len(self.classes_) + (self.fault == "shape"))
        return np.full(shape, np.nan if self.fault == "nan" else 0.5)

    def predict(self, x):
        return np.zeros(len(x), dtype=int)


def test_probabilities_that_are_no_numbers_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        assert CRAFT(Odd("nan"), **BOUNDS).fit(feature_data(30).tau).n_states_total_ == 1


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (Odd("fit"), r"Odd fails on 200 rows of \d+ random features, too: 'weights'"),
        (Odd("shape"), r"Odd fails .*predict_proba answers for one row in shape \(1, 3\)"),
        (KNeighborsClassifier(-1), "KNeighborsClassifier fails .*must be an int in the range"),
        (MultinomialNB(), "MultinomialNB fails .*Negative values"),
        (ClassifierOracle(KMeans()), "with predict_proba or decision_function, such as .*; KMeans"),
        (ClassifierOracle(DecisionTreeClassifier), "must be a scikit-learn classifier with"),
        (LinearRegression(), "oracle must be an Oracle such as"),
        (ClassifierOracle(TREE, folds=1), "folds must be an integer from 2 to 100; 1 was given"),
        (ClassifierOracle(TREE, repeats=0), "repeats must be an integer from 1"),
        (ClassifierOracle(TREE, seed=-1), "seed must be an integer from 0"),
        (ClassifierOracle(TREE, calibrate=1), "calibrate must be True or False"),
        *(((TREE, name), f"'independent' for ClassifierOracle; '{name}' was") for name in ("chain", "markov")),
    ],
)
def test_what_cannot_be_an_oracle_is_refused(oracle, message):
    """An oracle, or one with a coupling."""
    classifier, coupling = oracle if isinstance(oracle, tuple) else (oracle, "auto")
    with pytest.raises(InvalidParameterError, match=message):
        CRAFT(classifier, **BOUNDS, coupling=coupling).fit(feature_data(50).tau)


def test_little_data_has_one_thread_for_itself_and_much_data_all_of_them():
    def threads():
        return [each["num_threads"] for each in threadpool_info()]

    with threadpool_limits(2):
        before = threads()
        with few_threads(100):
            assert set(threads()) == {1}
            with few_threads(100):
                assert set(threads()) == {1}
            assert set(threads()) == {1}
        assert threads() == before
        with few_threads(10**6):
            assert threads() == before
