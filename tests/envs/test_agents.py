"""Agents: what their tables may hold, coverage by a linear programme, and pairs that are alpha apart."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl.envs import BitsExBMDP, ExBMDP, GymWorld, MarkovPolicy, collect, contrasting_policies
from craftrl.envs.agents import coverage_policy, successor_ranks, tilted
from craftrl.envs.exbmdp import reachable_states
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions
from studies.worlds.habits import contrasting_habits
from studies.worlds.lock import LockExBMDP
from studies.worlds.multimaze import MultiMazeExBMDP

BITS = BitsExBMDP(horizon=6, n_features=4, seed=0)
MOVES = np.clip(np.arange(5)[:, None] + np.array([-1, 0, 1]), 0, 4)  # on a line


class RandomTables(LockExBMDP):
    """Any tables T, such that some states can never be reached; nobody looks at the observations here."""

    def __init__(self, seed, horizon=5):
        super().__init__(horizon)
        rng = np.random.default_rng(seed)
        sizes = [1, *rng.integers(1, 6, size=horizon - 1)]
        self._T = [rng.integers(after, size=(n, 4)) for n, after in pairwise(sizes)]

    def n_states(self, h):
        return ExBMDP.n_states(self, h)


def uniform(world):
    shapes = [(world.n_states(h), world.n_actions) for h in range(1, world.H)]
    return MarkovPolicy([np.full(shape, 1 / world.n_actions) for shape in shapes])


def least_pair(world, policy):
    return population_assumptions(world, [policy, policy]).nu.value


def test_actions_have_the_policys_frequencies():
    truth = collect(BITS, BITS.paper_policies(), 20_000, seed=1).truth
    stays = (truth.actions == truth.states[:, :-1]).reshape(2, -1).mean(axis=1)
    assert np.allclose(stays, [0.5, 0.75], atol=0.01)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: MarkovPolicy([[[0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]]]), "that for h = 2 is not"),
        (lambda: MarkovPolicy([[[1.5, -0.5]]]), "that for h = 1 is not"),
        (lambda: collect(BITS, [MarkovPolicy([[[0.5, 0.5]]])] * 2, 5), "there are 1, from h = 1; build it for this"),
        (lambda: collect(BITS, [MarkovPolicy([[[0.5, 0.5]]] * 5)] * 2, 5), "has 1 rows, and state 1 was reached"),
        (
            lambda: collect(BITS, [MarkovPolicy([[[0.5, 0.5, 0]]] * 5)] * 2, 5),
            r"shape \(5, 2\); MarkovPolicy gave float64 of shape \(5, 3\)",
        ),
        (lambda: contrasting_policies(BITS, alpha=0.0), "alpha must be a positive number"),
        (lambda: contrasting_habits(MOVES, 4, chances=(0.5, 0.5, 0.0)), "some chance in every state"),
    ],
)
def test_policies_that_cannot_be_are_refused(call, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        call()


def test_coverage_of_the_lock_is_the_best_possible():
    # What is alive at h = 2 feeds two falls, (0, 2) and (1, 2), at each of the H - 2 later steps and two survivors
    # at the end; one more fall happens at the first step: 1 = nu + 2 nu (H - 2) + 2 nu.
    world = LockExBMDP(horizon=8)
    assert least_pair(world, coverage_policy(world)) == pytest.approx(1 / (2 * 8 - 1))


def test_coverage_is_far_better_than_uniform_play():
    maze = MultiMazeExBMDP(horizon=8)
    assert least_pair(maze, coverage_policy(maze)) > 50 * least_pair(maze, uniform(maze))


@given(seed=st.integers(0, 10_000), horizon=st.integers(2, 4))
@settings(max_examples=20)
def test_on_any_dynamics_coverage_is_never_worse_and_agents_are_alpha_apart(seed, horizon):
    world = RandomTables(seed, horizon)
    cover = coverage_policy(world)
    assert least_pair(world, cover) >= least_pair(world, uniform(world)) - 1e-9
    alpha = population_assumptions(world, contrasting_policies(world, 0.5, base=cover)).alpha.value
    assert alpha >= 0.5 - 1e-9


def test_agents_are_alpha_apart_with_a_base_of_ones_own():
    world = LockExBMDP(horizon=5)
    found = population_assumptions(world, contrasting_policies(world, 2.0, base=uniform(world)))
    assert found.alpha.value == pytest.approx(2.0)


def test_agents_who_differ_much_stay_in_the_same_places():
    """What one of them has visited less than the other it is made to like more."""
    world = LockExBMDP(horizon=8)
    assert population_assumptions(world, contrasting_policies(world, 2.0)).eta.value > 0.045


def test_a_tilt_is_shared_by_all_actions_with_one_successor():
    p = tilted(np.full(4, 0.25), successor_ranks(np.array([5, 2, 5, 0]), np.arange(6.0)))
    assert p[0] == p[2]
    assert np.log(p[:2] / p[[1, 3]]) == pytest.approx([1, 1])
    assert p.sum() == pytest.approx(1)


def literal_pairs(world):
    """How many actions make each transition, walking from every state found so far."""
    found, tables = {0}, []
    for h in range(1, world.H):
        table = np.zeros((world.n_states(h), world.n_states(h + 1)), dtype=int)
        for s in found:
            for a in range(world.n_actions):
                table[s, world.T(h)[s, a]] += 1
        tables.append(table.tolist())
        found = {int(world.T(h)[s, a]) for s in found for a in range(world.n_actions)}
    return tables


@pytest.mark.parametrize("world", [*map(RandomTables, range(8)), MultiMazeExBMDP(4)])
def test_reachable_pairs_are_those_of_a_search(world):
    truth = literal_pairs(world)
    assert [table.tolist() for table in world.reachable_pairs()] == truth
    reached = [np.array(table).any(axis=0).tolist() for table in truth]
    assert [r.tolist() for r in reachable_states(world)[1:]] == reached


def test_preferences_in_an_environment_are_turned_round_and_drawn_for_every_state():
    world = GymWorld(dict, lambda env: 0, 5, (0, 1, 2), H=4)
    a, b = (policy.pi(3) for policy in world.policies(alpha=0.8, seed=1))
    assert a.shape == (5, 3)
    assert np.sort(np.log(a / b), axis=1) == pytest.approx(np.tile([-0.8, 0, 0.8], (5, 1)))
    assert len(np.unique(a.argmax(axis=1))) > 1
    assert (a != world.policies(seed=2)[0].pi(3)).any()
    assert len(GymWorld(dict, actions=["x", "y", "z"]).policies()[0].pi(1)) == 1  # no state is known


@pytest.mark.parametrize("seed", range(3))
def test_habits_differ_by_alpha_and_are_the_same_at_every_step(seed):
    """Successors are what counts: at the end of the line, standing still and going on are one."""
    agents = contrasting_habits(MOVES, 6, start=2, chances=(0.2, 0.3, 0.5), alpha=0.8, seed=seed)
    a, b = (p.pi(1) for p in agents)
    assert all((agents[0].pi(h) == a).all() for h in range(1, 6))
    assert min(a.min(), b.min()) > 0
    for s in range(5):
        to = np.unique(MOVES[s])
        chance = np.array([[pi[s, MOVES[s] == t].sum() for t in to] for pi in (a, b)])
        assert (np.diff(np.sort(np.log(chance[0] / chance[1]))) > 0.8 - 1e-9).all()
