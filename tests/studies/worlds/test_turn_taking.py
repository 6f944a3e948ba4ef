"""Agents that take turns: no two are enough, three are."""

import math
from itertools import combinations

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP
from craftrl.errors import InvalidParameterError
from craftrl.paper import population_assumptions
from studies.worlds.multimaze import MultiMazeExBMDP
from studies.worlds.turn_taking import turn_taking_policies

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


def test_all_agents_are_different() -> None:
    agents = turn_taking_policies(WORLD, 12)
    for one, other in combinations(agents, 2):
        assert any(not np.allclose(one.pi(h), other.pi(h)) for h in range(1, WORLD.H))


def test_one_agent_is_too_few() -> None:
    with pytest.raises(InvalidParameterError, match="n_agents must be an integer from 2 to 1000; 1 was given"):
        turn_taking_policies(WORLD, 1)
