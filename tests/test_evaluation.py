"""Accuracy up to relabelling, and counts of visits against a loop over trajectories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftrl import CoordinateOracle, CraftError, InvalidDataError
from craftrl.core.encoders import CoordinateEncoder
from craftrl.core.relabelling import best_matching, first_best_matching
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import (
    accuracy,
    accuracy_by_step,
    confusion,
    count_visits,
    population_accuracy,
    population_state_accuracies,
    state_accuracies,
    state_accuracies_by_step,
    state_summary,
)
from craftrl.paper import SingleObservation


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.permutations(range(5)))
def test_names_of_states_do_not_matter(states, names):
    assert accuracy([names[s] for s in states], states) == 1


@pytest.mark.parametrize(
    ("labels", "states", "right"),
    [
        ([0, 0, 0, 0], [0, 0, 1, 2], 0.5),  # each label stands for one state
        ([0, 1, 2, 3], [0, 0, 0, 0], 0.25),
        ([0, 0, -1, -1], [0, 0, 0, 0], 0.5),  # unassigned is wrong
        ([-1, -1], [0, 1], 0),
    ],
)
def test_accuracy(labels, states, right):
    assert accuracy(labels, states) == right


def test_confusion_matching_and_a_relabelling_of_its_own_for_every_step():
    table = confusion([0, 0, 1, 1, -1], [2, 2, 0, 1, 0])
    assert table.tolist() == [[0, 0, 2], [1, 1, 0]]
    assert best_matching(table)[0] == 2
    assert accuracy_by_step([[0, 1], [1, 0]], [[0, 0], [1, 1]]).tolist() == [1, 1]
    with pytest.raises(InvalidDataError, match="one true state per label; 2 and 3 were given"):
        accuracy([0, 1], [0, 1, 1])


def test_many_labels_are_matched_too_and_none_match_nothing():
    names = np.random.default_rng(0).permutation(30)
    table = np.zeros((30, 30), dtype=np.int64)
    table[np.arange(30), names] = 5
    assert best_matching(table) == {r: int(c) for r, c in enumerate(names)}
    assert first_best_matching(np.stack([np.zeros((30, 30)), table]))[0] == 1
    assert best_matching(np.zeros((0, 3))) == {}


def test_single_states_are_judged_under_the_relabelling_that_is_best_for_all():
    labels, states = [0, 0, 0, 0, 1, 0, 1], [0, 0, 0, 0, 0, 1, 1]
    assert state_accuracies(labels, states).tolist() == [0.8, 0.5]
    assert state_accuracies(labels, states, at_least=3).tolist() == [0.8]
    assert state_accuracies([-1, -1, 0], [0, 1, 1]).tolist() == [0, 0.5]


def test_the_summary_weighs_states_and_steps_alike_and_leaves_out_the_first_step():
    of_steps = state_accuracies_by_step([[1, 0], [1, 0], [1, 1], [1, 0]], [[0, 0], [0, 0], [0, 0], [0, 1]])
    assert [of_states.tolist() for of_states in of_steps] == [[1.0], [2 / 3, 0.0]]
    assert state_summary(of_steps) == {"state_mean": pytest.approx(1 / 3), "state_worst": 0.0}
    unseen = [np.array([0.0]), np.array([]), np.array([0.5, 1.0])]
    assert state_summary(unseen) == {"state_mean": 0.75, "state_worst": 0.5}
    assert all(np.isnan(value) for value in state_summary(unseen[:2]).values())
    with pytest.raises(InvalidDataError, match=r"accuracies from 0 to 1; \[\[1\], \[2, 3\]\] was given"):
        state_summary([[1], [2, 3]])


@pytest.mark.parametrize("entangled", [True, False])
def test_population_values_are_what_many_samples_show(entangled):
    world = BitsExBMDP(horizon=5, n_features=6, seed=4, entangled=entangled)
    model = SingleObservation(CoordinateOracle()).fit(collect(world, world.paper_policies(), 50, seed=4).tau)

    def encoders(h):
        return [model.encoders_[h]]

    many = collect(world, world.paper_policies(), 20_000, seed=5)
    labels, states = model.transform(many.tau), many.truth.states
    assert accuracy_by_step(labels, states) == pytest.approx(population_accuracy(encoders, world), abs=0.02)
    seen, expected = state_accuracies_by_step(labels, states), population_state_accuracies(encoders, world)
    assert state_summary(seen) == pytest.approx(state_summary(expected), abs=0.03)
    assert [len(of_states) for of_states in seen] == [len(of_states) for of_states in expected] == [1, 2, 2, 2, 2]


def test_two_encoders_of_a_step_are_averaged_state_by_state():
    world = BitsExBMDP(horizon=5, n_features=6, seed=4, entangled=False)
    two = [CoordinateEncoder(feature, np.array([0, 1])) for feature in (1, 4)]
    of_steps = population_state_accuracies(lambda h: two, world)
    for h, found in enumerate(of_steps, start=1):
        np.testing.assert_allclose(found, world.feature_state_accuracy(h)[:, [1, 4]].mean(axis=1))
    overall = population_accuracy(lambda h: two, world)
    assert [of_states.mean() for of_states in of_steps] == pytest.approx(overall)


def test_population_accuracy_of_what_it_cannot_judge_is_refused():
    bits = BitsExBMDP(horizon=3, n_features=4)
    for encoders, world, told in (
        (3, bits, "encoders must be a function"),
        (lambda h: None, bits, r"encoders\(h\) must list the encoders of step 1; it gave None"),
        (lambda h: [len], bits, "needs coordinate encoders; that at h = 2 is"),
        (lambda h: [len], "bits", "world must know how accurate its coordinates are"),
    ):
        with pytest.raises(CraftError, match=told):
            population_accuracy(encoders, world)


# -- visits ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(0, 50))
def test_visits_are_those_of_a_loop(seed, n):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 5, size=3))
    agent = rng.integers(shape[0], size=n)
    s_h, s_next = (rng.integers(-1, size, size=n) for size in shape[1:])
    literal = np.zeros(shape)  # |D_k(s_h, s_{h+1})|, one trajectory at a time
    for k, s, t in zip(agent, s_h, s_next):
        literal[k, s, t] += s >= 0 and t >= 0
    counts = count_visits(agent, s_h, s_next, sizes=shape)
    assert counts.dtype.kind == "i"
    np.testing.assert_array_equal(counts, literal)


def test_without_sizes_the_table_ends_at_the_largest_label_and_small_types_do_not_overflow():
    assert count_visits([0, 0, 1], [2, -1, 0]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert count_visits([-1, -1]).shape == (0,)
    assert count_visits([2, 0, 2]).tolist() == [1, 0, 2]
    s = np.full(3, 100, dtype=np.int8)
    assert count_visits(s, s, s)[100, 100, 100] == 3


def test_labels_that_cannot_be_counted_are_refused():
    with pytest.raises(InvalidDataError, match=r"one more than the largest label at least, \[2, 3\]; \(2, 2\) given"):
        count_visits([0, 1], [0, 2], sizes=(2, 2))
    with pytest.raises(InvalidDataError, match="must count from 0 without large gaps"):
        count_visits([0, 2**40], [0, 2**40])
