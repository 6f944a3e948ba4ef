"""The combination lock, the nine mazes, agents that remember, change, learn or take turns, and recovered graphs."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.envs.exbmdp import reachable_states
from craftrl.paper import population_assumptions
from studies.worlds.graphs import recovery
from studies.worlds.lock import LockExBMDP, TwoBits
from studies.worlds.multimaze import CELLS, NEXT_CELL, MultiMazeExBMDP
from studies.worlds.policies import AdaptivePolicy, HistoryPolicy, SwitchingPolicy
from studies.worlds.turn_taking import turn_taking_policies


@pytest.mark.parametrize(
    ("world", "nu", "eta"), [(LockExBMDP(horizon=10), 0.04, 0.15), (MultiMazeExBMDP(horizon=6), 0.01, 0.04)]
)
def test_agents_walk_everywhere_and_differ_in_every_state(world, nu, eta):
    found = population_assumptions(world, world.policies(alpha=1.0))
    assert found.alpha.value == pytest.approx(1)
    assert found.nu.value > nu
    assert found.eta.value > eta


# -- the lock ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_one_secret_action_leads_on_and_the_trap_is_absorbing(seed):
    world = LockExBMDP(horizon=7, seed=seed)
    assert sorted(world.T(1)[0]) == [0, 1, 2, 2]
    for h in range(2, 7):
        good, bad = world.T(h)[:2], world.T(h)[2]
        assert (bad == 2).all()
        assert ((good == 2).sum(axis=1) == 3).all()
        assert sorted(good[good != 2]) == [0, 1]
    assert all(reached.all() for reached in reachable_states(world))


def test_secrets_differ_between_steps_and_seeds_and_noise_bits_flip_one_time_in_ten():
    tables = [np.stack([LockExBMDP(horizon=20, seed=s).T(h) for h in range(2, 20)]) for s in range(2)]
    assert not np.array_equal(*tables)
    assert len(np.unique(tables[0], axis=0)) > 3
    world, rng = LockExBMDP(horizon=3, n_features=12), np.random.default_rng(0)
    e = world.sample_noise(10_000, rng)
    assert np.allclose((world.step_noise(e, 1, rng) != e).mean(axis=0), 0.1, atol=0.015)


def test_the_locks_class_holds_the_true_encoder_twice_and_decoys_otherwise():
    world = LockExBMDP(horizon=6, n_features=7, seed=2)
    data = collect(world, world.policies(), 500, seed=0)
    for h in range(2, 7):
        encoders, (trap, arm) = world.encoders(h), world.controllable_features(h)
        pairs = [np.unique(np.stack([phi(data.tau.at(h)), data.truth.states[:, h - 1]]), axis=1) for phi in encoders]
        right = [phi for phi, of in zip(encoders, pairs) if of.shape[1] == 3]
        assert right == sorted([TwoBits(trap, arm), TwoBits(arm, trap)], key=encoders.index)
        assert len(encoders) == 7 * 6


# -- the mazes -----------------------------------------------------------------------------------------------------


def test_a_maze_has_four_rooms_and_four_doors_and_every_cell_can_be_reached():
    doors = np.flatnonzero((CELLS == 4).any(axis=1))
    assert (len(CELLS), [len(set(NEXT_CELL[d]) - {d}) for d in doors]) == (68, [2, 2, 2, 2])
    for a, back in ((0, 1), (1, 0), (2, 3), (3, 2)):
        moved = NEXT_CELL[:, a] != np.arange(68)
        assert np.array_equal(NEXT_CELL[NEXT_CELL[moved, a], back], np.flatnonzero(moved))
    assert MultiMazeExBMDP(horizon=40).n_states(40) == 68
    world = MultiMazeExBMDP(horizon=8)
    assert [world.n_states(h) for h in range(1, 9)] == [1, 3, 6, 10, 13, 16, 19, 23]
    assert np.array_equal(world.cells(2), [0, 1, np.flatnonzero((CELLS == [1, 0]).all(axis=1))[0]])
    assert all(set(world.T(h).ravel()) == set(range(world.n_states(h + 1))) for h in range(1, 8))


def test_each_image_shows_one_walker_per_maze_and_mine_is_among_them():
    world = MultiMazeExBMDP(horizon=5, seed=1)
    data = collect(world, world.policies(), 100, seed=0)
    assert [len(world.encoders(h)) for h in range(1, 6)] == [1, 9, 9, 9, 9]
    assert not world.encoders(1)[0](data.tau.at(1)).any()
    for h in range(2, 6):
        x = data.tau.at(h)
        assert (x.reshape(len(x), 3, 9, 3, 9).sum(axis=(2, 4)) == 1).all()
        mine = world.cells(h)[data.truth.states[:, h - 1]]
        assert [np.array_equal(phi(x), mine) for phi in world.encoders(h)] == [i == world.mine for i in range(9)]
    assert len({MultiMazeExBMDP(seed=seed).mine for seed in range(30)}) > 4


# -- agents --------------------------------------------------------------------------------------------------------

SMALL = BitsExBMDP(horizon=6, n_features=4, seed=0)
WORLD = BitsExBMDP(horizon=8, n_features=4)


def certain(action):
    return MarkovPolicy([np.eye(2)[[action] * SMALL.n_states(h)] for h in range(1, SMALL.H)])


def states_of(policy, n):
    return collect(SMALL, [policy, certain(0)], [n, 1], seed=0).truth.states[:n]


def test_agents_see_all_states_so_far_change_between_episodes_and_learn_from_earlier_ones():
    opposite_of_two_ago = HistoryPolicy(lambda history: np.eye(2)[1 - history[:, max(history.shape[1] - 2, 0)]])
    assert (states_of(opposite_of_two_ago, 3) == [0, 1, 1, 0, 0, 1]).all()
    switching = SwitchingPolicy([certain(0), certain(1)], schedule=[0, 1, 1])
    assert states_of(switching, 6)[:, 1].tolist() == [0, 1, 1, 0, 1, 1]
    seen = []

    def least_visited(past):
        seen.append(len(past))
        return certain(int(past[:, 1:].mean() < 0.5)) if len(past) else certain(0)

    assert states_of(AdaptivePolicy(least_visited, batch=2), 6)[:, 1].tolist() == [0, 0, 1, 1, 0, 0]
    assert seen == [0, 2, 4]


def test_of_three_agents_that_take_turns_no_two_differ_everywhere_and_one_departs_at_every_state():
    for pair in combinations(turn_taking_policies(WORLD), 2):
        assert population_assumptions(WORLD, pair).alpha.value == pytest.approx(0, abs=1e-12)
    world = MultiMazeExBMDP(horizon=5)
    for h in range(1, world.H):
        departs = [~np.isclose(agent.pi(h), 0.25).all(axis=1) for agent in turn_taking_policies(world)]
        assert (np.sum(departs, axis=0) == 1).all()
    agents = turn_taking_policies(WORLD, 9)  # in the toy world, departing is the paper's persistence
    for k, stay in ((2, 0.75), (5, 0.25), (8, 0.9)):
        assert np.allclose(agents[k].pi(2), [[stay, 1 - stay], [1 - stay, stay]])
        assert np.allclose(agents[k].pi(3), 0.5)


@pytest.mark.parametrize("n_agents", [3, 4, 6, 9])
def test_three_or_more_that_take_turns_differ_everywhere_together(n_agents):
    agents = turn_taking_policies(WORLD, n_agents)
    assert len(agents) == n_agents
    assert population_assumptions(WORLD, agents).alpha.value >= math.log(3) - 1e-9


# -- recovered graphs ----------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10_000),
    world=st.sampled_from([LockExBMDP(horizon=5, n_features=6, seed=2), MultiMazeExBMDP(4), BitsExBMDP(5, 4)]),
)
@settings(max_examples=10, deadline=None)
def test_true_labels_under_any_names_recover_the_true_graph(seed, world):
    policies = world.paper_policies() if isinstance(world, BitsExBMDP) else world.policies()
    data = collect(world, policies, 600, seed=seed)
    rng, s = np.random.default_rng(seed), data.truth.states
    labels = np.stack([rng.permutation(world.n_states(h + 1))[s[:, h]] for h in range(world.H)], axis=1)
    labels[rng.random(labels.shape) < 0.1] = -1
    assert recovery(labels, s, world.reachable_pairs()) == (1, 1)


def test_wrong_edges_cost_precision_and_missing_ones_recall():
    truth, true = np.array([[0, 0], [0, 1], [0, 2]]), [np.ones((1, 3))]
    split = np.array([[0, 0], [0, 1], [0, 2], [0, 3]])
    assert recovery(split, np.vstack([truth, [[0, 2]]]), true) == (0.75, 1)
    assert recovery(np.minimum(truth, 1), truth, true) == (1, pytest.approx(2 / 3))
    rare = np.array([[0, 0]] * 97 + [[0, 1]] * 3)
    for min_share, found in ((0.04, (1, 1)), (0.03, (0.5, 1))):
        assert recovery(rare, 0 * rare, [np.ones((1, 1))], min_share) == found


def test_a_learner_that_found_nothing_has_an_empty_graph():
    truth = np.array([[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 1, 0]])
    assert recovery(np.array([[0, -1, -1]] * 4), truth, [np.ones((1, 2)), np.ones((2, 2))]) == (1, 0)
