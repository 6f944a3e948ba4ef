"""CRAFT as its users see it: what it learns, and what it records."""

import math

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle, InvalidParameterError
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import accuracy_by_step, encoder_accuracy
from craftrl.progress import watched_by
from shipped import BOUNDS as SMALL
from shipped import ORACLES, rows_of
from shipped import fitted as fitted_quietly

BOUNDS = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}


@pytest.fixture(scope="module")
def toy():
    world = BitsExBMDP(horizon=8, n_features=16, seed=3)
    return world, collect(world, world.paper_policies(), 3000, seed=3)


@pytest.fixture(scope="module")
def fitted(toy):
    return CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(toy[1].tau)


def test_finds_the_controllable_bit_at_every_step(toy, fitted):
    world, data = toy
    assert [fitted.encoders_[h].feature for h in range(2, 9)] == [world.controllable_feature(h) for h in range(2, 9)]
    assert list(fitted.n_states_) == [1] + [2] * 7
    assert fitted.labels_.shape == (data.tau.n, 8)
    assert accuracy_by_step(fitted.labels_, data.truth.states) == pytest.approx(1)
    fresh = collect(world, world.paper_policies(), 500, seed=99)
    assert encoder_accuracy(fitted, fresh.tau.at, fresh.truth.states) == pytest.approx(1)


def test_trace_records_every_decision(toy, fitted):
    assert [step.h for step in fitted.trace_] == list(range(1, 8))
    for h, step in enumerate(fitted.trace_, start=1):
        assert step.threshold == h * BOUNDS["nu"] / (8 * 8) * toy[1].tau.n
        assert step.spectra.shape == (fitted.n_states_[h], fitted.trace_.grid.size)
        assert step.spectra.sum() == (fitted.labels_[:, h - 1] >= 0).sum()
        assert step.assigned == (fitted.labels_[:, h] >= 0).mean()
        assert {c.state for c in step.clusters} == set(range(step.n_states))
        assert step.f_loss < math.log(2)
    assert fitted.trace_.outcomes() == {}
    with pytest.raises(InvalidParameterError, match=r"h must be one of 1..7; h = 8 was given"):
        fitted.trace_[8]


def test_what_was_asked_of_the_oracle_is_counted_and_timed():
    model = fitted_quietly(CRAFT(CoordinateOracle(), **SMALL), *rows_of("bits"))
    asked = {use.question: use.asked for use in model.trace_.oracle_use}
    steps = model.labels_.shape[1]
    assert asked == {
        "log-odds": 1,
        "separation": steps - 1,
        "encoding": steps - 1,
        "reading": 2 * steps - 1,
        "start": 1,
    }
    assert all(use.seconds > 0 for use in model.trace_.oracle_use)
    kind, make = ORACLES["classifier"]
    model = fitted_quietly(CRAFT(make(), alpha=1.0, nu=0.1, stationary=False), *rows_of(kind))
    assert model.trace_.oracle_use[0].asked == 3  # eta is not known, and changes the grid
    assert "of 3 settings tried" in model.choices_[0].why


def test_a_fit_can_be_watched_and_does_not_change_by_it(toy, fitted):
    tau, seen = toy[1].tau, []
    with watched_by(lambda what, h, trained: seen.append((what, h))):
        watched = CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(tau)
    assert seen[0] == ("run", None)
    assert ("log-odds", None) in seen
    assert [h for what, h in seen if what == "encoding"] == list(range(2, tau.H + 1))
    assert np.array_equal(fitted.labels_, watched.labels_)


def test_relabelling_reads_labels_off_the_encoders():
    """Also where an encoder has a value that stands for no state."""
    world = BitsExBMDP(horizon=6, n_features=12, seed=0)
    tau = collect(world, world.paper_policies(), 600, seed=0).tau
    model = fitted_quietly(CRAFT(CoordinateOracle(), alpha=1.0, eta=0.45, nu=0.1, relabel=True), tau)
    codes = [model.encode(tau.at(h), h) for h in range(2, 7)]
    assert any(code.max() >= n for code, n in zip(codes, list(model.n_states_)[1:]))
    for h, code in enumerate(codes, start=2):
        assert np.array_equal(model.labels_[:, h - 1], np.where(code < model.n_states_[h], code, -1))


def test_three_agents_see_what_two_cannot():
    world = BitsExBMDP(horizon=6, n_features=8, seed=0)
    stay = world.persistence_policy
    policies = [stay(0.5), stay(0.5), stay(0.8)]  # agents 0 and 1 act alike
    bounds = {"alpha": 1.0, "eta": 0.15, "nu": 0.1}
    model = CRAFT.paper(CoordinateOracle(), **bounds).fit(collect(world, policies, 4000, seed=0).tau)
    assert [model.encoders_[h].feature for h in range(2, 7)] == [world.controllable_feature(h) for h in range(2, 7)]
    assert model.trace_[2].spectra.ndim == 3
    blind = CRAFT.paper(CoordinateOracle(), **bounds)
    fitted_quietly(blind, collect(world, policies[:2], 4000, seed=0).tau)
    assert max(blind.n_states_) == 1
