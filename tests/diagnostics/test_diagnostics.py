"""Diagnostics: what each one must see, and what it must not cry about."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import (
    CRAFT,
    AssumptionWarning,
    ClassifierOracle,
    CoordinateOracle,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
    NotFittedError,
    TrajectoryDataset,
)
from craftrl.core.grid import Grid
from craftrl.core.trace import Cluster, StepTrace, Trace
from craftrl.diagnostics import (
    AgentShares,
    Diagnosis,
    Resamples,
    Residual,
    Subject,
    agent_shares,
    cluster_gaps,
    resample,
    residual_information,
)
from craftrl.diagnostics.resamples import held_out_gain
from craftrl.diagnostics.residual import strongest_dependence
from craftrl.envs import BitsExBMDP, Collection, collect, make_world, turn_taking_policies
from craftrl.envs.violations import collect_leaky
from craftrl.paper import population_assumptions
from craftrl.states.accuracy import accuracy_by_step

WORLD = BitsExBMDP(6, 16, seed=3)
BOUNDS = {"alpha": math.log(3), "eta": 0.2, "nu": 5 / 32}


def sample(n: int = 1500, seed: int = 0) -> Collection:
    return collect(WORLD, WORLD.paper_policies(), n, seed)


def fitted(tau: TrajectoryDataset, coupling: str = "chain", **changes: object) -> CRAFT:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return CRAFT(CoordinateOracle(n_threads=1), **{**BOUNDS, **changes}, coupling=coupling, relabel=False).fit(tau)


def distractor_codes(tau: TrajectoryDataset, steps: range, world: BitsExBMDP = WORLD) -> np.ndarray:
    """The true states, but s*_h XOR e^1, the frozen distractor, at these steps."""
    codes = [world.phi_star(tau.at(h), h) for h in range(1, tau.H + 1)]
    for h in steps:
        codes[h - 1] = tau.at(h)[:, int(np.flatnonzero(world.permutation[h - 1] == 1)[0])]
    codes[0] = np.zeros(tau.n, dtype=np.int64)
    return np.stack(codes, axis=1).astype(np.int64)


# -- the whole ----------------------------------------------------------------------------------------------------


def test_a_good_model_is_trusted() -> None:
    tau = sample().tau
    found = fitted(tau).diagnose(tau, n_resamples=4)
    assert found.verdict == "trust"
    assert found.score > 0.97
    assert found.trusted_until == tau.H
    assert found.warnings == ()
    assert (found.assigned == 1).all()


def test_little_data_is_unstable_and_not_trusted() -> None:
    tau = sample(60).tau
    found = fitted(tau).diagnose(tau, n_resamples=4)
    assert found.verdict == "do not trust"
    assert found.stability[1:].mean() < 0.8
    assert any("Refits agree" in text for text in found.warnings)


def test_leaky_policies_are_stable_but_leave_agent_information() -> None:
    tau = collect_leaky(WORLD, WORLD.paper_policies(), 1500, 0.2, 0).tau
    found = fitted(tau).diagnose(tau, n_resamples=4)
    assert found.stability.mean() > 0.9
    assert found.residual is not None
    assert found.residual.p_value.min() < 1e-6
    assert found.verdict != "trust"
    assert any("beyond the learned states" in text for text in found.warnings)


def test_policies_told_by_noise_alone_pass_every_test_but_that_of_eta() -> None:
    tau = collect_leaky(WORLD, WORLD.paper_policies(), 1500, 1.0, 0).tau
    found = fitted(tau).diagnose(tau, n_resamples=2)
    assert found.score == 1.0
    assert found.shares.share.max() == 0
    assert found.verdict == "check"
    assert len(found.warnings) == 1
    assert "eta" in found.warnings[0]


def test_it_prints_a_table_and_its_warnings() -> None:
    tau = sample(60).tau
    found = fitted(tau, "independent").diagnose(tau, n_resamples=2)
    text = str(found)
    assert text.startswith("do not trust: score")
    assert text.count("\n") == 2 + tau.H + len(found.warnings)
    assert "by the best f_h" in text
    assert all(warning in text for warning in found.warnings)


def test_same_seed_same_diagnosis_and_the_model_is_left_alone() -> None:
    tau = sample(200).tau
    model = fitted(tau, alpha="auto")
    before, labels = dict(vars(model)), model.labels_.copy()
    first, second = (model.diagnose(tau, n_resamples=2, seed=7) for _ in range(2))
    assert str(first) == str(second)
    assert vars(model) == before
    assert np.array_equal(model.labels_, labels)


def test_without_refits_and_probes_nothing_was_checked() -> None:
    tau = sample(200).tau
    found = replace_oracle(fitted(tau)).diagnose(tau, n_resamples=0)
    assert found.resamples is None
    assert found.residual is None
    assert np.isnan(found.stability).all()
    assert np.isnan(found.explained).all()
    assert np.isnan(found.score)
    assert found.verdict == "not checked"
    assert str(found).startswith("not checked: without refits")


def test_probes_alone_give_no_trust() -> None:
    """A wrong model that explains the data it was found from: nothing but other data can speak against it."""
    world, agents = make_world("bits", horizon=4, n_features=10)
    data = collect(world, agents, 100, seed=1)
    model = CRAFT(alpha=1.0, eta=0.2, nu=0.1).fit(data.tau)
    assert accuracy_by_step(model.transform(data.tau), data.truth.states).min() < 0.9
    found = model.diagnose(data.tau, n_resamples=0)
    assert found.score > 0.99
    assert found.warnings == ()
    assert found.verdict == "check"
    assert "refits (n_resamples) would say whether other data gives the same states" in str(found)


def replace_oracle(model: CRAFT) -> CRAFT:
    """The model, as if its class were not a finite one."""
    model.oracle_ = ClassifierOracle(None)
    return model


def test_three_agents_and_unequal_lengths() -> None:
    world = BitsExBMDP(5, 8, seed=1)
    tau = collect(world, turn_taking_policies(world, 3), 1500, 0).tau
    short = TrajectoryDataset(tau.steps, tau.agent, np.where(np.arange(tau.n) % 5 == 0, 3, 5))
    found = fitted(short, eta=0.1).diagnose(short, n_resamples=2)
    assert found.residual is not None
    assert len(found.residual.p_value) == 4
    assert ((found.assigned >= 0) & (found.assigned <= 1)).all()
    assert np.isfinite(found.gap[1:]).any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_resamples": -1}, InvalidParameterError, "n_resamples must be an integer from 0 to 10000"),
        ({"model": CRAFT(CoordinateOracle(), **BOUNDS)}, NotFittedError, "CRAFT must be fitted first"),
        ({"probe": "bits"}, InvalidParameterError, "needs a finite class"),
        ({"x": sample(30, 1).tau}, InvalidDataError, "must be that which the model was fitted to"),
    ],
)
def test_bad_input(change: dict, error: type[Exception], message: str) -> None:
    tau = sample(100).tau
    given = {"model": fitted(tau), "x": tau, **change}
    model = given.pop("model")
    with pytest.raises(error, match=message):
        model.diagnose(**given)


# -- trust --------------------------------------------------------------------------------------------------------


def record(stability: list[float], p_value: list[float], n_states: list[int]) -> Diagnosis:
    H = len(stability)
    return Diagnosis(
        n_states=np.array(n_states),
        assigned=np.ones(H),
        gap=np.full(H, 4.0),
        shares=AgentShares(np.full(H - 1, 0.3), np.ones(H - 1)),
        resamples=Resamples(np.array([n_states]), np.array([stability]), np.zeros((1, H - 1)), np.zeros((1, H - 1))),
        residual=Residual(np.full(H - 1, 0.03), np.full(H - 1, 0.01), np.array(p_value), ((1, 0),) * (H - 1)),
        warnings=(),
    )


def test_a_failed_test_casts_doubt_on_all_later_steps() -> None:
    found = record([1.0] * 5, [0.9, 1e-9, 0.9, 0.9], [1, 2, 2, 2, 2])
    assert found.explained == pytest.approx([1, 1, 0.75, 1, 1])
    assert found.trust == pytest.approx([1, 1, 0.75, 0.75, 0.75])
    assert found.trusted_until == 2
    assert found.verdict == "check"


def test_no_state_no_trust_and_a_warning_is_never_trusted() -> None:
    assert record([1.0, 1.0, 1.0], [0.9, 0.9], [1, 2, 0]).trust == pytest.approx([1, 1, 0])
    fine = record([1.0, 1.0], [0.9], [1, 2])
    assert fine.verdict == "trust"
    assert replace(fine, warnings=("Look here.",)).verdict == "check"


# -- its parts ----------------------------------------------------------------------------------------------------


def test_the_frozen_distractor_shows_at_its_borders_and_nowhere_else() -> None:
    """Late enough for the start to be forgotten, (s_h XOR e^1, s_{h+1} XOR e^1) is as good as the states."""
    world = BitsExBMDP(10, 8, seed=3)
    tau = collect(world, world.paper_policies(), 4000, 0).tau
    oracle = CoordinateOracle(n_threads=1)
    right = residual_information(distractor_codes(tau, range(0), world), tau, oracle)
    assert (right.p_value > 0.01).all()
    wrong = residual_information(distractor_codes(tau, range(6, 9), world), tau, oracle)
    assert list(np.flatnonzero(wrong.p_value < 1e-3) + 1) == [5, 8]
    assert wrong.probe[4] == (6, world.controllable_feature(6))
    assert wrong.nats[4] == pytest.approx(right.known[4], abs=0.005)


def test_probes_of_another_class_may_be_given() -> None:
    data = sample(2000)
    codes = distractor_codes(data.tau, range(0))
    codes[:, 3:] = 0  # all that was known from h = 4 on is lost
    true_bit = FiniteOracle(lambda h: [lambda x: WORLD.phi_star(x, h)])
    found = residual_information(codes, data.tau, true_bit)
    assert found.p_value[2] < 1e-6
    assert found.probe[2] == (4, 0)
    assert found.explained()[2] < 0.4


@pytest.mark.parametrize(("n_cells", "values", "least"), [(4, 2, 8), (40, 8, 0)], ids=["dense", "sparse"])
def test_the_chi_square_test_keeps_its_level(n_cells: int, values: int, least: int) -> None:
    """Where agents and probes are independent within cells, 5% of p-values are below 0.05; with small counts fewer."""
    rng = np.random.default_rng(0)
    hits, n = 0, 400
    for _ in range(400):
        cell, agent, value = rng.integers(n_cells, size=n), rng.integers(2, size=n), rng.integers(values, size=n)
        tables = np.zeros((1, n_cells, 2, values), dtype=np.int64)
        np.add.at(tables, (0, cell, agent, value), 1)
        hits += strongest_dependence(tables)[0] < math.log(0.05)
    assert least <= hits <= 35  # of 400; 35 is more than three standard deviations above 20


def test_information_is_measured_in_nats_and_without_bias() -> None:
    rng = np.random.default_rng(1)
    p = np.array([[0.4, 0.1], [0.2, 0.3]])
    truth = float((p * np.log(p / np.outer(p.sum(1), p.sum(0)))).sum())
    tables = rng.multinomial(500, p.ravel(), size=200).reshape(200, 1, 1, 2, 2)
    estimates = [strongest_dependence(table)[1] for table in tables]
    assert np.mean(estimates) == pytest.approx(truth, rel=0.1)
    independent = rng.multinomial(500, np.full(4, 0.25), size=200).reshape(200, 1, 1, 2, 2)
    assert abs(np.mean([strongest_dependence(table)[1] for table in independent])) < 3e-4


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_names_of_cells_agents_and_values_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tables = rng.integers(0, 9, size=(1, 3, 2, 4))
    renamed = tables[:, rng.permutation(3)][:, :, rng.permutation(2)][..., rng.permutation(4)]
    assert strongest_dependence(renamed) == pytest.approx(strongest_dependence(tables))


def test_shares_of_the_rarest_agent_are_compared_with_eta() -> None:
    data = sample(3000)
    true = agent_shares(data.truth.states, data.tau, 0.2)
    assert (true.p_value > 0.05).all()
    assert true.share[1] == pytest.approx(0.2, abs=0.03)  # (1, 0): 1/4 of A's, 1/16 of B's
    strict = agent_shares(data.truth.states, data.tau, 0.3)
    assert strict.p_value[1] < 1e-6
    assert strict.p_value[4] > 0.05  # by then both agents are everywhere


def step_with(clusters: list[tuple[int, tuple[int, int]]], spectra: np.ndarray) -> StepTrace:
    found = tuple(Cluster(s_pred, (bins,), 1, 0) for s_pred, bins in clusters)
    return StepTrace(1, 1.0, spectra, found, (), 2, 1.0, "ok", 0.0, 0.0)


def test_gaps_are_distances_between_centres_of_successors_of_one_state() -> None:
    spectra = np.array([[0, 8, 8, 0, 0, 10, 0], [0, 0, 0, 4, 0, 0, 0]])
    step = step_with([(0, (0, 3)), (0, (4, 6)), (1, (2, 4))], spectra)
    assert cluster_gaps(Trace(Grid.from_bounds(1.0, 0.2), (step,))) == pytest.approx([np.nan, 3.5], nan_ok=True)
    lonely = step_with([(0, (0, 3)), (1, (2, 4))], spectra)
    assert np.isnan(cluster_gaps(Trace(Grid.from_bounds(1.0, 0.2), (lonely,)))).all()


def test_true_states_gain_on_held_out_agents_and_noise_does_not() -> None:
    data = sample(3000)
    weight = (np.arange(data.tau.n) % 2).astype(np.int64)
    states = data.truth.states
    gain = held_out_gain(states[:, 2], states[:, 3], data.tau, weight)
    stay = np.array([0.5, 0.75])
    jensen_shannon = _entropy(stay.mean()) - np.mean([_entropy(p) for p in stay])
    assert gain == pytest.approx(jensen_shannon, abs=0.01)
    noise = np.random.default_rng(0).integers(0, 40, size=(2, data.tau.n))
    assert held_out_gain(*noise, data.tau, weight) < 0


def _entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


def test_a_refit_that_finds_no_state_agrees_with_nothing() -> None:
    world = BitsExBMDP(15, 64, seed=0)
    tau = collect(world, world.paper_policies(), 50, 0).tau
    model = fitted(tau, "independent", nu=0.8)
    subject = Subject(
        tuple(model.encoders_),
        np.array(list(model.n_states_)),
        model.labels_,
        model.trace_,
        model.bounds_,
        model._refit,
    )
    found = resample(subject, tau, 3, seed=0, probe=model.oracle)
    lost = found.n_states == 0
    assert lost.any()
    assert not lost.all()
    assert (found.agreement[lost] == 0).all()
    assert found.agreement[:, 0] == pytest.approx(1)
    assert np.isfinite(found.best_gain).all()


@pytest.mark.parametrize("K", [3, 4, 6])
def test_eta_compares_two_agents_at_a_time(K):
    """With K agents each has a share of 1/K; that is no sign of a broken eta."""
    world = BitsExBMDP(horizon=8, n_features=16, seed=0)
    policies = turn_taking_policies(world, K)
    data = collect(world, policies, 1500, seed=0)
    shares = agent_shares(data.truth.states, data.tau, population_assumptions(world, policies).eta.value)
    assert shares.p_value.min() > 0.05
