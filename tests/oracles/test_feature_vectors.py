"""Feature vectors of any unit and mixture, for networks and for classifiers."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from feature_world import Positions
from scipy.special import log_softmax
from sklearn.tree import DecisionTreeClassifier

from craftrl import NeuralOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.envs import collect
from craftrl.errors import InvalidParameterError
from craftrl.oracles.cross_fitting import calibration
from craftrl.oracles.network.trunks import CODE_SCALE, Decorrelate, VectorTrunk

GRID = Grid.from_bounds(1.0, 0.02)
TREE = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)


def positions(n, horizon=3, size=2, n_walkers=1):
    world = Positions(horizon, size, n_walkers)
    return collect(world, world.policies(2, 1.5), n, seed=0)


def test_decorrelated_features_have_unit_deviation_whatever_their_units_and_mixture():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(4000, 5))
    mixed = plain @ rng.normal(size=(5, 5)) * [1e-3, 1, 1e3, 1, 1] + [0, 5, 0, -5, 0]
    x = torch.from_numpy(np.column_stack([mixed, np.full(4000, 7.0)])).float()
    layer = Decorrelate(6).eval()
    layer.fit(x)
    z = layer(x).double().numpy()
    assert np.allclose(z.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(np.cov(z[:, :5].T), np.eye(5), atol=0.1)
    assert np.ptp(z[:, 5]) == 0


def test_many_features_of_few_rows_are_scaled_alone():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 10)) * 100).float()
    layer = Decorrelate(10).eval()
    layer.fit(x)
    off_diagonal = layer.turn - torch.diag(layer.turn.diagonal())
    assert not off_diagonal.any()
    assert np.allclose(layer(x).numpy().std(axis=0), 1, atol=1e-3)


def test_the_trunk_turns_features_into_codes():
    z = VectorTrunk(3, 40).eval()(torch.randn(7, 3))
    assert z.shape == (7, 40)
    assert torch.allclose(z[:, :20].sum(dim=1), torch.full((7,), CODE_SCALE))
    with pytest.raises(InvalidParameterError, match="dim must be at least 2"):
        VectorTrunk(3, 1)


def test_a_network_learns_from_features_in_units_a_million_times_apart():
    data = positions(500)
    x = np.stack([data.tau.at(h) for h in (1, 2, 3)], axis=1) * [1e-3, 1e-3, 1e3, 1e3]
    scaled = TrajectoryDataset.from_arrays([x[:500], x[500:]])
    loss = NeuralOracle(networks=1).prepare(scaled).log_odds(GRID, "independent").loss
    assert (loss < np.log(2) - 0.04).all()


def test_calibration_finds_factor_and_offsets_and_gives_up_on_noise():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(20000, 3))
    target = (log_softmax(true, axis=1) + rng.gumbel(size=true.shape)).argmax(axis=1)
    scale, shift = calibration(3 * true + [1, 0, 0], target)
    assert scale == pytest.approx(1 / 3, abs=0.02)
    assert shift[0] - shift[1] == pytest.approx(-1 / 3, abs=0.05)
    wrong, shares = calibration(-true, target)
    assert wrong == 0
    assert np.exp(shares).sum() == pytest.approx(1)
