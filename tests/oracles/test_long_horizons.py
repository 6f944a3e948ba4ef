"""A classifier on feature vectors of many steps: one classifier for all steps learns what h means."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.evaluation import accuracy_by_step
from craftrl.oracles.classifier import ClassifierOracle

PRODUCTS = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression())


def two_states(n, horizon, seed=0):
    """One agent acts at random, the other repeats the state three times out of four; beside the state a lazy bit."""
    rng = np.random.default_rng(seed)
    moved = rng.random((2, n, horizon - 1)) < np.array([0.5, 0.25]).reshape(2, 1, 1)
    state = np.concatenate([np.zeros((2, n, 1), dtype=int), moved.cumsum(axis=2) % 2], axis=2)
    lazy = ((rng.random(state.shape) < 0.1).cumsum(axis=2) + rng.integers(2, size=(2, n, 1))) % 2
    x = np.stack([state, lazy], axis=3) + rng.normal(0, 0.15, (*state.shape, 2))
    return TrajectoryDataset.from_arrays(list(x)), state.reshape(2 * n, horizon)


@pytest.fixture(scope="module")
def long():
    return two_states(150, 40)


def test_states_are_as_right_at_the_end_of_long_trajectories_as_at_the_beginning(long):
    tau, state = long
    model = CRAFT(ClassifierOracle(PRODUCTS, folds=2, repeats=1)).fit(tau)
    assert model.n_states_total_ == 2
    assert (accuracy_by_step(model.labels_, state) > 0.95).all()


def test_the_step_is_a_feature_that_linear_classifiers_can_take(long):
    """Products with h up to H kept the solver from converging, of which scikit-learn warned at every clone."""
    prepared = ClassifierOracle(PRODUCTS, folds=2, repeats=1).prepare(long[0])
    f = prepared.log_odds(Grid.from_bounds(1.0, 0.2), "independent")
    x = np.stack([long[0].at(h) for h in range(1, 41)], axis=1)
    assert np.corrcoef(f.f(x)[:, 30, 0], f.bins[:, 30, 0])[0, 1] > 0.95  # new data is asked about in the same way
