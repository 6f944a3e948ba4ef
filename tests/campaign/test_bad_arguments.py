"""A small part of the campaign: odd arguments get an answer or one of our errors, and every callable has a recipe."""

import inspect

import pytest

from campaign.arguments import FAULTS, argument_cases, command_cases, some, starts_ray, summary, try_arguments
from campaign.calls import public_calls

# What trains networks, draws pages or starts a Ray takes too long here.
LEFT_OUT = (
    "craftrl.NeuralOracle",
    "craftrl.Training",
    "craftrl.baselines.SingleFrame",
    "craftrl.deploy",
    "craftrl.report",
)


def quick(case):
    return not starts_ray(case) and not case["call"].startswith((*LEFT_OUT, "render", "export", "report"))


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


@pytest.mark.parametrize(
    "name", ["craftrl.CRAFT.fit", "craftrl.theory.sample_size", "craftrl.TrajectoryDataset.select"]
)
def test_parameters_come_from_the_signature(name):

    call = public_calls()[name]
    assert set(call.parameters) == set(inspect.signature(call.target).parameters) - {"self"}
