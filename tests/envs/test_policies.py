"""Policies and collection: what agents may depend on, and what they may not."""

import numpy as np
import pytest

from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.errors import InvalidParameterError

WORLD = BitsExBMDP(horizon=6, n_features=4, seed=0)


def test_actions_have_the_policys_frequencies() -> None:
    actions = collect(WORLD, WORLD.paper_policies(), 20_000, seed=1).truth.actions
    states = collect(WORLD, WORLD.paper_policies(), 20_000, seed=1).truth.states[:, :-1]
    stays = (actions == states).reshape(2, -1).mean(axis=1)
    assert np.allclose(stays, [0.5, 0.75], atol=0.01)


def test_tables_must_hold_probabilities() -> None:
    with pytest.raises(InvalidParameterError, match="that for h = 2 is not"):
        MarkovPolicy([[[0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]]])


@pytest.mark.parametrize("n", [0, [3], [3, 0], []])
def test_numbers_of_episodes_must_fit_the_policies(n: int | list[int]) -> None:
    with pytest.raises(InvalidParameterError, match="one positive number, or one per policy"):
        collect(WORLD, WORLD.paper_policies(), n, seed=0)
