"""Log-odds of new trajectories: what CRAFT read its states off, calibrated; saved models keep them (test_saving)."""

import numpy as np
import pytest
from feature_world import feature_data
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, InvalidDataError, InvalidParameterError
from craftrl.core.grid import Grid
from craftrl.core.oracle import LogOdds
from craftrl.oracles.finite import PreparedCounting
from craftrl.oracles.learned import to_bins
from shipped import BOUNDS, ORACLES, data, fitted, rows_of

GRID = Grid.from_bounds(1.0, 0.05)


@pytest.fixture(scope="module")
def model():
    return fitted(CRAFT(CoordinateOracle(), **BOUNDS), *rows_of("bits"))


@pytest.mark.parametrize("name", ["coordinates", "functions of each step", "classifier", "network of vectors"])
def test_new_data_has_the_log_odds_of_the_same_data_fitted(name):
    kind, make = ORACLES[name]
    x, tau = rows_of(kind)[0], data(kind).tau
    found = make().prepare(tau).log_odds(GRID, "independent")
    f = found.f(x)
    assert f.shape == (tau.n, tau.H - 1, 1)
    assert np.isfinite(f).all()
    assert np.allclose(found.f(x[5:7]), f[5:7], atol=1e-5)
    if not name.startswith("classifier"):  # whose own log-odds come from clones that did not see the trajectory
        assert (to_bins(f, GRID) == found.bins).mean() > 0.99  # a network sees batches of another size


def products():
    return ClassifierOracle(
        make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=0.1, max_iter=200))
    )


def trained_network():
    from craftrl import NeuralOracle, Training

    return NeuralOracle(dim=32, networks=1, training=Training(epochs=16, batch=32, lr=5e-3, device="cpu"))


@pytest.mark.parametrize("oracle", [products, pytest.param(trained_network, marks=pytest.mark.slow)])
def test_they_are_calibrated_on_new_data(oracle):
    """No factor makes them much better: agents are as likely as the log-odds say."""
    test = feature_data(1000, seed=1).tau
    f = oracle().prepare(feature_data(800).tau).log_odds(GRID, "independent").f
    f = f(np.stack([test.at(h) for h in range(1, 5)], axis=1))[..., 0]
    sign = np.where(test.agent == 0, 1.0, -1.0)[:, None]

    def loss(factor):
        return np.logaddexp(0, -sign * factor * f).mean()

    best = minimize_scalar(loss, bounds=(0.1, 10), method="bounded")
    assert 0.6 < best.x < 1.6
    assert loss(1.0) < best.fun + 0.005
    assert loss(1.0) < np.log(2) - 0.1


def test_a_pair_of_values_that_was_never_seen_says_what_the_agents_shares_say():
    x = np.random.default_rng(0).integers(2, size=(300, 2, 1)) * [[0], [1]]
    model = fitted(CRAFT(CoordinateOracle(3), **BOUNDS), x, np.repeat([0, 1], [200, 100]))
    assert model.log_odds(np.array([[[0], [2]]])) == pytest.approx(np.log(2))


def test_shorter_trajectories_have_none_where_they_are_over_and_longer_ones_are_refused(model):
    x = rows_of("bits")[0]
    whole, short = model.log_odds(x[:3]), model.log_odds([x[0], x[1][:2], x[2][:3]])
    assert np.array_equal(short[0], whole[0])
    assert np.array_equal(np.isnan(short[:, :, 0]), [[0, 0, 0], [0, 1, 1], [0, 0, 1]])
    assert np.array_equal(model.log_odds(x[:3, :3])[:, :2], whole[:, :2])
    with pytest.raises(InvalidDataError, match=r"2 to 4 steps of shape \(6,\), as those fitted; 8 of shape \(6,\)"):
        model.log_odds(np.tile(x, (1, 2, 1)))
    with pytest.raises(InvalidDataError, match=r"4 of shape \(5,\) were given"):
        model.log_odds(x[..., :5])


def test_an_oracle_that_keeps_none_is_named():
    class Prepared(PreparedCounting):
        def log_odds(self, grid, coupling):
            f = super().log_odds(grid, coupling)
            return LogOdds(f.bins, f.loss)

    class Forgetful(CoordinateOracle):
        def prepare(self, tau):
            return Prepared(self, tau)

    model = fitted(CRAFT(Forgetful(), **BOUNDS), *rows_of("bits"))
    assert model.trace_[1].chance == pytest.approx(np.log(2))  # known without the oracle's help
    assert model.trace_[1].p_value is None
    with pytest.raises(InvalidParameterError, match=r"keeps its log-odds; Forgetful\(\) keeps none"):
        model.log_odds(rows_of("bits")[0])
