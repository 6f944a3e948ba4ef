"""What any oracle must answer; a new one joins the list."""

import numpy as np
import pytest

from craftrl import CoordinateOracle, FiniteOracle
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, collect
from craftrl.oracles import Mixed

GRID = Grid.from_bounds(1.0, 0.2)
WORLD = BitsExBMDP(horizon=4, n_features=6, seed=0)


def first_bits():
    return FiniteOracle([lambda x, i=i: x[:, i] for i in range(6)])


ORACLES = {
    "coordinates": CoordinateOracle,
    "functions": first_bits,
    "mixed": lambda: Mixed(log_odds=CoordinateOracle(), separation=first_bits(), encoding=CoordinateOracle()),
}


@pytest.fixture(scope="module")
def data():
    return collect(WORLD, [WORLD.persistence_policy(p) for p in (0.3, 0.6, 0.8)], 400, seed=0)


@pytest.fixture(params=ORACLES)
def oracle(request):
    return ORACLES[request.param]()


@pytest.mark.parametrize("n_agents", [2, 3])
@pytest.mark.parametrize("coupling", ["independent", "chain", "posterior"])
def test_log_odds_are_a_bin_for_every_pair(oracle, data, n_agents, coupling):
    tau = data.tau.select(np.flatnonzero(data.tau.agent < n_agents))
    f = oracle.prepare(tau).log_odds(GRID, coupling)
    assert f.bins.shape == (tau.n, 3, n_agents - 1)
    assert f.bins.dtype == np.int16
    assert f.bins.min() >= 0
    assert f.bins.max() < GRID.size
    assert f.loss.shape == (3,)
    assert (f.loss < np.log(n_agents)).all()


def test_separation_knows_equal_from_different(oracle, data):
    tau, s = data.tau, data.truth.states[:, 2]
    half = np.arange(tau.n) % 2
    separation = oracle.prepare(tau).separation(3, 2 * s + half, 4)
    assert separation.loss(0, [1]) > 0.5
    assert separation.loss(3, [2]) > 0.5
    assert separation.loss(0, [2, 3]) < 0.5
    assert separation.loss(2, [0, 1]) < 0.5


def test_encoding_learns_the_labels_it_is_given(oracle, data):
    tau, s = data.tau, data.truth.states[:, 2]
    labels = np.where(np.arange(tau.n) % 5 == 0, -1, s)
    fit = oracle.prepare(tau).encode(3, labels, 2)
    assert (fit.encoder(tau.at(3)) == s).mean() > 0.99
    assert fit.loss < 0.02


def test_binding_does_not_change_the_oracle(oracle, data):
    before = dict(vars(oracle))
    oracle.prepare(data.tau).log_odds(GRID, "independent")
    assert vars(oracle) == before
