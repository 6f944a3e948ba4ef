"""The catalogue: every world by name, with its agents."""

import inspect

import pytest

from craftrl.envs import WORLDS, BitsExBMDP, ExBMDP, GymWorld, MarkovPolicy, make_world
from craftrl.envs.catalogue import class_at
from craftrl.errors import InvalidParameterError

PACKAGES = {"freeway": "ale_py", "seaquest": "ale_py", "minigrid": "minigrid", "doom": "vizdoom"}


@pytest.mark.parametrize("name", WORLDS)
def test_every_world_is_made_with_its_agents(name: str) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    world, policies = make_world(name, horizon=3, seed=1)
    assert isinstance(world, GymWorld if name in PACKAGES else ExBMDP)
    assert world.H == 3
    assert len(policies) == 2
    assert all(isinstance(policy, MarkovPolicy) for policy in policies)


@pytest.mark.parametrize("entry", WORLDS.values(), ids=list(WORLDS))
def test_the_options_are_parameters_of_the_class(entry) -> None:
    if entry.gym_id is None:
        pytest.importorskip("gymnasium")
    assert {*entry.options, "seed"} <= set(inspect.signature(class_at(entry.path)).parameters)


def test_the_defaults_are_the_classes_own() -> None:
    world, _ = make_world("bits")
    assert (world.H, world.obs_shape) == (BitsExBMDP().H, BitsExBMDP().obs_shape)


def test_names_and_options_that_do_not_exist() -> None:
    with pytest.raises(InvalidParameterError, match=r"one of bits, lock, .*doom; 'chess' was given"):
        make_world("chess")
    with pytest.raises(InvalidParameterError, match="multimaze takes horizon and seed; size was given; leave it out"):
        make_world("multimaze", size=3)
