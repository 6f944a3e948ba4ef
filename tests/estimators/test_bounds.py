"""Bounds from the data alone: nine settings, of which the data takes one."""

from itertools import combinations

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle, FiniteOracle, TrajectoryDataset
from craftrl.core.craft import Bounds
from craftrl.envs import BitsExBMDP, collect
from craftrl.estimators import exact
from craftrl.estimators.bounds import settings
from craftrl.estimators.evidence import agents_evidence, chained_evidence
from craftrl.evaluation import accuracy_by_step, population_accuracy
from shipped import fitted
from studies.worlds.lock import LockExBMDP

NAMES = ("alpha", "eta", "nu")


def of_sizes(*sizes):
    return TrajectoryDataset.from_arrays([np.zeros((n, 2, 1), dtype=int) for n in sizes])


@pytest.fixture(scope="module")
def toy():
    world = BitsExBMDP(8, 12, seed=1)
    return world, collect(world, world.paper_policies(), 1500, seed=0)


# -- the settings -----------------------------------------------------------------------------------------------------


def test_there_are_nine_settings_and_one_where_all_bounds_are_known():
    tau = of_sizes(7, 7)
    assert len(settings(tau, {})) == 9
    assert settings(tau, {})[0] == Bounds(1.0, 0.2, 0.1)
    assert {bounds.nu for bounds in settings(tau, {"nu": 0.3})} == {0.3}
    assert settings(tau, {"alpha": 0.7, "eta": 0.1, "nu": 0.2}) == [Bounds(0.7, 0.1, 0.2)]


def test_eta_is_set_for_the_agents_own_sizes():
    assert settings(of_sizes(100, 20, 5), {})[0].eta == pytest.approx(1 / 81)  # odds of 1 to 4, and 1 to 20


# -- finite classes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coupling", ["independent", "chain", "markov"])
def test_bounds_are_chosen_without_the_truth_and_lead_to_it(toy, coupling):
    world, data = toy
    model = CRAFT(CoordinateOracle(), coupling=coupling).fit(data.tau)
    assert [model.encoders_[h].feature for h in range(2, 9)] == [world.controllable_feature(h) for h in range(2, 9)]
    assert list(model.n_states_) == [1] + [2] * 7


def test_low_bounds_are_chosen_where_high_ones_find_no_states():
    """In the combination lock alpha = 1 fuses states."""
    world = LockExBMDP(8, seed=0)
    data = collect(world, world.policies(1.0), 1000, seed=0)
    model = CRAFT(FiniteOracle(world.encoders, world.n_values)).fit(data.tau)
    assert model.bounds_.alpha < 1
    assert list(model.n_states_)[1:] == [3] * 7
    assert accuracy_by_step(model.transform(data.tau), data.truth.states).min() == 1


def two_bits(seed, n, weak, H=8, n_noise=6):
    """Two controlled bits of which the agents treat the second almost alike, and sticky noise bits; and the states."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.3, 0.7, (2, 2, 2))
    differ = np.stack([rng.uniform(0.15, 0.3, (2, 2)), weak * rng.uniform(0.3, 1, (2, 2))], axis=-1)
    differ *= rng.choice([-1, 1], differ.shape) / 2
    arrays, states = [], []
    for sign in (1, -1):
        s, noise = np.zeros((n, 2), dtype=int), rng.integers(0, 2, (n, n_noise))
        x, truth = [], []
        for _ in range(H):
            x.append(np.concatenate([s, noise], axis=1))
            truth.append(2 * s[:, 0] + s[:, 1])
            p = (base + sign * differ)[s[:, 0], s[:, 1]]
            s = (rng.random((n, 2)) < p).astype(int)
            noise = np.where(rng.random(noise.shape) < 0.8, noise, rng.integers(0, 2, noise.shape))
        arrays.append(np.stack(x, axis=1))
        states.append(np.stack(truth, axis=1))
    return TrajectoryDataset.from_arrays(arrays), np.concatenate(states)


def bits_and_pairs(n_bits):
    """Single bits, and two of them together."""
    single = [lambda x, i=i: x[:, i] for i in range(n_bits)]
    return single + [lambda x, i=i, j=j: 2 * x[:, i] + x[:, j] for i, j in combinations(range(n_bits), 2)]


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_weak_second_factor_is_not_fused_away(seed, stationary):
    tau, states = two_bits(seed, 1000, weak=0.1)
    model = fitted(CRAFT(FiniteOracle(bits_and_pairs(8), 4), stationary=stationary), tau)
    assert accuracy_by_step(model.transform(tau), states).min() == 1


def test_later_settings_are_tried_where_one_finds_too_many_states():
    """Subtle agents, step by step: alpha = 1/2 finds too many states with a large eta, and none with a small one."""
    world = BitsExBMDP(20, 32, seed=1)
    agents = [world.persistence_policy(stay) for stay in (0.5, 0.64)]
    model = CRAFT(CoordinateOracle(), coupling="independent", relabel=False)
    model = fitted(model, collect(world, agents, 4000, seed=1).tau)
    assert population_accuracy(lambda h: [model.encoders_[h]], world).mean() > 0.999


def test_a_setting_whose_encoders_are_the_best_chain_ends_the_trial(toy, monkeypatch):
    runs = []
    craft = exact.craft
    monkeypatch.setattr(exact, "craft", lambda *args, **kwargs: runs.append(args[1]) or craft(*args, **kwargs))
    model = CRAFT(CoordinateOracle(), coupling="markov").fit(toy[1].tau)
    assert len(runs) == 1
    assert "of 1 settings tried" in model.choices_[0].why


# -- the score --------------------------------------------------------------------------------------------------------


def test_the_evidence_by_hand():
    """One pair of states, visited by agents 0, 0, 1: each with prior half a visit, P = 1/2 * 3/4 * 1/6."""
    tau = of_sizes(2, 2)
    assert agents_evidence(np.array([2, 1]), tau) == pytest.approx(-np.log(1 / 2 * 3 / 4 * 1 / 6))
    assert agents_evidence(np.array([[0, 0]]), tau).tolist() == [0]


def test_the_true_encoders_have_the_best_evidence(toy):
    world, data = toy
    best = chained_evidence(data.truth.states.T, data.tau)
    for h in range(2, world.H + 1):
        for feature in set(range(world.M)) - {world.controllable_feature(h)}:
            other = data.truth.states.copy()
            other[:, h - 1] = data.tau.at(h)[:, feature]
            assert chained_evidence(other.T, data.tau) > best


def test_states_split_for_nothing_do_not_pay(toy):
    states, tau = toy[1].truth.states, toy[1].tau
    split = states.copy()
    split[:, 3] = 2 * split[:, 3] + np.random.default_rng(0).integers(0, 2, len(split))
    assert chained_evidence(split.T, tau) > chained_evidence(states.T, tau)


def test_trajectories_that_are_over_do_not_count():
    episodes = [[np.array([0, 1, 1]), np.array([0, 0])], [np.array([0, 0, 0]), np.array([0, 1])]]
    tau = TrajectoryDataset.from_episodes(episodes)
    codes = [np.array([0, 0, 0, 0]), np.array([1, 0, 0, 1]), np.array([1, -1, 0, -1])]
    # At the first pair of steps each of two cells has one visit of each agent, at the second one visit of one agent.
    assert chained_evidence(codes, tau) == pytest.approx((2 * -np.log(1 / 8) + 2 * -np.log(1 / 2)) / 6)


def test_trajectories_without_a_pair_change_nothing():
    """Agents are as frequent as their pairs are, and not as their clips: those of one step say nothing."""
    pairs = [[np.array([0, 1])] * 3, [np.array([0, 0])] * 2]
    more = [pairs[0], pairs[1] + [np.array([0])] * 20]
    codes = [[np.zeros(25, dtype=int)[:n], np.r_[1, 1, 1, 0, 0, np.full(20, -1)][:n]] for n in (5, 25)]
    evidence = [chained_evidence(own, TrajectoryDataset.from_episodes(x)) for own, x in zip(codes, (pairs, more))]
    assert evidence[0] == pytest.approx(evidence[1])
