"""CRAFT as its users see it: what it learns, what it records, what it refuses."""

import math
import warnings

import numpy as np
import pytest

from craftrl import (
    CRAFT,
    AssumptionWarning,
    CoordinateOracle,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    TrajectoryDataset,
)
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import accuracy_by_step, encoder_accuracy
from craftrl.progress import watched_by

BOUNDS = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}


@pytest.fixture(scope="module")
def toy():
    world = BitsExBMDP(horizon=8, n_features=16, seed=3)
    return world, collect(world, world.paper_policies(), 3000, seed=3)


@pytest.fixture(scope="module")
def fitted(toy):
    return CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(toy[1].tau)


def test_finds_the_controllable_bit_at_every_step(toy, fitted):
    world, _ = toy
    assert [fitted.encoders_[h].feature for h in range(2, 9)] == [world.controllable_feature(h) for h in range(2, 9)]
    assert list(fitted.n_states_) == [1] + [2] * 7


def test_labels_are_the_true_states_up_to_relabelling(toy, fitted):
    _, data = toy
    assert fitted.labels_.shape == (data.tau.n, 8)
    assert accuracy_by_step(fitted.labels_, data.truth.states) == pytest.approx(1)


def test_encodes_observations_that_it_has_not_seen(toy, fitted):
    world, _ = toy
    fresh = collect(world, world.paper_policies(), 500, seed=99)
    assert encoder_accuracy(fitted, fresh.tau.at, fresh.truth.states) == pytest.approx(1)


def test_trace_records_every_decision(toy, fitted):
    _, data = toy
    assert len(fitted.trace_) == 7
    for h in range(1, 8):
        step = fitted.trace_[h]
        assert step.h == h
        assert step.threshold == h * BOUNDS["nu"] / (8 * 8) * data.tau.n
        assert step.spectra.shape == (fitted.n_states_[h], fitted.trace_.grid.size)
        assert step.spectra.sum() == (fitted.labels_[:, h - 1] >= 0).sum()
        assert step.assigned == (fitted.labels_[:, h] >= 0).mean()
        assert {c.state for c in step.clusters} == set(range(step.n_states))
        assert step.f_loss < math.log(2)
    assert fitted.trace_.outcomes() == {}
    assert [step.h for step in fitted.trace_] == list(range(1, 8))
    with pytest.raises(InvalidParameterError, match=r"h must be one of 1..7; h = 8 was given"):
        fitted.trace_[8]


def test_fit_changes_no_parameter_and_keeps_no_data(toy):
    model = CRAFT.paper(CoordinateOracle(), alpha=2.0, eta=0.2, nu=0.1)
    model.fit(toy[1].tau)
    assert (model.alpha, model.bounds_.alpha, model.trace_.grid.alpha) == (2.0, 2.0, 1.0)
    assert not any(isinstance(value, TrajectoryDataset) for value in vars(model).values())


def test_too_little_data_is_a_result_and_one_warning():
    world = BitsExBMDP(horizon=10, n_features=32, seed=0)
    data = collect(world, world.paper_policies(), 20, seed=0)
    with pytest.warns(AssumptionWarning, match="too many states at h = ") as caught:
        model = CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(data.tau)
    assert len(caught) == 1
    assert any("coupling='markov'" in str(finding) for finding in model.trace_.findings)
    assert "too many states" in model.trace_.outcomes()
    assert model.encode(data.tau.at(5), 5).shape == (40,)


@pytest.mark.parametrize(("n_agents", "first"), [(2, 4), (3, 3)])
def test_no_state_stays_no_state(n_agents, first):
    """So few trajectories in so many bins that none of them is heavy; with three agents bins lie in a plane."""
    rng = np.random.default_rng(0)
    tables = rng.integers(6, size=(4, 36))
    tau = TrajectoryDataset.from_arrays([rng.integers(36, size=(40, 5)) for _ in range(n_agents)])
    oracle = FiniteOracle([lambda x, table=table: table[x] for table in tables], n_values=6)
    with pytest.warns(AssumptionWarning, match=f"no state at h = {first}-5"):
        model = CRAFT.paper(oracle, alpha=0.2, eta=0.01, nu=1.0).fit(tau)
    assert list(model.n_states_)[first - 1 :] == [0] * (6 - first)
    assert [model.trace_[h].outcome for h in range(first - 1, 5)] == ["no state"] * (6 - first)
    assert (model.labels_[:, first - 1 :] == -1).all()
    assert model.encoders_[5].index == 0


def test_relabelling_leaves_no_trajectory_behind():
    world = BitsExBMDP(horizon=12, n_features=32, seed=1)
    data = collect(world, world.paper_policies(), 150, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        model = CRAFT(CoordinateOracle(), **BOUNDS, coupling="chain", relabel=True).fit(data.tau)
    for h in range(2, 13):
        encoded = model.encode(data.tau.at(h), h)
        assert np.array_equal(model.labels_[:, h - 1], np.where(encoded < model.n_states_[h], encoded, -1))


def test_given_bounds_are_kept_when_another_is_automatic(toy):
    model = CRAFT(CoordinateOracle(), alpha=0.7, eta=0.15, nu="auto").fit(toy[1].tau)
    assert (model.bounds_.alpha, model.bounds_.eta) == (0.7, 0.15)


def test_three_agents_see_what_two_cannot():
    world = BitsExBMDP(horizon=6, n_features=8, seed=0)
    stay = world.persistence_policy
    policies = [stay(0.5), stay(0.5), stay(0.8)]  # agents 0 and 1 act alike
    data = collect(world, policies, 4000, seed=0)
    model = CRAFT.paper(CoordinateOracle(), alpha=1.0, eta=0.15, nu=0.1).fit(data.tau)
    assert [model.encoders_[h].feature for h in range(2, 7)] == [world.controllable_feature(h) for h in range(2, 7)]
    assert model.trace_[2].spectra.ndim == 3
    alike = collect(world, policies[:2], 4000, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        blind = CRAFT.paper(CoordinateOracle(), alpha=1.0, eta=0.15, nu=0.1).fit(alike.tau)
    assert max(blind.n_states_) == 1


# -- bad input ------------------------------------------------------------------------------------------------


def test_encode_before_fit():
    with pytest.raises(NotFittedError, match=r"CRAFT must be fitted first; call fit\(x, agent\)"):
        CRAFT.paper(CoordinateOracle(), **BOUNDS).encode(np.zeros((1, 4)), 2)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.full((3, 16), 7), r"integers in 0..1; 7..7 of dtype int64 were given"),
        (np.full((3, 16), -1), r"integers in 0..1; -1..-1 of dtype int64 were given"),
        (np.full((3, 16), 0.5), r"integers in 0..1; 0.5..0.5 of dtype float64 were given"),
        (np.uint8(1), r"must have shape \(n, 16\).* shape \(\) was given"),
    ],
)
def test_observations_that_fit_would_refuse(fitted, x, message):
    with pytest.raises(InvalidDataError, match=message):
        fitted.encode(x, 2)


def test_an_empty_batch_has_no_states(fitted):
    assert fitted.encode(np.zeros((0, 16), dtype=np.uint8), 3).shape == (0,)


def test_observations_of_another_shape(fitted):
    with pytest.raises(InvalidDataError, match=r"must have shape \(n, 16\).* shape \(16,\) was given"):
        fitted.encode(np.zeros(16, dtype=np.uint8), 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 0}, "alpha must be a positive number; alpha = 0 was given"),
        ({"eta": 0.6}, r"eta must lie in \(0, 1/2\]; eta = 0.6 was given"),
        ({"nu": 1.5}, r"nu must lie in \(0, 1\]; nu = 1.5 was given"),
        ({"alpha": None}, "alpha must be a positive number; alpha = None was given"),
        ({"alpha": 1e-6}, "fewer than 32768 bins; alpha = 1e-06 and eta = 0.2 ask for 11090355; raise alpha or eta"),
        ({"nu": "automatic"}, "nu must be a number or 'auto'; 'automatic' was given"),
        (
            {"coupling": "loose"},
            "coupling must be one of 'auto', 'independent', .*; 'loose' was given",
        ),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(toy, change, message):
    with pytest.raises(InvalidParameterError, match=message):
        CRAFT(CoordinateOracle(), **(BOUNDS | change)).fit(toy[1].tau)


def test_one_agent_alone_is_refused():
    with pytest.raises(InvalidDataError, match="at least two agents; those of 1 were given"):
        CRAFT.paper(CoordinateOracle(), **BOUNDS).fit([np.zeros((2, 2, 2))])


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.full(len(x), 2), r"an integer in 0..1 \(n_values = 2\) .* encoder 1 returned 2..2"),
        (lambda x: np.full(len(x), 0.5), r"encoder 1 returned 0.5..0.5 values, float64"),
        (lambda x: x, r"encoder 1 returned .* of shape \(\d, 2\)"),
    ],
)
def test_encoders_with_other_values_are_refused(function, message):
    tau = TrajectoryDataset.from_arrays([np.zeros((3, 2, 2), dtype=int)] * 2)
    with pytest.raises(InvalidDataError, match=message):
        CRAFT.paper(FiniteOracle([lambda x: x[:, 0], function]), **BOUNDS).fit(tau)


def test_coordinates_out_of_range_are_refused():
    tau = TrajectoryDataset.from_arrays([np.full((3, 2, 2), 7)] * 2)
    with pytest.raises(InvalidDataError, match=r"Coordinates must lie in 0..1; 7..7 were given"):
        CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(tau)


def test_an_empty_class_is_refused():
    tau = TrajectoryDataset.from_arrays([np.zeros((3, 2, 2), dtype=int)] * 2)
    with pytest.raises(InvalidParameterError, match=r"a list of functions, one at least, .*; \[\] was given for h = 1"):
        CRAFT.paper(FiniteOracle([]), **BOUNDS).fit(tau)
    with pytest.raises(InvalidParameterError, match="n_values must be an integer from 2 to 32767; 1 was given"):
        CRAFT.paper(CoordinateOracle(n_values=1), **BOUNDS).fit(tau)


def test_a_fit_can_be_watched_and_does_not_change_by_it(toy, fitted):
    tau = toy[1].tau
    seen = []
    with watched_by(lambda what, h: seen.append((what, h))):
        watched = CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(tau)
    assert seen[0] == ("run", None)
    assert ("log-odds", None) in seen
    assert [h for what, h in seen if what == "encoding"] == list(range(2, tau.H + 1))
    before = len(seen)
    CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(tau)
    assert len(seen) == before
    assert np.array_equal(fitted.labels_, watched.labels_)


def test_labels_last_to_the_end_of_long_trajectories_unless_relabelling_is_turned_off():
    """By default; without it, a trajectory that falls between the clusters of one step has no state from then on."""
    world = BitsExBMDP(150, 3, seed=0)
    tau = collect(world, world.paper_policies(), 400, seed=0).tau
    model = CRAFT(alpha=1.0, eta=0.2, nu=0.1, coupling="chain").fit(tau)
    assert (model.labels_ >= 0).mean() > 0.99
    assert all(model.n_states_[h] == 2 for h in range(2, 151))
    with pytest.warns(AssumptionWarning, match=r"At h = \d+-150 trajectories have no state, .* relabel=True") as said:
        lost = CRAFT(alpha=1.0, eta=0.2, nu=0.1, coupling="chain", relabel=False).fit(tau)
    assert said[0].filename == __file__
    assert (lost.labels_[:, -1] >= 0).mean() < 0.5
