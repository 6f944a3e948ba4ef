"""Two of the agents that take turns are not enough for CRAFT; three are."""

import numpy as np
import pytest

from craftrl import CRAFT, CoordinateOracle
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import encoder_accuracy
from craftrl.paper import population_assumptions
from studies.worlds.turn_taking import turn_taking_policies


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
