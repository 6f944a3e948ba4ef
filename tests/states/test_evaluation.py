"""Accuracy up to relabelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftrl import CoordinateOracle, InvalidDataError
from craftrl.baselines import SingleObservation
from craftrl.core.relabelling import best_matching
from craftrl.envs import BitsExBMDP, collect
from craftrl.states.accuracy import accuracy, accuracy_by_step, confusion, population_accuracy


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.permutations(range(5)))
def test_names_of_states_do_not_matter(states, names):
    assert accuracy([names[s] for s in states], states) == 1


def test_each_label_stands_for_one_state():
    assert accuracy([0, 0, 0, 0], [0, 0, 1, 2]) == 0.5
    assert accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25


def test_unassigned_is_wrong():
    assert accuracy([0, 0, -1, -1], [0, 0, 0, 0]) == 0.5
    assert accuracy([-1, -1], [0, 1]) == 0


def test_confusion_and_matching():
    table = confusion([0, 0, 1, 1, -1], [2, 2, 0, 1, 0])
    assert table.tolist() == [[0, 0, 2], [1, 1, 0]]
    assert best_matching(table)[0] == 2


def test_every_step_has_its_own_relabelling():
    assert accuracy_by_step([[0, 1], [1, 0]], [[0, 0], [1, 1]]).tolist() == [1, 1]


def test_one_true_state_per_label():
    with pytest.raises(InvalidDataError, match="one true state per label; 2 and 3 were given"):
        accuracy([0, 1], [0, 1, 1])


def test_population_accuracy_is_what_many_samples_show():
    world = BitsExBMDP(horizon=5, n_features=6, seed=4)
    model = SingleObservation(CoordinateOracle()).fit(collect(world, world.paper_policies(), 50, seed=4).tau)
    expected = population_accuracy(lambda h: [model.encoders_[h]], world)
    many = collect(world, world.paper_policies(), 20_000, seed=5)
    seen = [accuracy(model.encode(many.tau.at(h), h), many.truth.states[:, h - 1]) for h in range(1, 6)]
    assert seen == pytest.approx(expected, abs=0.02)
