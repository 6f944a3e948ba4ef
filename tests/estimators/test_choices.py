"""What is left to the library: the oracle, bounds from nine settings of which the data takes one, and how it reads."""

from itertools import combinations

import numpy as np
import pytest

from craftrl import (
    CRAFT,
    ClassifierOracle,
    CoordinateOracle,
    FiniteOracle,
    InvalidDataError,
    InvalidParameterError,
    NeuralOracle,
    TrajectoryDataset,
)
from craftrl.core.craft import Bounds
from craftrl.envs import BitsExBMDP, collect
from craftrl.estimators import choices
from craftrl.estimators.bounds import agents_nll, candidate_bounds, chained_nll
from craftrl.estimators.choices import choose_oracle, describe
from craftrl.evaluation import accuracy_by_step, population_accuracy
from craftrl.oracles.base import Choice
from shipped import BOUNDS, fitted, rows_of, tree
from small_worlds import flips, walked
from studies.worlds.lock import LockExBMDP

RNG = np.random.default_rng(0)
BITS = RNG.integers(2, size=(8, 3, 5))
FLOATS = RNG.random((8, 3, 5))
IMAGES = RNG.integers(256, size=(8, 3, 6, 6, 3), dtype=np.uint8)


def tau_of(x):
    return TrajectoryDataset.from_arrays([x[:4], x[4:]])


# -- the oracle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (BITS, CoordinateOracle(2)),
        (BITS.astype(bool), CoordinateOracle(2)),
        (BITS * 0, CoordinateOracle(2)),
        (BITS * 4, CoordinateOracle(5)),
        (np.minimum(IMAGES, 15), NeuralOracle()),  # in an image the state is a place, and no single pixel
        (BITS * 16, NeuralOracle()),  # too many values to be states: feature vectors
        (-BITS, NeuralOracle()),
        (FLOATS, NeuralOracle()),
        (IMAGES / 255, NeuralOracle()),
    ],
)
def test_auto_takes_the_oracle_that_the_observations_ask_for(x, expected):
    oracle, (choice,) = choose_oracle("auto", tau_of(x))
    assert repr(oracle) == repr(choice.value) == repr(expected)
    assert choice.parameter == "oracle"
    assert choice.why.endswith(".")


def test_names_and_what_the_user_gives_stand_for_oracles(monkeypatch):
    for name, kind in {
        "coordinates": CoordinateOracle,
        "classifier": ClassifierOracle,
        "network": NeuralOracle,
    }.items():
        assert isinstance(choose_oracle(name, tau_of(BITS))[0], kind)
    given = CoordinateOracle(4)
    assert choose_oracle(given, tau_of(BITS)) == (given, ())
    classifier = tree()
    assert choose_oracle(classifier, tau_of(FLOATS))[0].classifier is classifier
    monkeypatch.setattr(choices, "find_spec", lambda name: None)  # without torch
    oracle, (choice,) = choose_oracle("auto", tau_of(FLOATS))
    assert type(oracle.classifier).__name__ == "HistGradientBoostingClassifier"
    assert "boosted trees" in choice.why


@pytest.mark.parametrize(
    ("given", "x", "error", "message"),
    [
        ("auto", IMAGES[..., 0], InvalidDataError, r"observations of shape \(6, 6\) were given; add a channel axis"),
        ("auto", FLOATS[..., 0], InvalidDataError, r"observations of shape \(\) were given"),
        ("coordinates", FLOATS, InvalidDataError, r"needs integers in 0..15; observations of dtype float64"),
        ("coordinates", IMAGES, InvalidDataError, r"integers beyond that were given; convert whole"),
        ("tree", BITS, InvalidParameterError, "'coordinates', 'classifier', 'network'; 'tree' was given"),
        (None, BITS, InvalidParameterError, "oracle must be an Oracle such as .*; None was given"),
        (CoordinateOracle, BITS, InvalidParameterError, "<class .*CoordinateOracle'> was given"),
    ],
)
def test_what_means_no_oracle_is_refused_in_one_sentence(given, x, error, message):
    with pytest.raises(error, match=message):
        choose_oracle(given, tau_of(x))


# -- the record -------------------------------------------------------------------------------------------------------


def test_choices_are_those_that_were_left_to_the_library_and_read_as_sentences():
    x, agent = rows_of("bits")
    model = fitted(CRAFT(), x, agent)
    everything = [choice.parameter for choice in model.choices_]
    assert everything == ["oracle", "alpha", "eta", "nu", "coupling", "relabel", "stationary"]
    some = fitted(CRAFT(CoordinateOracle(), alpha=1.0, eta=0.1, coupling="independent"), x, agent)
    assert [choice.parameter for choice in some.choices_] == ["nu", "relabel", "stationary"]
    assert some.choices_[0].value == some.bounds_.nu
    assert (some.bounds_.alpha, some.bounds_.eta) == (1.0, 0.1)
    assert fitted(CRAFT.paper(CoordinateOracle(), **BOUNDS), x, agent).choices_ == ()
    assert [choice.parameter for choice in fitted(CRAFT.paper(**BOUNDS), x, agent).choices_] == ["oracle"]
    lines = describe(model.choices_)
    assert lines[0] == "oracle = CoordinateOracle(): observations are integers in 0..1; each entry may be the state."
    assert lines[1].startswith("alpha = ")
    assert ", eta = " in lines[1]
    assert "the best chain of codes" in lines[1]
    assert "coupling = markov: the class is finite" in lines[2]
    assert all(f"Chosen: {line}" in model.summary() for line in lines)
    made = [Choice("a", 0.123456, "because."), Choice("b", True, "therefore."), Choice("c", "scan", "because.")]
    assert describe(made) == ["a = 0.1235, c = scan: because.", "b = True: therefore."]


def test_one_encoder_serves_all_steps_of_what_is_trained_unless_told_otherwise():
    model = fitted(CRAFT(tree(), **BOUNDS), *rows_of("features"))
    assert hasattr(model, "encoder_")
    assert [choice.parameter for choice in model.choices_] == ["states", "stationary"]
    assert "nats of evidence" in model.choices_[0].why
    by_step = fitted(CRAFT(tree(), stationary=False), *rows_of("features"))
    assert not hasattr(by_step, "encoder_")
    assert by_step.rounds_
    assert by_step.choices_[0].value == sum(by_step.n_states_)


# -- bounds -----------------------------------------------------------------------------------------------------------


def of_sizes(*sizes):
    return TrajectoryDataset.from_arrays([np.zeros((n, 2, 1), dtype=int) for n in sizes])


def test_there_are_nine_settings_and_one_where_all_bounds_are_known():
    tau = of_sizes(7, 7)
    assert len(candidate_bounds(tau, {})) == 9
    assert candidate_bounds(tau, {})[0] == Bounds(1.0, 0.2, 0.1)
    assert {bounds.nu for bounds in candidate_bounds(tau, {"nu": 0.3})} == {0.3}
    assert candidate_bounds(tau, {"alpha": 0.7, "eta": 0.1, "nu": 0.2}) == [Bounds(0.7, 0.1, 0.2)]
    assert candidate_bounds(of_sizes(100, 20, 5), {})[0].eta == pytest.approx(1 / 81)  # odds of 1 to 4, and 1 to 20


@pytest.fixture(scope="module")
def toy():
    world = BitsExBMDP(8, 12, seed=1)
    return world, collect(world, world.paper_policies(), 1500, seed=0)


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_bounds_are_chosen_without_the_truth_and_lead_to_it(toy, coupling):
    world, data = toy
    model = CRAFT(CoordinateOracle(), coupling=coupling).fit(data.tau)
    assert [model.encoders_[h].feature for h in range(2, 9)] == [world.controllable_feature(h) for h in range(2, 9)]
    assert list(model.n_states_) == [1] + [2] * 7
    if coupling == "markov":  # the best chain there is ends the trial
        assert "of 1 settings tried" in model.choices_[0].why


def test_low_bounds_are_chosen_where_high_ones_find_no_states():
    """In the combination lock alpha = 1 fuses states."""
    world = LockExBMDP(8, seed=0)
    data = collect(world, world.policies(1.0), 1000, seed=0)
    model = CRAFT(FiniteOracle(world.encoders, world.n_values)).fit(data.tau)
    assert model.bounds_.alpha < 1
    assert list(model.n_states_)[1:] == [3] * 7
    assert accuracy_by_step(model.transform(data.tau), data.truth.states).min() == 1


def test_later_settings_are_tried_where_one_finds_too_many_states():
    """Subtle agents, step by step: alpha = 1/2 finds too many states with a large eta, and none with a small one."""
    world = BitsExBMDP(20, 32, seed=1)
    agents = [world.persistence_policy(stay) for stay in (0.5, 0.64)]
    model = CRAFT(CoordinateOracle(), coupling="independent", relabel=False)
    model = fitted(model, collect(world, agents, 4000, seed=1).tau)
    assert population_accuracy(lambda h: [model.encoders_[h]], world).mean() > 0.999


def two_bits(seed, n, weak, H=8, n_noise=6):
    """Two controlled bits of which the agents treat the second almost alike, and sticky noise bits; and the states."""
    rng = np.random.default_rng(seed)
    base, signs = rng.uniform(0.3, 0.7, (4, 2)), rng.choice([-1, 1], (4, 2))
    differ = signs * np.stack([rng.uniform(0.15, 0.3, 4), weak * rng.uniform(0.3, 1, 4)], axis=-1) / 2
    p, bits = np.stack([base + differ, base - differ])[:, :, None], np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    s, _ = walked(n, np.where(bits, p, 1 - p).prod(axis=-1), H, seed=seed)
    noise = rng.integers(0, 2, (2 * n, H, n_noise))
    for h in range(1, H):
        noise[:, h] = np.where(rng.random((2 * n, n_noise)) < 0.8, noise[:, h - 1], noise[:, h])
    return TrajectoryDataset.from_arrays(np.split(np.concatenate([bits[s], noise], axis=2), 2)), s


@pytest.mark.parametrize("stationary", [False, True])
def test_a_weak_second_factor_is_not_fused_away(stationary):
    """The class has single bits, and two of them together; step by step one fit in ten takes another pair."""
    functions = [lambda x, i=i: x[:, i] for i in range(8)]
    functions += [lambda x, i=i, j=j: 2 * x[:, i] + x[:, j] for i, j in combinations(range(8), 2)]
    right = 0
    for seed in range(6):
        tau, states = two_bits(seed, 1000, weak=0.1)
        model = fitted(CRAFT(FiniteOracle(functions, 4), stationary=stationary), tau)
        right += accuracy_by_step(model.transform(tau), states).min() == 1
    assert right >= 5 + stationary


def test_one_encoder_for_all_steps_begins_in_one_state():
    """The state XOR a coin that was tossed once tells the agents apart as well as the state, but begins in two."""
    for seed in range(6):
        state, agent = walked(300, flips(0.5, 0.25), 6, seed=seed)
        x = np.stack([state ^ np.random.default_rng(seed).integers(2, size=(600, 1)), state], axis=2)
        assert CRAFT(CoordinateOracle(), stationary=True).fit(x, agent).encoder_.index == 1
    with pytest.raises(InvalidParameterError, match="stationary=True needs one class of encoders for all steps"):
        CRAFT(FiniteOracle(lambda h: [lambda x: x[:, 0]]), stationary=True).fit(x, agent)


# -- the score --------------------------------------------------------------------------------------------------------


def test_the_evidence_by_hand():
    """One pair of states, visited by agents 0, 0, 1: each with prior half a visit, P = 1/2 * 3/4 * 1/6."""
    tau = of_sizes(2, 2)
    assert agents_nll(np.array([2, 1]), tau) == pytest.approx(-np.log(1 / 2 * 3 / 4 * 1 / 6))
    assert agents_nll(np.array([[0, 0]]), tau).tolist() == [0]
    episodes = [[np.array([0, 1, 1]), np.array([0, 0])], [np.array([0, 0, 0]), np.array([0, 1])]]
    codes = [np.array([0, 0, 0, 0]), np.array([1, 0, 0, 1]), np.array([1, -1, 0, -1])]
    # At the first pair of steps each of two cells has one visit of each agent, at the second one visit of one agent.
    found = chained_nll(codes, TrajectoryDataset.from_episodes(episodes))
    assert found == pytest.approx((2 * -np.log(1 / 8) + 2 * -np.log(1 / 2)) / 6)


def test_the_true_encoders_have_the_best_evidence_and_states_split_for_nothing_do_not_pay(toy):
    world, data = toy
    best = chained_nll(data.truth.states.T, data.tau)
    split = data.truth.states.copy()
    split[:, 3] = 2 * split[:, 3] + np.random.default_rng(0).integers(0, 2, len(split))
    assert chained_nll(split.T, data.tau) > best
    for h in range(2, world.H + 1):
        for feature in set(range(world.M)) - {world.controllable_feature(h)}:
            other = data.truth.states.copy()
            other[:, h - 1] = data.tau.at(h)[:, feature]
            assert chained_nll(other.T, data.tau) > best


def test_trajectories_without_a_pair_change_nothing():
    """Agents are as frequent as their pairs are, and not as their clips: those of one step say nothing."""
    pairs = [[np.array([0, 1])] * 3, [np.array([0, 0])] * 2]
    more = [pairs[0], pairs[1] + [np.array([0])] * 20]
    codes = [[np.zeros(25, dtype=int)[:n], np.r_[1, 1, 1, 0, 0, np.full(20, -1)][:n]] for n in (5, 25)]
    evidence = [chained_nll(own, TrajectoryDataset.from_episodes(x)) for own, x in zip(codes, (pairs, more))]
    assert evidence[0] == pytest.approx(evidence[1])
