"""Agents of the studies: some remember, some change, some learn; and some take turns, of which no two are enough."""

import math
from itertools import combinations

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import encoder_accuracy
from craftrl.paper import population_assumptions
from studies.worlds.multimaze import MultiMazeExBMDP
from studies.worlds.policies import AdaptivePolicy, HistoryPolicy, SwitchingPolicy
from studies.worlds.turn_taking import turn_taking_policies

SMALL = BitsExBMDP(horizon=6, n_features=4, seed=0)


def certain(action: int) -> MarkovPolicy:
    return MarkovPolicy([np.eye(2)[[action] * SMALL.n_states(h)] for h in range(1, SMALL.H)])


def test_a_history_policy_sees_all_states_so_far() -> None:
    def opposite_of_two_ago(history: np.ndarray) -> np.ndarray:
        return np.eye(2)[1 - history[:, max(history.shape[1] - 2, 0)]]

    states = collect(SMALL, [HistoryPolicy(opposite_of_two_ago)] * 2, 3, seed=0).truth.states
    assert (states == [0, 1, 1, 0, 0, 1]).all()


def test_a_switching_policy_changes_from_episode_to_episode() -> None:
    policy = SwitchingPolicy([certain(0), certain(1)], schedule=[0, 1, 1])
    states = collect(SMALL, [policy, certain(0)], [6, 1], seed=0).truth.states
    assert states[:6, 1].tolist() == [0, 1, 1, 0, 1, 1]


def test_an_adaptive_policy_learns_from_its_own_earlier_episodes() -> None:
    seen = []

    def least_visited(past: np.ndarray) -> MarkovPolicy:
        seen.append(len(past))
        return certain(int(past[:, 1:].mean() < 0.5)) if len(past) else certain(0)

    states = collect(SMALL, [AdaptivePolicy(least_visited, batch=2), certain(0)], [6, 1], seed=0).truth.states
    assert seen == [0, 2, 4]
    assert states[:6, 1].tolist() == [0, 0, 1, 1, 0, 0]


WORLD = BitsExBMDP(horizon=8, n_features=4)


def test_no_two_of_the_three_differ_everywhere() -> None:
    for pair in combinations(turn_taking_policies(WORLD), 2):
        assert population_assumptions(WORLD, pair).alpha.value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_agents", [3, 4, 6, 9])
def test_three_or_more_together_do(n_agents: int) -> None:
    agents = turn_taking_policies(WORLD, n_agents)
    assert len(agents) == n_agents
    assert population_assumptions(WORLD, agents).alpha.value >= math.log(3) - 1e-9


def test_the_papers_persistence_is_what_departing_means_in_the_toy_world() -> None:
    agent = turn_taking_policies(WORLD)[2]
    assert np.allclose(agent.pi(2), [[0.75, 0.25], [0.25, 0.75]])
    assert np.allclose(agent.pi(3), 0.5)


def test_at_every_state_exactly_one_of_three_departs() -> None:
    world = MultiMazeExBMDP(horizon=5)
    agents = turn_taking_policies(world)
    for h in range(1, world.H):
        departs = np.stack([~np.isclose(agent.pi(h), 0.25).all(axis=1) for agent in agents])
        assert (departs.sum(axis=0) == 1).all()


def test_one_agent_is_too_few() -> None:
    with pytest.raises(InvalidParameterError, match="n_agents must be an integer from 2 to 1000; 1 was given"):
        turn_taking_policies(WORLD, 1)


def mean_accuracy(n_agents: int, total: int) -> float:
    world = BitsExBMDP(horizon=8, n_features=16, seed=2)
    agents = turn_taking_policies(world, n_agents)
    bounds = population_assumptions(world, turn_taking_policies(world, max(n_agents, 3)))
    data = collect(world, agents, total // n_agents, seed=0)
    model = CRAFT(
        CoordinateOracle(), alpha=bounds.alpha.value, eta=bounds.eta.value, nu=bounds.nu.value, coupling="chain"
    ).fit(data.tau)
    return float(np.mean(encoder_accuracy(model, data.tau.at, data.truth.states)))


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_two_fail_and_three_succeed_on_as_many_trajectories() -> None:
    assert mean_accuracy(2, total=12_000) < 0.95
    assert mean_accuracy(3, total=12_000) == 1.0
