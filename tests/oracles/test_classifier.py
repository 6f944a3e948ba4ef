"""Any scikit-learn classifier as an oracle, on feature vectors."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
sys.path.insert(0, str(Path(__file__).parent))

from feature_world import feature_data
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import accuracy, encoder_accuracy
from craftrl.oracles import classifier
from craftrl.oracles.classifier import ClassifierOracle
from craftrl.oracles.cross_fitting import Clones, few_threads
from craftrl.oracles.learned import to_bins

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
    assert once == 2  # one for each fold
    prepared.log_odds(Grid.from_bounds(0.5, 0.1), "independent")
    prepared.embed()
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


TREES = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8)


@pytest.mark.parametrize("stationary", [True, False])
def test_boosted_trees_find_the_states_of_all_steps(stationary):
    data, test = feature_data(1500, horizon=3), feature_data(200, horizon=3, seed=1)
    model = CRAFT(ClassifierOracle(TREES), stationary=stationary).fit(data.tau)
    assert hasattr(model, "encoder_") == stationary
    assert encoder_accuracy(model, test.tau.at, test.truth.states).mean() > 0.98
    if stationary:
        assert model.n_states_total_ == 4
        assert accuracy(model.transform(test.tau), test.truth.states) > 0.98
    else:
        assert list(model.n_states_) == [1, 3, 4]


def test_the_papers_algorithm_runs_on_learned_log_odds():
    data = feature_data(1500, horizon=3)
    model = CRAFT.paper(ClassifierOracle(TREES), alpha=1.0, eta=0.02, nu=0.05).fit(data.tau)
    assert model.trace_[1].comparisons == ()
    assert model.trace_[2].comparisons
    assert model.n_states_[2] > 1
    assert not hasattr(model, "rounds_")


def two_states(n, seed, H=6):
    """Two states, of which the agents differ in how they are left, beside a distractor that is frozen."""
    rng = np.random.default_rng(seed)
    leave = np.array([[0.2, 0.6], [0.6, 0.3]])  # of each agent, from each state
    agent, frozen = np.repeat([0, 1], n), rng.integers(2, size=2 * n)
    s, x = np.zeros((2 * n, H), dtype=int), np.empty((2 * n, H, 4))
    for h in range(H):
        if h:
            s[:, h] = s[:, h - 1] ^ (rng.random(2 * n) < leave[agent, s[:, h - 1]])
        x[:, h] = np.column_stack([s[:, h], frozen, rng.normal(size=(2 * n, 2))]) + rng.normal(0, 0.15, (2 * n, 4))
    return x, agent, s


@pytest.mark.parametrize("seed", range(4))
def test_a_frozen_distractor_splits_no_state(seed):
    """With bounds that hold, three of four fits once found four states for two, in silence."""
    x, agent, s = two_states(600, seed)
    model = CRAFT(HistGradientBoostingClassifier(max_iter=50), alpha=1.0, eta=0.1, nu=0.1).fit(x, agent)
    assert model.n_states_total_ == 2
    x, agent, s = two_states(200, seed + 100)
    assert accuracy(model.transform(x), s) > 0.97


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


def test_neighbours_in_the_embedding_are_of_one_state_whatever_the_distractors_show():
    data = feature_data(600)
    z = ClassifierOracle(HistGradientBoostingClassifier(max_iter=50)).prepare(data.tau).embed()
    assert z.shape == (1200, 4, 16)
    assert z.dtype == np.float64
    known, new = np.arange(1200) % 4 > 0, np.arange(1200) % 4 == 0
    neighbours = KNeighborsClassifier(5).fit(z[known].reshape(-1, 16), data.truth.states[known].ravel())
    assert neighbours.score(z[new].reshape(-1, 16), data.truth.states[new].ravel()) > 0.98


def test_an_embedding_does_not_know_the_agent_by_heart(data):
    """A tree would know every trajectory that it learned from; what is seen beside references is cross-fitted."""
    rng = np.random.default_rng(0)
    shuffled = data.tau.select(np.arange(data.tau.n), rng.permutation(data.tau.agent))
    z = ClassifierOracle(DecisionTreeClassifier(min_samples_leaf=2, random_state=0)).prepare(shuffled).embed()
    known = np.arange(data.tau.n) % 2 == 0
    neighbours = KNeighborsClassifier(15).fit(z[known, 1], shuffled.agent[known])
    assert neighbours.score(z[~known, 1], shuffled.agent[~known]) < 0.55


def test_many_questions_at_once_are_answered_as_one_after_the_other(monkeypatch):
    tau = feature_data(40).tau
    whole = ClassifierOracle(TREE, repeats=1).prepare(tau).embed()
    monkeypatch.setattr(classifier, "AT_ONCE", 1)
    np.testing.assert_allclose(ClassifierOracle(TREE, repeats=1).prepare(tau).embed(), whole)


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


def separation(x, cluster):
    tau = TrajectoryDataset.from_arrays([np.stack([x, x], axis=1)[own::2] for own in (0, 1)])
    cluster = np.concatenate([cluster[own::2] for own in (0, 1)])
    prepared = ClassifierOracle(TREE, repeats=1).prepare(tau)
    prepared._embedding = np.stack([tau.at(h) for h in (1, 2)], axis=1)
    return prepared.separation(1, cluster, int(cluster.max()) + 1)


def test_sets_alike_are_at_chance_whatever_their_sizes():
    x = np.random.default_rng(0).normal(size=(1200, 3))
    cluster = (np.arange(len(x)) >= 1150).astype(int)
    loss = separation(x, cluster)
    assert loss(1, [0]) == pytest.approx(1.0, abs=0.3)
    assert loss(1, [2]) == 0.0  # there is nothing of it
    assert separation(np.zeros((40, 3)), np.arange(40) % 2)(0, [1]) > 0.5


def test_neighbours_tell_apart_what_no_line_does():
    x = np.random.default_rng(0).uniform(-1, 1, size=(600, 2))
    cluster = (x[:, 0] * x[:, 1] > 0).astype(int)
    assert separation(x, cluster)(1, [0]) < 0.3


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
