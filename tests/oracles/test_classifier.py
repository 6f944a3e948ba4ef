"""Any scikit-learn classifier as an oracle, on feature vectors."""

import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("sklearn")
sys.path.insert(0, str(Path(__file__).parent))

from feature_world import feature_data
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.oracles.classifier import ENOUGH, ClassifierOracle
from craftrl.oracles.cross_fitting import Clones, few_threads
from craftrl.oracles.learned import to_bins
from craftrl.states.accuracy import encoder_accuracy

GRID = Grid.from_bounds(1.0, 0.02)
TREE = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)


@pytest.fixture(scope="module")
def data():
    return feature_data(1500)


@pytest.mark.parametrize("classifier", [TREE, RidgeClassifier()], ids=["probabilities", "scores"])
def test_log_odds_are_cross_fitted_and_better_than_chance(classifier, data):
    f = ClassifierOracle(classifier).prepare(data.tau).log_odds(GRID, "independent")
    assert f.bins.shape == (data.tau.n, 3, 1)
    assert (f.loss < np.log(2)).all()


def test_nothing_is_learned_where_there_is_nothing_to_learn(data):
    """In-sample a tree would tell shuffled agents apart; cross-fitted it cannot."""
    rng = np.random.default_rng(0)
    shuffled = data.tau.select(np.arange(data.tau.n), rng.permutation(data.tau.agent))
    oracle = ClassifierOracle(DecisionTreeClassifier(min_samples_leaf=2, random_state=0))
    f = oracle.prepare(shuffled).log_odds(GRID, "independent")
    assert (f.loss > f.chance - 0.001).all()
    assert (f.p_value > 0.01).all()


def test_classifiers_are_trained_once_for_all_grids(data, monkeypatch):
    times, fit = [], Clones.fit
    monkeypatch.setattr(Clones, "fit", lambda self, *given: times.append(1) or fit(self, *given))
    prepared = ClassifierOracle(TREE, folds=2, repeats=1).prepare(data.tau)
    prepared.log_odds(GRID, "independent")
    once = len(times)
    assert once == 2 * 4  # for each of two folds one of all steps, and one of each of three
    prepared.log_odds(Grid.from_bounds(0.5, 0.1), "independent")
    assert len(times) == once


def test_separation_and_encoding(data):
    bound = ClassifierOracle(LogisticRegression()).prepare(data.tau)
    s = data.truth.states[:, 3]
    separation = bound.separation(4, 2 * (s % 2) + np.arange(data.tau.n) % 2, 4)
    assert separation(0, [1]) > 0.5
    assert separation(0, [2, 3]) < 0.5
    fit = bound.encode(4, np.where(np.arange(data.tau.n) % 5 == 0, -1, s), 4)
    assert (fit.encoder(data.tau.at(4)) == s).mean() > 0.99
    assert fit.loss < 0.05


def test_no_state_and_rare_classes_are_answered(data):
    bound = ClassifierOracle(LogisticRegression()).prepare(data.tau)
    none = np.full(data.tau.n, -1)
    assert (bound.encode(2, none, 0).encoder(data.tau.at(2)) == 0).all()
    rare = np.zeros(data.tau.n, dtype=int)
    rare[0] = 1
    assert bound.separation(2, rare, 2)(1, [0]) <= 2


def test_a_classifier_without_probabilities_learns_an_encoder_from_two_examples_of_a_state(data):
    label = np.full(data.tau.n, -1)
    s = data.truth.states[:, 1]
    for state in (0, 1):
        label[np.flatnonzero(s == np.unique(s)[state])[:2]] = state
    encoder = ClassifierOracle(LinearSVC()).prepare(data.tau).encode(2, label, 2).encoder
    assert (encoder(data.tau.at(2))[label >= 0] == label[label >= 0]).all()


def test_craft_with_boosted_trees_finds_the_successors_of_the_start():
    data, test = feature_data(1500, horizon=3), feature_data(200, horizon=3, seed=1)
    trees = ClassifierOracle(HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8), folds=2, calibrate=False)
    model = CRAFT(trees, alpha=1.0, eta=0.02, nu=0.01).fit(data.tau)
    assert list(model.n_states_) == [1, 3, 4]
    assert encoder_accuracy(model, test.tau.at, test.truth.states)[1] > 0.98


def test_default_classifiers_stay_near_chance_on_the_papers_bits():
    world = BitsExBMDP(horizon=3, n_features=32, seed=0)
    tau = collect(world, world.paper_policies(), 500, seed=0).tau
    loss = ClassifierOracle(LogisticRegression()).prepare(tau).log_odds(Grid.from_bounds(1.0, 0.2), "independent").loss
    assert loss[1] > np.log(2) - 0.05


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (ClassifierOracle(KMeans()), "with predict_proba or decision_function, such as .*; KMeans"),
        (ClassifierOracle(TREE, folds=1), "folds must be an integer from 2 to 3000; 1 was given"),
        (ClassifierOracle(DecisionTreeClassifier), "must be a scikit-learn classifier with"),
        (LinearRegression(), "oracle must be an Oracle such as"),
    ],
)
def test_what_cannot_be_an_oracle_is_refused(data, oracle, message):
    with pytest.raises(InvalidParameterError, match=message):
        CRAFT(oracle, alpha=1.0, eta=0.1, nu=0.1).fit(data.tau)


@pytest.mark.parametrize("coupling", ["chain", "markov"])
def test_a_coupling_that_would_change_nothing_is_refused(coupling, data):
    model = CRAFT(ClassifierOracle(TREE), alpha=1.0, eta=0.02, nu=0.01, coupling=coupling)
    with pytest.raises(InvalidParameterError, match=f"'independent' for ClassifierOracle; '{coupling}' was"):
        model.fit(data.tau)


def test_values_are_rounded_to_the_nearest_grid_point_and_clipped():
    grid = Grid.from_bounds(1.0, 0.2)
    values = np.array([-99.0, 0.0, grid.values[3] + 0.1, 99.0])
    assert grid.values[to_bins(values, grid)] == pytest.approx(
        [grid.values[0], grid.values[np.abs(grid.values).argmin()], grid.values[3], grid.values[-1]], abs=grid.xi / 2
    )


def test_an_unseeded_classifier_gives_the_same_result_twice(data):
    unseeded = DecisionTreeClassifier(max_features=1, min_samples_leaf=10)
    first, second = (ClassifierOracle(unseeded).prepare(data.tau).log_odds(GRID, "independent") for _ in range(2))
    assert (first.bins == second.bins).all()
    other = ClassifierOracle(unseeded, seed=1).prepare(data.tau).log_odds(GRID, "independent")
    assert (first.bins != other.bins).any()


def test_profiles_are_alike_for_observations_of_one_state(data):
    prepared = ClassifierOracle(TREE).prepare(data.tau)
    f = prepared.log_odds(GRID, "independent")
    label = data.truth.states[:, 1]
    found = prepared.profiles(2, label, f, GRID)
    assert found.n_before == label.max() + 1
    successor = data.truth.states[:, 2]
    before, after = np.split(found.values, [found.n_before], axis=1)
    assert before.shape[1] == found.n_before
    assert after.shape[1] == 16
    for part in (before, after):
        within = np.mean([part[successor == s].std(axis=0).mean() for s in np.unique(successor)])
        assert within < 0.7 * part.std(axis=0).mean()


def test_a_state_that_no_trajectory_is_read_to_be_in_says_nothing(data):
    """Encoders need not give back every state that was found: labels may skip a number."""
    prepared = ClassifierOracle(TREE, repeats=1).prepare(data.tau)
    f = prepared.log_odds(GRID, "independent")
    label = data.truth.states[:, 1]
    skipping = np.where(label == 1, 2, label)
    found = prepared.profiles(2, skipping, f, GRID)
    assert np.isfinite(found.values).all()
    assert (found.values[:, 1] == 0).all()
    assert (prepared.log_odds_given(2, skipping, f, GRID) >= 0).all()


def test_nothing_follows_the_last_step(data):
    prepared = ClassifierOracle(TREE, repeats=1).prepare(data.tau)
    found = prepared.profiles(3, data.truth.states[:, 2], prepared.log_odds(GRID, "independent"), GRID)
    assert found.values.shape[1] == found.n_before


def test_states_are_read_by_clones_that_did_not_see_the_label(data):
    rng = np.random.default_rng(0)
    s = data.truth.states[:, 2]
    told = np.where(rng.random(len(s)) < 0.1, rng.integers(4, size=len(s)), s)
    told[:30] = -1
    fit = ClassifierOracle(HistGradientBoostingClassifier(max_iter=20)).prepare(data.tau).encode(3, told, 4)
    assert (fit.unseen[:30] == -1).all()
    assert (fit.unseen[30:] == s[30:]).mean() > 0.97 > (told == s).mean() + 0.03


class SureAndWrong(DecisionTreeClassifier):
    """As boosting may end among many classes: sure of itself, and wrong. Two classes it tells apart."""

    def predict_proba(self, x):
        return np.roll(super().predict_proba(x), len(self.classes_) > 2, axis=1)


def test_a_classifier_that_diverged_is_replaced_by_one_for_each_class():
    x = np.arange(300.0)[:, None]
    label = np.repeat([0, 1, 2], 100)
    replaced = Clones(SureAndWrong(), 0).fit(x, label).model
    assert isinstance(replaced, OneVsRestClassifier)
    assert (replaced.predict(x) == label).all()
    assert isinstance(Clones(SureAndWrong(), 0).fit(x, label // 2).model, SureAndWrong)
    assert isinstance(Clones(TREE, 0).fit(x, label).model, DecisionTreeClassifier)


class Counts(DecisionTreeClassifier):
    """Notes how many rows of each class it learns from."""

    rows: ClassVar[list] = []

    def fit(self, x, y):
        self.rows.append(np.bincount(y).tolist())
        return super().fit(x, y)


def separation(x, cluster, classifier=TREE):
    tau = TrajectoryDataset.from_arrays([np.stack([x, x], axis=1)[own::2] for own in (0, 1)])
    cluster = np.concatenate([cluster[own::2] for own in (0, 1)])
    return ClassifierOracle(classifier).prepare(tau).separation(1, cluster, int(cluster.max()) + 1)


def test_no_classifier_is_trained_where_a_line_tells_two_sets_apart():
    x = np.random.default_rng(0).normal(size=(400, 3))
    cluster = np.arange(400) % 4
    x[cluster == 3] += [4, 0, 0]
    Counts.rows.clear()
    loss = separation(x, cluster, Counts(min_samples_leaf=5, random_state=0))
    assert loss(3, [0, 1]) < 0.2
    assert not Counts.rows
    assert loss(2, [0, 1]) > 0.5
    assert Counts.rows


def test_sets_alike_are_at_chance_whatever_their_sizes_and_so_many_rows_are_looked_at():
    x = np.random.default_rng(0).normal(size=(2 * ENOUGH + 200, 3))
    cluster = (np.arange(len(x)) >= 2 * ENOUGH).astype(int)
    Counts.rows.clear()
    loss = separation(x, cluster, Counts(min_samples_leaf=5, random_state=0))
    assert loss(1, [0]) == pytest.approx(1.0, abs=0.3)
    assert all(sum(rows) <= (ENOUGH + 200) * 2 / 3 + 1 for rows in Counts.rows)
    assert loss(1, [2]) == 0.0  # there is nothing of it


def test_a_classifier_tells_apart_what_no_line_does():
    x = np.random.default_rng(0).uniform(-1, 1, size=(600, 2))
    cluster = (x[:, 0] * x[:, 1] > 0).astype(int)
    x[:, 0] += np.sign(x[:, 0])  # a tree finds the first cut only where the data is uneven
    assert separation(x, cluster, GaussianNB())(1, [0]) > 0.5
    assert separation(x, cluster)(1, [0]) < 0.5


def threads():
    """Of every library that has some."""
    return [each["num_threads"] for each in threadpool_info()]


def test_little_data_has_one_thread_for_itself_and_much_data_all_of_them():
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
