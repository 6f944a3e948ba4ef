"""Counting visits, against a loop over trajectories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftrl.errors import InvalidDataError
from craftrl.states.visits import count_visits, pair_labels


def literal_visits(agent, s_h, s_next, shape, times):
    """|D_k(s_h, s_{h+1})|, one trajectory at a time."""
    counts = np.zeros(shape)
    for k, s, t, weight in zip(agent, s_h, s_next, times):
        if s >= 0 and t >= 0:
            counts[k, s, t] += weight
    return counts


@given(st.integers(0, 2**32 - 1), st.integers(0, 50))
def test_visits_are_those_of_a_loop(seed, n):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 5, size=3))
    agent = rng.integers(shape[0], size=n)
    s_h, s_next = (rng.integers(-1, size, size=n) for size in shape[1:])
    counts = count_visits(agent, s_h, s_next, sizes=shape)
    assert counts.dtype.kind == "i"
    np.testing.assert_array_equal(counts, literal_visits(agent, s_h, s_next, shape, np.ones(n)))
    times = rng.integers(4, size=n)
    weighted = count_visits(agent, s_h, s_next, sizes=shape, times=times)
    np.testing.assert_array_equal(weighted, literal_visits(agent, s_h, s_next, shape, times))


@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_pairs_have_one_number_each_in_their_order(seed, n):
    rng = np.random.default_rng(seed)
    s_h, s_next = rng.integers(-1, 4, size=(2, n))
    number = pair_labels(s_h, s_next)
    known = [(s, t) if s >= 0 and t >= 0 else None for s, t in zip(s_h, s_next)]
    assert [v < 0 for v in number] == [pair is None for pair in known]
    for i in range(n):
        for j in range(n):
            if known[i] is not None and known[j] is not None:
                assert (number[i] < number[j]) == (known[i] < known[j])


def test_without_sizes_the_table_ends_at_the_largest_label():
    assert count_visits([0, 0, 1], [2, -1, 0]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert count_visits([-1, -1]).shape == (0,)
    assert count_visits([2, 0, 2]).tolist() == [1, 0, 2]


def test_labels_of_small_types_do_not_overflow():
    s = np.full(3, 100, dtype=np.int8)
    assert count_visits(s, s, s)[100, 100, 100] == 3


def test_a_label_beyond_its_size_is_refused():
    with pytest.raises(InvalidDataError, match="must lie below 2, their number; 2 was given"):
        count_visits([0, 1], [0, 2], sizes=(2, 2))


def test_labels_and_weights_that_cannot_be_counted():
    with pytest.raises(InvalidDataError, match="must count from 0 without large gaps"):
        pair_labels([0, 2**40], [0, 2**40])
    with pytest.raises(InvalidDataError, match="times must hold 2 numbers, none below 0, one per trajectory"):
        count_visits([0, 1], times=[1, -1])
