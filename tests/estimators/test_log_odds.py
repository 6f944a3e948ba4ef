"""Log-odds of new trajectories: what CRAFT read its states off, calibrated, and saved with the model."""

import numpy as np
import pytest
from feature_world import feature_data
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import craftrl
from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, InvalidDataError, InvalidParameterError
from craftrl.core.grid import Grid
from craftrl.core.oracle import LogOdds
from craftrl.oracles.finite import PreparedCounting
from craftrl.oracles.learned import to_bins
from shipped import BOUNDS, ORACLES, data, fitted, rows_of

GRID = Grid.from_bounds(1.0, 0.05)
NEEDS_ORACLE = {"functions", "functions of each step", "network with a trunk of one's own"}


@pytest.mark.parametrize("name", ORACLES)
def test_every_oracle_gives_log_odds_of_new_data_and_a_saved_model_the_same(name, tmp_path):
    kind, make = ORACLES[name]
    x, agent = rows_of(kind)
    oracle = make()
    model = fitted(CRAFT(oracle, **BOUNDS), x, agent)
    f = model.log_odds(x[:30])
    assert f.shape == (30, x.shape[1] - 1, 1)
    assert np.isfinite(f).all()
    assert np.allclose(model.log_odds(x[5:7]), f[5:7], atol=1e-5)
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", **({"oracle": oracle} if name in NEEDS_ORACLE else {}))
    assert np.array_equal(again.log_odds(x[:30]), f)


@pytest.mark.parametrize("name", ["coordinates", "functions of each step", "network of vectors", "network of images"])
def test_on_the_data_that_was_fitted_they_are_what_clusters_were_read_off(name):
    kind, make = ORACLES[name]
    x, _ = rows_of(kind)
    oracle = make()
    f = oracle.prepare(data(kind).tau).log_odds(GRID, "independent")
    assert (to_bins(f.f(x), GRID) == f.bins).mean() > 0.999  # a network sees batches of another size


def products():
    return ClassifierOracle(
        make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=0.1, max_iter=200))
    )


def trained_network():
    from craftrl import NeuralOracle, Training

    training = Training(epochs=16, batch=32, lr=5e-3, device="cpu")
    return NeuralOracle(dim=32, networks=1, training=training)


@pytest.mark.parametrize("oracle", [products, trained_network])
def test_they_are_calibrated_on_new_data(oracle):
    """No factor makes them much better: agents are as likely as the log-odds say."""
    model = fitted(CRAFT(oracle(), alpha=1.0, eta=0.02, nu=0.01), feature_data(800).tau)
    test = feature_data(1000, seed=1).tau
    f = model.log_odds(test)[..., 0]
    sign = np.where(test.agent == 0, 1.0, -1.0)[:, None]

    def loss(factor):
        return np.logaddexp(0, -sign * factor * f).mean()

    best = minimize_scalar(loss, bounds=(0.1, 10), method="bounded")
    assert 0.6 < best.x < 1.6
    assert loss(1.0) < best.fun + 0.005
    assert loss(1.0) < np.log(2) - 0.1


def test_a_pair_of_values_that_was_never_seen_says_what_the_agents_shares_say():
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=(300, 2, 1))
    x[:, 0] = 0
    agent = np.repeat([0, 1], [200, 100])
    model = fitted(CRAFT(CoordinateOracle(3), **BOUNDS), x, agent)
    assert model.log_odds(np.array([[[0], [2]]])) == pytest.approx(np.log(2))


def test_shorter_trajectories_have_none_where_they_are_over():
    x, agent = rows_of("bits")
    model = fitted(CRAFT(CoordinateOracle(), **BOUNDS), x, agent)
    whole, short = model.log_odds(x[:3]), model.log_odds([x[0], x[1][:2], x[2][:3]])
    assert np.array_equal(short[0], whole[0])
    assert np.array_equal(np.isnan(short[:, :, 0]), [[0, 0, 0], [0, 1, 1], [0, 0, 1]])
    assert np.array_equal(model.log_odds(x[:3, :3])[:, :2], whole[:, :2])


def test_trajectories_unlike_those_fitted_are_refused():
    x, agent = rows_of("bits")
    model = fitted(CRAFT(CoordinateOracle(), **BOUNDS), x, agent)
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

    x, agent = rows_of("bits")
    model = fitted(CRAFT(Forgetful(), **BOUNDS), x, agent)
    assert model.trace_[1].chance == pytest.approx(np.log(2))  # known without the oracle's help
    assert model.trace_[1].p_value is None
    with pytest.raises(InvalidParameterError, match=r"keeps its log-odds; Forgetful\(\) keeps none"):
        model.log_odds(x)
