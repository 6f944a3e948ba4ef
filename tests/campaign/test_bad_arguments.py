"""A small part of the campaign: odd arguments get an answer or one of our errors, and every callable has a recipe."""

import inspect

import pytest

from campaign.arguments import FAULTS, argument_cases, command_cases, some, starts_ray, summary, try_arguments
from campaign.calls import public_calls
from campaign.commands import _one_sentence
from craftrl import envs
from craftrl.cli.reproduce import available_studies

# What trains networks, draws pages or starts a Ray takes too long here.
LEFT_OUT = (
    "craftrl.NeuralOracle",
    "craftrl.Training",
    "craftrl.deploy",
    "craftrl.report",
)


def quick(case):
    slow = (*LEFT_OUT, "render", "export", "report", "reproduce")
    return not starts_ray(case) and not case["call"].startswith(slow)


def test_every_public_callable_has_a_recipe():
    assert {name: call.missing for name, call in public_calls().items() if call.missing} == {}


def test_no_odd_argument_ends_in_a_foreign_error():
    cases = some(list(filter(quick, argument_cases())), 240, seed=1) + some(
        list(filter(quick, command_cases())), 60, seed=1
    )
    found = try_arguments(cases, workers=1, patience=200)  # machines that run tests are busy
    assert [case for case in found if case["outcome"] in FAULTS] == []
    assert sum(case["outcome"] == "refused" for case in found) > len(found) / 2, summary(found)


def test_cases_are_drawn_by_the_seed():
    cases = command_cases()
    assert some(cases, 20, seed=3) == some(cases, 20, seed=3) != some(cases, 20, seed=4)


@pytest.mark.parametrize("name", ["craftrl.CRAFT.fit", "craftrl.paper.sample_size", "craftrl.TrajectoryDataset.select"])
def test_parameters_come_from_the_signature(name):

    call = public_calls()[name]
    assert set(call.parameters) == set(inspect.signature(call.target).parameters) - {"self"}


def test_methods_of_worlds_and_all_studies_are_among_the_cases():
    """They are found in the code: a world or a study that is new is tried without a word here."""
    calls = public_calls()
    worlds = [name for name in envs.__all__ if name.endswith("ExBMDP") and name != "ExBMDP"]
    assert worlds
    assert all(f"craftrl.envs.{name}" in calls for name in worlds)
    assert {f"craftrl reproduce {name}" for name in available_studies()} <= {case["part"] for case in command_cases()}


@pytest.mark.parametrize(
    ("said", "one"),
    [
        ("horizon must be ...; 1 was given.\n", True),
        ("It does not answer (refused); try 2 of 6\nThe store must answer.\n", True),
        ("First line.\nSecond line.\n", False),
        ("", False),
    ],
)
def test_a_refusal_is_one_sentence(said, one):
    assert _one_sentence(said) is one
