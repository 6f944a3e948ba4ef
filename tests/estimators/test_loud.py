"""Silence means right: what `fit` warns of, and what it does not."""

import numpy as np
import pytest

import craftrl
from craftrl import CRAFT, AssumptionWarning, CoordinateOracle, FiniteOracle
from craftrl.core.encoders import named_states
from craftrl.envs import BitsExBMDP, collect

WORLD = BitsExBMDP(6, 12, seed=0)


def features(model: CRAFT) -> list[int]:
    return [model.encoders_[h].feature for h in range(2, WORLD.H + 1)]


def true_features() -> list[int]:
    return [WORLD.controllable_feature(h) for h in range(2, WORLD.H + 1)]


@pytest.mark.parametrize("sizes", [(4000, 200), (200, 4000), (10000, 200)])
def test_unbalanced_agents_are_right_and_silent(sizes: tuple[int, int]) -> None:
    model = CRAFT(CoordinateOracle()).fit(collect(WORLD, WORLD.paper_policies(), sizes, seed=0).tau)
    assert features(model) == true_features()
    assert list(model.n_states_) == [1, 2, 2, 2, 2, 2]


def test_an_agent_that_never_moves_is_right_and_silent() -> None:
    agents = [WORLD.persistence_policy(0.5), WORLD.persistence_policy(1.0)]
    model = CRAFT(CoordinateOracle()).fit(collect(WORLD, agents, 600, seed=0).tau)
    assert features(model) == true_features()


@pytest.mark.parametrize("sizes", [(1000, 5), (1000, 1), (3, 3), (1, 1)])
def test_a_handful_of_trajectories_is_warned_of(sizes: tuple[int, int]) -> None:
    tau = collect(WORLD, WORLD.paper_policies(), sizes, seed=0).tau
    with pytest.warns(AssumptionWarning, match="no better than chance"):
        model = CRAFT(CoordinateOracle()).fit(tau)
    assert model.diagnose(tau, n_resamples=1).verdict == "do not trust"


def test_one_state_at_most_steps_is_warned_of() -> None:
    tau = collect(WORLD, WORLD.paper_policies(), 600, seed=0).tau
    with pytest.warns(AssumptionWarning, match="CRAFT found one state at h = "):
        CRAFT(CoordinateOracle(), alpha=1.0, eta=0.45, nu=0.1).fit(tau)


def test_states_that_the_class_cannot_read_are_warned_of_and_the_trace_is_saved(tmp_path) -> None:
    """The class has the state at h = 2 and 3 only: from then on it offers noise, which the data contradicts."""

    def encoders(h: int) -> list:
        noise = [lambda x, i=i: x[:, i] for i in range(WORLD.M) if h < 4 or i != WORLD.controllable_feature(h)]
        return noise if h < 4 else noise[:3]

    tau = collect(WORLD, WORLD.paper_policies(), 1500, seed=0).tau
    with pytest.warns(AssumptionWarning, match="No encoder of the class reads the states found at h = "):
        model = CRAFT(FiniteOracle(encoders), alpha=1.0, eta=0.2, nu=0.1).fit(tau)
    assert min(model.trace_.misread()) >= 4
    model.save(tmp_path / "model")
    again = craftrl.load(tmp_path / "model", oracle=FiniteOracle(encoders))
    assert [step.p_closure for step in again.trace_] == [step.p_closure for step in model.trace_]


def test_states_that_the_data_contradicts_are_warned_of() -> None:
    """Three states, of which the last two are told apart by nobody's moves at h = 1: too large an alpha fuses them."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 3000)
    first = np.array([[0.6, 0.2, 0.2], [0.2, 0.45, 0.35]])
    s = np.zeros((6000, 4), dtype=np.int64)
    s[:, 1] = [rng.choice(3, p=first[a]) for a in agent]
    for h in (2, 3):
        forward = rng.random(6000) < np.where(agent == 0, 0.8, 0.3)
        s[:, h] = (s[:, h - 1] + 1 + forward) % 3
    x = np.concatenate([s[..., None], rng.integers(3, size=(6000, 4, 5))], axis=2)
    with pytest.warns(AssumptionWarning, match="The data contradicts the states: observations foretell"):
        model = CRAFT(CoordinateOracle(3), alpha=1.0, eta=0.15, nu=0.1).fit(x, agent)
    assert model.n_states_[2] == 2
    assert model.trace_.contradicted("p_closure")


def test_codes_that_stand_for_no_state_are_read_as_the_commonest() -> None:
    codes = np.array([[0, 2], [0, 1], [1, 1], [-1, -1]])
    assert named_states(codes, [1, 2]).tolist() == [[0, 1], [0, 1], [0, 1], [-1, -1]]


def test_chosen_bounds_are_not_tested_against_the_data_that_chose_them() -> None:
    tau = collect(WORLD, WORLD.paper_policies(), 1000, seed=0).tau
    chosen = CRAFT(CoordinateOracle()).fit(tau).diagnose(tau, n_resamples=2)
    given = CRAFT(CoordinateOracle(), alpha=1.0, eta=0.45, nu=0.1, coupling="chain")
    assert np.isnan(chosen.shares.p_value).all()
    assert chosen.verdict == "trust"
    with pytest.warns(AssumptionWarning):
        told = given.fit(tau).diagnose(tau, n_resamples=2)
    assert any("more rarely than eta = 0.45" in text for text in told.warnings)
