"""What knowing nothing scores."""

from typing import Any

import numpy as np
import pytest

from craftrl import InvalidParameterError
from craftrl.envs import BitsExBMDP, collect
from craftrl.paper import chance_accuracy
from studies.worlds.lock import LockExBMDP


def test_in_the_papers_world_chance_is_a_random_feature() -> None:
    worlds = [BitsExBMDP(30, 128, seed) for seed in range(20)]
    chance = np.array([chance_accuracy(world, world.paper_policies()) for world in worlds])
    assert (chance[:, 0] == 1).all()
    assert chance.mean() == pytest.approx(0.705, abs=0.0005)
    rng = np.random.default_rng(0)
    drawn = [world.feature_accuracy(7)[rng.integers(128, size=500)].mean() for world in worlds]
    assert chance[:, 6] == pytest.approx(drawn, abs=0.03)


def test_bare_noise_is_worth_one_half() -> None:
    world = BitsExBMDP(4, 10, entangled=False)
    assert chance_accuracy(world, world.paper_policies()).tolist() == pytest.approx([1.0, 0.55, 0.55, 0.55])


def test_in_other_worlds_chance_is_one_state_named_at_every_step() -> None:
    world = LockExBMDP(5, 6, seed=1)
    policies = world.policies()
    states = collect(world, policies, 5000, seed=0).truth.states
    commonest = [np.bincount(s_h).max() / len(s_h) for s_h in states.T]
    assert chance_accuracy(world, policies) == pytest.approx(commonest, abs=0.02)


@pytest.mark.parametrize("policies", [None, "x", np.zeros(2), [None, None]])
def test_policies_are_checked_where_they_are_not_needed(policies: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"policies must be a (list with the policy of each agent|policy)"):
        chance_accuracy(BitsExBMDP(horizon=4, n_features=6, seed=0), policies)
