"""One encoder for all steps: for networks, classifiers and finite classes."""

import numpy as np
import pytest
from feature_world import feature_data

from craftrl import (
    CRAFT,
    ClassifierOracle,
    CoordinateOracle,
    FiniteOracle,
    InvalidParameterError,
    TrajectoryDataset,
)
from craftrl.estimators.evidence import chained_evidence, shared_evidence
from craftrl.estimators.sharing import _supported
from craftrl.states.accuracy import accuracy
from shipped import fitted


@pytest.fixture(scope="module")
def data():
    return feature_data(500)


def walker(n, seed):
    """A walk on four cells, one-hot twice: as it is, and with the cells of every second trajectory renamed."""
    rng = np.random.default_rng(seed)
    stay = np.repeat([0.2, 0.6], n)
    cell = np.zeros((2 * n, 5), dtype=int)
    for h in range(1, 5):
        cell[:, h] = (cell[:, h - 1] + (rng.random(2 * n) > stay) * rng.choice([1, 3], 2 * n, p=[0.7, 0.3])) % 4
    noise = rng.integers(4, size=(2 * n, 5))
    return np.stack([cell, noise], axis=-1), np.repeat(["a", "b"], n), cell


def test_a_finite_class_shares_its_best_coordinate():
    x, agent, _ = walker(3000, 0)
    model = CRAFT(CoordinateOracle(4), alpha=0.5, eta=0.1, nu=0.02, stationary=True).fit(x, agent)
    assert model.encoder_.feature == 0
    assert model.n_states_total_ == 4
    fresh, _, truth = walker(200, 1)
    assert accuracy(model.encode(fresh[:, 2]), truth[:, 2]) == 1
    assert accuracy(model.transform(fresh), truth) == 1
    assert accuracy(model.transform(np.tile(fresh, (1, 3, 1))), np.tile(truth, (1, 3))) == 1  # longer than those fitted


def test_a_class_of_its_own_at_each_step_cannot_be_shared():
    x, agent, _ = walker(500, 0)
    oracle = FiniteOracle(lambda h: [lambda z: z[:, 0], lambda z: z[:, 1]], 4)
    with pytest.raises(InvalidParameterError, match="one class of encoders for all steps"):
        CRAFT(oracle, alpha=0.5, eta=0.1, nu=0.02, stationary=True).fit(x, agent)


def test_a_classifier_is_trained_on_all_steps():
    from sklearn.ensemble import HistGradientBoostingClassifier

    data, test = feature_data(3000), feature_data(200, seed=1)
    trees = ClassifierOracle(HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8), folds=2, calibrate=False)
    model = CRAFT(trees, alpha=1.0, eta=0.02, nu=0.01, stationary=True).fit(data.tau)
    assert accuracy(model.transform(test.tau), test.truth.states) > 0.98
    assert model.encoder_ is model.encoders_[3]


@pytest.mark.parametrize("agent_weight", [0.0, 0.2])
def test_a_network_is_trained_on_all_steps(data, agent_weight):
    pytest.importorskip("torch")
    from craftrl import NeuralOracle, Training

    training = Training(epochs=8, patience=5, batch=128, lr=5e-3, device="cpu")
    oracle = NeuralOracle(
        dim=32,
        training=training,
        heads=training,
        shared=training.but(epochs=4),
        agent_weight=agent_weight,
    )
    model = CRAFT(oracle, alpha=1.0, eta=0.02, nu=0.01, stationary=True).fit(data.tau)
    test = feature_data(200, seed=1)
    assert accuracy(model.transform(test.tau), test.truth.states) > 0.98  # one relabelling for all steps
    assert model.n_states_total_ == 4
    assert list(model.n_states_) == [1, 3, 4, 4]
    assert np.array_equal(model.encode(test.tau.at(3)), model.encode(test.tau.at(3), 3))
    assert next(use.asked for use in model.trace_.oracle_use if use.question == "sharing") >= 1


def steps(n, H):
    return TrajectoryDataset.from_arrays([np.zeros((n - 1, H, 1)), np.zeros((1, H, 1))])


def test_states_without_support_are_dropped_and_the_others_renumbered():
    """nu = 0.4 of 40 trajectories: 8 at one step are enough, and 2 where CRAFT found the state."""
    labels = np.zeros((40, 4), dtype=int)
    labels[:3, 1:] = 1  # rare at each step, and found at two of them
    labels[3:6, 3] = 2  # rare, found at the one step at which it is visited
    labels[6:8, 1:] = 3  # found at one step, and seen as often at others that did not find it
    labels[8, 2:] = 4  # found at two steps, but hardly ever visited
    labels[9:20, 2] = 5  # never found, but common
    labels[20:23, 2] = 6  # neither
    labels[25, 3] = -1
    found = np.zeros((7, 4), dtype=bool)
    found[0, 1:] = found[1, 1:3] = found[2, 3] = found[3, 1] = found[4, 2] = True
    kept, still_found = _supported(labels, found, 0.4, steps(40, 4))
    number = np.array([0, 1, 2, -1, -1, 3, -1, -1])
    assert np.array_equal(kept, number[labels])
    assert np.array_equal(still_found, found[[0, 1, 2, 5]])


def test_where_no_state_was_found_there_is_one():
    kept, found = _supported(np.full((5, 3), -1), np.zeros((0, 3), dtype=bool), 0.2, steps(5, 3))
    assert len(found) == 1
    assert (kept == 0).all()


def line(n, H, seed):
    """A walk along ten cells from the first one: the last cells are reached late, and by few."""
    rng = np.random.default_rng(seed)
    up = np.repeat([0.3, 0.7], n)
    cell = np.zeros((2 * n, H), dtype=int)
    for h in range(1, H):
        u = rng.random(2 * n)
        cell[:, h] = np.clip(cell[:, h - 1] + np.where(u < up, 1, np.where(u < up + 0.1, -1, 0)), 0, 9)
    return np.stack([cell, rng.integers(10, size=cell.shape)], axis=-1), np.repeat([0, 1], n), cell


@pytest.mark.parametrize("nu", [0.02, 0.1])
def test_states_that_are_rare_at_every_step_are_kept(nu):
    """The last cell has 2% of the trajectories, at the last step alone; the one before at most 5%."""
    x, agent, cell = line(3000, 10, 0)
    model = CRAFT(CoordinateOracle(10), alpha=0.5, eta=0.02, nu=nu, stationary=True).fit(x, agent)
    assert model.n_states_total_ == 10
    assert list(model.n_states_) == list(range(1, 11))
    assert accuracy(model.labels_, cell) == 1


def long_and_short(n_long, n_short, seed=0, H=12):
    """Three states as two bits beside six noise bits: few long episodes beside many clips half as long."""
    rng = np.random.default_rng(seed)
    habits = np.array(
        [[[0.2, 0.6, 0.2], [0.5, 0.2, 0.3], [0.3, 0.3, 0.4]], [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3]]]
    )
    episodes, agent = [], []
    for k in (0, 1):
        for n, length in ((n_long, H), (n_short, H // 2)):
            s, noise, x = np.zeros(n, dtype=int), rng.integers(0, 2, (n, 6)), []
            for _ in range(length):
                x.append(np.column_stack([s == 1, s == 2, noise]))
                s = (habits[k, s].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
                noise = np.where(rng.random(noise.shape) < 0.1, 1 - noise, noise)
            episodes += list(np.stack(x, axis=1).astype(np.uint8))
            agent += [k] * n
    return episodes, agent


def pairs_of_bits(n_bits):
    return [lambda x, i=i, j=j: x[:, i] + 2 * x[:, j] for i in range(n_bits) for j in range(i)]


@pytest.mark.parametrize("stationary", [False, True])
def test_few_long_episodes_beside_many_clips_keep_their_states(stationary):
    """What is a share of trajectories is a share of those that are still running."""
    episodes, agent = long_and_short(150, 5000)
    model = fitted(CRAFT(FiniteOracle(pairs_of_bits(8), 4), stationary=stationary), episodes, agent)
    assert list(model.n_states_)[1:11] == [3] * 10
    assert all(step.assigned > 0.7 for step in model.trace_)


def test_a_frozen_mimic_is_no_state_where_all_begin_in_one():
    """The paper's bits in one order at all steps: s XOR a coin tells the agents apart as well as s does."""
    from craftrl.envs import BitsExBMDP, collect

    for seed in range(6):
        world = BitsExBMDP(16, 32, seed, entangled=seed % 2 == 0)
        world.permutation[:] = world.permutation[0]
        data = collect(world, world.paper_policies(), 40, seed=seed)
        model = fitted(CRAFT(CoordinateOracle(), stationary=True), data.tau)
        assert model.encoder_.feature == world.controllable_feature(1)


def test_no_common_start_is_needed():
    x, agent, cell = walker(600, 3)
    model = fitted(CRAFT(CoordinateOracle(4), stationary=True), x[:, 2:], agent)
    assert model.encoder_.feature == 0
    assert accuracy(model.labels_, cell[:, 2:]) == 1
    assert model.n_states_[1] == 4


def test_there_is_one_state_at_the_start_whatever_the_encoder_says():
    """Observations at h = 1 that a tree cannot tell from other cells all the same have one label there."""
    from sklearn.tree import DecisionTreeClassifier

    data = feature_data(300)
    tree = ClassifierOracle(DecisionTreeClassifier(max_depth=3, random_state=0), folds=2, calibrate=False)
    model = fitted(CRAFT(tree, alpha=1.0, eta=0.02, nu=0.01, stationary=True), data.tau)
    assert len(np.unique(model.labels_[:, 0])) == 1
    assert model.n_states_[1] == 1


def test_a_classifier_oracle_is_what_a_classifier_becomes(data):
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    model = CRAFT(tree, alpha=1.0, eta=0.02, nu=0.01).fit(data.tau)
    assert model.oracle_ == ClassifierOracle(DecisionTreeClassifier(max_depth=4, random_state=0))
    assert model.oracle is tree


def test_labels_are_in_the_order_given():
    x, agent, _ = walker(500, 0)
    order = np.random.default_rng(0).permutation(len(x))
    one, other = (
        CRAFT(CoordinateOracle(4), stationary=True).fit(x[rows], agent[rows]) for rows in (np.arange(len(x)), order)
    )
    assert np.array_equal(other.labels_, one.labels_[order])


@pytest.mark.parametrize("seed", range(3))
def test_habits_that_stay_make_rare_differences_count(seed):
    labels, tau = _two_that_differ_a_little(n=300, H=12, seed=seed)
    fused = np.where(labels == 1, 0, labels)
    assert chained_evidence(labels.T, tau) > chained_evidence(fused.T, tau)  # each step by itself: not worth it
    assert shared_evidence(labels, tau) < shared_evidence(fused, tau)


def test_habits_that_change_are_learned_at_each_step():
    labels, tau = _two_that_differ_a_little(n=2000, H=12, seed=0, turning=True)
    assert shared_evidence(labels, tau) == chained_evidence(labels.T, tau)
    stay, same = _two_that_differ_a_little(n=2000, H=12, seed=0)
    assert shared_evidence(stay, same) < chained_evidence(stay.T, same)


def _two_that_differ_a_little(n, H, seed, turning=False):
    """States 0 and 1 at odd steps, drawn at random; from there to 2 or 3, where the agents prefer another one in each.

    With `turning` their preferences turn round at every visit.
    """
    rng = np.random.default_rng(seed)
    agent = np.repeat([0, 1], n)
    labels = np.zeros((2 * n, H), dtype=np.int64)
    for h in range(0, H, 2):
        labels[:, h] = rng.integers(0, 2, 2 * n)
        prefers = (labels[:, h] == agent) ^ (turning and h % 4 == 0)
        labels[:, h + 1] = 2 + (rng.random(2 * n) < np.where(prefers, 0.55, 0.45))
    frames = labels[..., None].astype(np.float64)
    return labels, TrajectoryDataset.from_arrays([frames[:n], frames[n:]])
