"""`diagnose`: what each check must see, what it must not cry about, and what is made of it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from craftrl import CRAFT, ClassifierOracle, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.diagnostics import Diagnosis, Finding
from craftrl.diagnostics.stability import Stability
from craftrl.diagnostics.state_tests import StateTests
from craftrl.envs import BitsExBMDP, collect
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError
from craftrl.evaluation import accuracy_by_step
from shipped import fitted
from small_worlds import to_the_right, walked
from studies.worlds.violations import collect_leaky

WORLD = BitsExBMDP(6, 16, seed=3)
BOUNDS = {"alpha": math.log(3), "eta": 0.2, "nu": 5 / 32}


def sample(n=1500, seed=0, world=WORLD):
    return collect(world, world.paper_policies(), n, seed).tau


def chained(tau, oracle=None, **changes):
    how = {**BOUNDS, "coupling": "chain", "relabel": False, **changes}
    return fitted(CRAFT(oracle or CoordinateOracle(n_threads=1), **how), tau)


def kinds(found):
    return [finding.kind for finding in found.warnings]


# -- the whole ----------------------------------------------------------------------------------------------------


def test_a_good_model_is_trusted():
    tau = sample()
    found = chained(tau).diagnose(tau, n_resamples=4)
    assert found.verdict == "trust"
    assert found.score > 0.97
    assert found.trusted_until == tau.H
    assert found.warnings == ()
    assert (found.assigned == 1).all()


def test_what_is_short_of_trust_is_said(monkeypatch):
    """A score is not rounded up to what is needed; a warning is named where the score is enough; agents that share no
    state are no ground for trust, whatever the score."""
    tau = sample()
    found = chained(tau).diagnose(tau, n_resamples=2)
    monkeypatch.setattr(Diagnosis, "score", 0.9496)
    assert found.verdict == "check"
    assert found.why.endswith(". That is a score of 0.94; 0.95 is needed for trust.")
    monkeypatch.setattr(Diagnosis, "score", 0.99)
    for kind, numbers, verdict in (
        ("counts differ", {"share": 0.2}, "check"),
        ("agents apart", {"apart": 0.9}, "do not trust"),
    ):
        warned = replace(found, findings=(Finding(kind, (), numbers),))
        assert warned.verdict == verdict
        assert "That is a score of 0.99; 0.95 and no warning are needed for trust." in warned.why


def test_little_data_is_unstable_and_not_trusted_and_diagnosing_leaves_the_model_alone():
    tau = sample(60)
    model = chained(tau)
    before, labels = dict(vars(model)), model.labels_.copy()
    found, again = (model.diagnose(tau, n_resamples=4, seed=7) for _ in range(2))
    assert found.verdict == "do not trust"
    assert found.stable[1:].mean() < 0.8
    assert "unstable" in kinds(found)
    text = str(found)
    assert text == str(again)
    assert text.startswith("do not trust: score")
    assert text.count("\n") == 2 + tau.H + len(found.findings)
    assert all(part in text for part in (found.why, *map(str, found.findings)))
    assert vars(model) == before
    assert np.array_equal(model.labels_, labels)


def test_leaky_policies_are_stable_but_leave_agent_information():
    tau = collect_leaky(WORLD, WORLD.paper_policies(), 1500, 0.2, 0).tau
    found = chained(tau).diagnose(tau, n_resamples=4)
    assert found.stable.mean() > 0.9
    assert found.tests.p_residual.min() < 1e-6
    assert found.verdict != "trust"
    assert "agents told by more" in kinds(found)


def test_without_refits_and_probes_nothing_was_checked():
    tau = sample(200)
    model = chained(tau)
    model.oracle_ = ClassifierOracle(None)  # as if its class were not a finite one
    found = model.diagnose(tau, n_resamples=0)
    assert found.stability is found.tests is None
    assert np.isnan([*found.stable, *found.explained, found.score]).all()
    assert found.verdict == "not checked"
    assert "for this model only refits on resampled trajectories do" in str(found)


def test_probes_alone_give_no_trust():
    """A wrong model that explains the data it was found from: nothing but other data can speak against it."""
    world = BitsExBMDP(4, 10)
    data = collect(world, world.paper_policies(), 100, seed=1)
    model = CRAFT(alpha=1.0, eta=0.2, nu=0.1, coupling="chain").fit(data.tau)
    assert accuracy_by_step(model.transform(data.tau), data.truth.states).min() < 0.9
    found = model.diagnose(data.tau, n_resamples=0)
    assert found.score > 0.99
    assert found.warnings == ()
    assert found.verdict == "check"
    assert "no refits (n_resamples, or --diagnose 10) say whether other data gives the same states" in str(found)


def test_three_agents_and_unequal_lengths():
    world = BitsExBMDP(5, 8, seed=1)
    tau = collect(world, [world.persistence_policy(p) for p in (0.5, 0.75, 0.9)], 1500, 0).tau
    by_agent = [tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)]
    short = TrajectoryDataset.from_arrays(by_agent, np.where(np.arange(tau.n) % 5 == 0, 3, 5))
    found = chained(short, eta=0.1).diagnose(short, n_resamples=2)
    assert found.verdict == "trust"
    assert (found.assigned > 0.99).all()


def test_what_cannot_be_diagnosed_is_refused():
    tau = sample(100)
    model = chained(tau)
    for ask, error, message in (
        (lambda: model.diagnose(tau, n_resamples=-1), InvalidParameterError, "must be an integer from 0 to 10000"),
        (lambda: model.diagnose(tau, n_resamples=2**63), InvalidParameterError, "n_resamples must be an integer"),
        *(
            (lambda seed=seed: model.diagnose(tau, seed=seed), InvalidParameterError, "seed")
            for seed in (-1, None, 0.5)
        ),
        (lambda: CRAFT(**BOUNDS).diagnose(tau), NotFittedError, "CRAFT must be fitted first"),
        (lambda: model.diagnose(tau, probe="bits"), InvalidParameterError, "needs a finite class"),
        (lambda: model.diagnose(sample(30)), InvalidDataError, "must be that which the model was fitted to"),
        (lambda: model.diagnose(sample(100, seed=1)), InvalidDataError, "other data of the same size was given"),
    ):
        with pytest.raises(error, match=message):
            ask()


# -- trust --------------------------------------------------------------------------------------------------------


def record(stability, p_value, n_states):
    H = len(stability)
    ones, steps = np.ones(H - 1), np.zeros(H)
    of_pairs = 0.03 * ones, -ones, 0.01 * ones, np.array(p_value), 0 * ones, ones
    return Diagnosis(
        n_states=np.array(n_states),
        assigned=np.ones(H),
        stability=Stability(np.array([n_states]), np.array([stability])),
        tests=StateTests(*of_pairs, np.full(H, 8), steps + np.inf, steps, steps, 0.0),
    )


def test_a_failed_test_casts_doubt_on_all_later_steps():
    found = record([1.0] * 5, [0.9, 1e-9, 0.9, 0.9], [1, 2, 2, 2, 2])
    assert found.explained == pytest.approx([1, 1, 0.75, 1, 1])
    assert found.trust == pytest.approx([1, 1, 0.75, 0.75, 0.75])
    assert found.trusted_until == 2
    assert found.verdict == "check"


def test_no_state_no_trust_and_a_warning_is_never_trusted():
    assert record([1.0, 1.0, 1.0], [0.9, 0.9], [1, 2, 0]).trust == pytest.approx([1, 1, 0])
    fine = record([1.0, 1.0], [0.9], [1, 2])
    assert fine.verdict == "trust"
    assert replace(fine, findings=(Finding("no state", (2,)),)).verdict == "check"
    assert replace(fine, findings=(Finding("too many states", (2,), severity="note"),)).verdict == "trust"


def test_probes_of_another_class_may_be_given():
    """A model whose class has no encoder of the state from h = 4 on, tested by one that has."""
    tau = sample(2000)
    blind = FiniteOracle(lambda h: [lambda x: 0 * x[:, 0]] if h > 3 else [lambda x: WORLD.phi_star(x, h)])
    model = fitted(CRAFT(blind, **BOUNDS), tau)
    found = model.diagnose(tau, n_resamples=0, probe=FiniteOracle(lambda h: [lambda x: WORLD.phi_star(x, h)]))
    assert found.tests.p_residual[2] < 1e-6
    assert found.explained[3] < 0.4
    assert "agents told by more" in kinds(found)


def test_a_refit_that_finds_no_state_agrees_with_nothing():
    tau = sample(50, world=BitsExBMDP(15, 64, seed=0))
    found = chained(tau, coupling="independent", nu=0.8).diagnose(tau, n_resamples=3).stability
    lost = found.n_states == 0
    assert lost.any()
    assert not lost.all()
    assert (found.agreement[lost] == 0).all()
    assert found.agreement[:, 0] == pytest.approx(1)


def test_states_of_all_steps_keep_their_numbers_at_steps_that_show_some_of_them():
    """A corridor of four places, from the second one: after one step people are in the first or the third."""
    place, agent = walked(400, to_the_right(0.3, 0.7, cells=4), 4, start=1)
    x = np.stack([np.random.default_rng(0).integers(4, size=place.shape), place], axis=-1)
    model = CRAFT(CoordinateOracle(4), stationary=True).fit(x, agent)
    assert max(model.labels_[:, 1]) >= model.n_states_[2]
    assert model.diagnose(x, agent, n_resamples=2).verdict == "trust"
