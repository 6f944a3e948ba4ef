"""Trajectories that begin in several states: seen, said, and learned from where that is possible."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier

import craftrl
from craftrl import CRAFT, AssumptionWarning, ClassifierOracle, CoordinateOracle, TrajectoryDataset
from craftrl.core.trace import StartTest
from craftrl.envs import BitsExBMDP
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.evaluation import accuracy_by_step
from craftrl.oracles.starts import one_start_test
from small_worlds import flips, walked

BOUNDS = {"alpha": 1.0, "eta": 0.1, "nu": 0.05}
# Pr(next cell | cell) of two agents on four cells in a ring: ahead, back or stay, in an order of each cell's own.
HABITS = np.array([[0.6, 0.3, 0.1], [0.3, 0.1, 0.6], [0.1, 0.6, 0.3], [0.3, 0.6, 0.1]])


def bits(n, start, seed=0, H=4):
    """The paper's world, its features and its agents, but s_1 = 1 with probability start[k]; and the states."""
    world, rng = BitsExBMDP(horizon=H, n_features=16, seed=seed), np.random.default_rng(seed)
    s, agent = walked(n, flips(0.5, 0.25), H, seed=seed)
    s ^= rng.random((2 * n, 1)) < np.repeat(start, n)[:, None]  # who begins in the other state goes through the others
    e, x = world.sample_noise(len(s), rng), []
    for h in range(1, H + 1):
        x.append(world.emit(s[:, h - 1], e, h, rng))
        e = world.step_noise(e, h, rng)
    return np.stack(x, axis=1), agent, s


def ring(n, n_starts, seed=0, H=4, noise=0.1):
    """Four cells in a ring as one-hot features, beside those of a walker that nobody controls; and the cells."""
    rng, here = np.random.default_rng(seed), np.arange(4)[:, None]
    chances = np.zeros((2, 4, 4))
    chances[:, here, (here + [-1, 0, 1]) % 4] = HABITS, HABITS[:, ::-1]
    s, agent = walked(n, chances, H, np.full(n_starts, 1 / n_starts), seed)
    walker = (rng.integers(4, size=(2 * n, 1)) + rng.integers(-1, 2, size=s.shape).cumsum(axis=1)) % 4
    x = np.concatenate([np.eye(4)[s], np.eye(4)[walker]], axis=-1)
    return x + rng.normal(0, noise, x.shape), agent, s


def start_test(x, agent):
    return one_start_test(CoordinateOracle().prepare(TrajectoryDataset.from_arrays([x[agent == 0], x[agent == 1]])))


def test_one_start_raises_no_alarm_with_coordinates_although_mimics_abound():
    found = [start_test(*bits(300, [0, 0], seed)[:2]) for seed in range(100)]
    assert sum(test.agents_differ for test in found) <= 2
    assert not any(test.several for test in found)
    # What x_1 adds must matter, and not only be significant.
    assert not StartTest(p_first=0.5, p_beyond=1e-9, added=0.001, total=0.1).several
    assert StartTest(p_first=0.5, p_beyond=1e-9, added=0.05, total=0.1).several


def test_fit_and_diagnose_say_that_trajectories_begin_in_several_states(tmp_path):
    x, agent, _ = bits(1000, [0.5, 0.5])
    with pytest.warns(AssumptionWarning, match="begin in several states, or agents .* lost without the first") as told:
        model = CRAFT(CoordinateOracle(), **BOUNDS).fit(x, agent)
    assert len(told) == 1
    found = model.diagnose(x, agent, n_resamples=2)
    assert "several starts" in [finding.kind for finding in found.warnings]
    assert found.verdict != "trust"
    model.save(tmp_path / "model")
    assert craftrl.load(tmp_path / "model").trace_.start == model.trace_.start
    x, agent, _ = bits(500, [0.3, 0.7])
    assert start_test(x, agent).agents_differ
    with pytest.warns(AssumptionWarning, match="The agents' first observations differ"):
        CRAFT(CoordinateOracle(), **BOUNDS).fit(x, agent)


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_starts_that_are_named_are_learned_from_although_a_mimic_fits_as_well(coupling):
    x, agent, s = bits(2000, [0.5, 0.5], seed=1)
    rows = np.random.default_rng(0).permutation(len(x))  # in any order
    model = CRAFT(CoordinateOracle(), coupling=coupling, alpha=1.0, eta=0.2, nu=0.05)
    model.fit(x[rows], agent[rows], start=np.array(["left", "right"])[s[rows, 0]])
    assert list(model.n_states_) == [2, 2, 2, 2]
    assert np.array_equal(model.labels_[:, 0], s[rows, 0])
    assert model.trace_.start is None


def test_starts_that_are_found_are_values_of_the_state_and_one_where_there_is_one():
    x, agent, s = ring(1500, 4)
    x = x.reshape(*x.shape[:2], 2, 4).argmax(axis=-1)  # the cell and the walker's, as integers
    model = CRAFT(CoordinateOracle(n_values=4), **BOUNDS).fit(x, agent, start="find")
    assert accuracy_by_step(model.labels_, s).min() == 1
    x, agent, _ = bits(500, [0, 0])
    assert CRAFT(CoordinateOracle(), **BOUNDS).fit(x, agent, start="find").n_states_[1] == 1


def test_starts_that_mean_nothing_are_refused():
    x, agent, _ = bits(20, [0.5, 0.5])
    with pytest.raises(InvalidDataError, match=r"start must be 'find' or name the start of each of 40 .*\(3,\)"):
        CRAFT(CoordinateOracle(), **BOUNDS).fit(x, agent, start=[0, 1, 0])
    with pytest.raises(
        InvalidParameterError, match=r"start='find' needs a finite class; .*Classifier.* leave start out"
    ):
        CRAFT(DecisionTreeClassifier()).fit(x, agent, start="find")


def test_several_starts_do_no_harm_to_oracles_that_train():
    x, agent, s = ring(600, 4)
    products = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=0.1))
    model = CRAFT(ClassifierOracle(products, repeats=1)).fit(x, agent)
    assert model.n_states_total_ == 4
    assert accuracy_by_step(model.labels_, s).min() > 0.97
