"""The catalogue: every world by name, with its agents."""

import inspect

import pytest

from craftrl.envs import WORLDS, BitsExBMDP, ExBMDP, MarkovPolicy, make_world
from craftrl.envs.catalogue import class_at
from craftrl.errors import InvalidParameterError


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_is_made_with_its_agents(name: str) -> None:
    world, policies = make_world(name, horizon=3, seed=1)
    assert isinstance(world, ExBMDP)
    assert world.H == 3
    assert len(policies) == 2
    assert all(isinstance(policy, MarkovPolicy) for policy in policies)


@pytest.mark.parametrize("entry", WORLDS.values(), ids=list(WORLDS))
def test_the_options_are_parameters_of_the_class(entry) -> None:
    assert {*entry.options, "seed"} <= set(inspect.signature(class_at(entry.path)).parameters)


def test_the_defaults_are_the_classes_own() -> None:
    world, _ = make_world("bits")
    assert (world.H, world.obs_shape) == (BitsExBMDP().H, BitsExBMDP().obs_shape)


def test_names_and_options_that_do_not_exist() -> None:
    with pytest.raises(InvalidParameterError, match="one of bits, pixels; 'chess' was given"):
        make_world("chess")
    with pytest.raises(InvalidParameterError, match="bits takes horizon, n_features and seed; size was given; leave"):
        make_world("bits", size=3)
