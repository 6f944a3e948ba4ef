"""Log-odds that are no better than chance at most steps are a failure, and `fit` says so; single steps are none."""

import math

import numpy as np
import pytest
from feature_world import feature_data
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import craftrl
from craftrl import CRAFT, AssumptionWarning, ClassifierOracle, CoordinateOracle, TrajectoryDataset
from craftrl.envs import BitsExBMDP, collect
from shipped import fitted

BOUNDS = {"alpha": math.log(3), "eta": 0.2, "nu": 5 / 32}
LOOSE = {"alpha": 1.0, "eta": 0.02, "nu": 0.01}


def products():
    """A classifier that sees how two observations go together."""
    return ClassifierOracle(
        make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=0.1, max_iter=200))
    )


def network():
    from craftrl import NeuralOracle, Training

    training = Training(epochs=6, batch=32, lr=5e-3, device="cpu")
    return NeuralOracle(dim=16, networks=1, training=training)


def arrays(tau):
    return np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1), tau.agent


def shuffled(agent):
    return np.random.default_rng(0).permutation(agent)


def bits(n=300, seed=0, H=6):
    world = BitsExBMDP(horizon=H, n_features=16, seed=seed)
    return arrays(collect(world, world.paper_policies(), n, seed=seed).tau)


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_coordinates_warn_where_labels_say_nothing_and_are_silent_where_agents_differ(coupling):
    x, agent = bits()
    right = CRAFT(CoordinateOracle(), coupling=coupling, **BOUNDS).fit(x, agent)  # warnings are errors
    assert not right.trace_.guesses
    with pytest.warns(AssumptionWarning, match="no better than chance at h = 1-5, by a test at each step") as caught:
        CRAFT(CoordinateOracle(), coupling=coupling, **BOUNDS).fit(x, shuffled(agent))
    assert len(caught) == 1
    assert "more trajectories, more different agents, longer training" in str(caught[0].message)


def test_one_policy_for_all_agents_warns():
    world = BitsExBMDP(horizon=6, n_features=16, seed=0)
    alike = [world.paper_policies()[0]] * 2
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        CRAFT(CoordinateOracle(), **BOUNDS).fit(collect(world, alike, 300, seed=0).tau)


@pytest.mark.parametrize(("oracle", "n"), [(products, 150), (network, 400)])
def test_learned_log_odds_warn_where_labels_say_nothing_and_are_silent_where_agents_differ(oracle, n):
    x, agent = arrays(feature_data(n).tau)
    right = CRAFT(oracle(), **LOOSE).fit(x, agent)
    assert right.trace_.at_chance() == []
    assert all(step.f_loss < step.chance for step in right.trace_)
    assert all(step.chance == pytest.approx(math.log(2), abs=0.02) for step in right.trace_)
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        lost = CRAFT(oracle(), **LOOSE).fit(x, shuffled(agent))
    assert lost.diagnose(x, agent, n_resamples=0).verdict == "do not trust"
    assert "log-odds at chance" in lost.summary()
    assert "log-odds at chance" not in right.summary()


def test_a_few_steps_at_which_agents_act_alike_are_no_failure():
    """From h = 4 on the agents do the same, and from h = 5 on nothing of what differed is left: two of six steps."""
    rng = np.random.default_rng(1)
    agent = np.repeat([0, 1], 1000)
    moves = np.where(np.arange(6) < 3, np.where(agent == 0, 0.2, 0.7)[:, None], 0.5)
    s = np.concatenate([np.zeros((2000, 1)), rng.random((2000, 6)) < moves], axis=1).astype(int)
    noise = rng.integers(2, size=(2000, 7, 7))
    with pytest.warns(AssumptionWarning, match="No encoder of the class reads") as told:  # the states found there
        model = CRAFT(CoordinateOracle(), alpha=1.0, eta=0.1, nu=0.1).fit(
            np.concatenate([s[..., None], noise], 2), agent
        )
    assert "chance" not in str(told[0].message)
    assert model.trace_.at_chance() == [5, 6]
    assert model.summary().count("log-odds at chance") == 2


def test_a_saved_model_keeps_what_its_log_odds_are_worth(tmp_path):
    x, agent = bits(H=4)
    model = fitted(CRAFT(CoordinateOracle(), **BOUNDS), x, agent)
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model")
    assert again.summary() == model.summary()
    assert [step.p_value for step in again.trace_] == [step.p_value for step in model.trace_]
    assert [str(finding) for finding in again.trace_.findings] == [str(finding) for finding in model.trace_.findings]


def test_a_chain_that_finds_the_best_of_many_pairs_in_noise_is_not_trusted():
    """Where the pair before says nothing, both encoders of a pair were free: the test must pay for both choices."""
    x = np.random.default_rng(38).integers(0, 2, (2, 100, 4, 64), dtype=np.uint8)
    tau = TrajectoryDataset.from_arrays(list(x))
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        model = CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(tau)
    assert model.diagnose(tau, n_resamples=0).verdict == "do not trust"
