"""Observations that an encoder misread, corrected by the moves before and after them."""

import numpy as np
import pytest

from craftrl.estimators.misread import corrected

RING = 12


def paths(n=1500, H=15, seed=0):
    """Walks on a ring of 12 cells, a step to either side or none."""
    rng = np.random.default_rng(seed)
    return (np.cumsum(rng.integers(-1, 2, size=(n, H)), axis=1) + 3) % RING


def misread(states, share, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(states.shape) < share, rng.integers(RING, size=states.shape), states)


def test_what_is_right_stays():
    states = paths()
    assert np.array_equal(corrected(states, RING), states)


def impossible(states):
    """The share of moves that no walk makes."""
    return ((np.diff(states, axis=1) + 1) % RING > 2).mean()


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_misread_states_are_corrected(share):
    """Where a walk was between two cells, either of three may be right; but none may be far off."""
    states = paths()
    read = misread(states, share)
    now = corrected(read, RING)
    assert impossible(now) < 0.15 * impossible(read)
    assert (now != states).mean() < 0.7 * (read != states).mean()
    assert (now != read)[read == states].mean() < 0.01


def test_what_is_read_as_what_is_learned():
    """Cell 5 is often read as cell 0, which is far away: after some rounds the moves know."""
    states = paths()
    read = np.where((states == 5) & (np.random.default_rng(2).random(states.shape) < 0.1), 0, states)
    now = corrected(read, RING)
    assert (read == states)[states == 5].mean() < 0.92
    assert (now == states)[states == 5].mean() > 0.98


def test_rare_states_with_moves_of_their_own_are_kept():
    """A cell that three trajectories of a thousand enter, and leave by the way they came, is no slip."""
    states = paths(n=3000)
    rng = np.random.default_rng(3)
    for row in rng.permutation(np.flatnonzero(states[:, 7] == 6))[:9]:
        states[row, 8:11] = RING
        states[row, 11:] = 6
    assert np.array_equal(corrected(states, RING + 1), states)


def test_unknown_states_stay_unknown_and_speak_for_nothing():
    states = paths()
    read = misread(states, 0.03)
    read[::7, 4] = -1
    read[::5, 10:] = -1
    now = corrected(read, RING)
    assert np.array_equal(now < 0, read < 0)
    known = read >= 0
    assert (now != states)[known].mean() < 0.7 * (read != states)[known].mean()


def test_names_of_states_and_the_order_of_trajectories_do_not_matter():
    read = misread(paths(), 0.05)
    now = corrected(read, RING)
    rng = np.random.default_rng(4)
    name, order = rng.permutation(RING), rng.permutation(len(read))
    assert (corrected(name[read], RING) == name[now]).mean() > 0.9999  # sums are rounded in another order
    assert (corrected(read[order], RING) == now[order]).mean() > 0.9999


def test_the_number_computed_at_once_does_not_matter(monkeypatch):
    read = misread(paths(), 0.05)
    whole = corrected(read, RING)
    monkeypatch.setattr("craftrl.estimators.misread.AT_ONCE", 10_000)
    assert (corrected(read, RING) == whole).mean() > 0.9999


@pytest.mark.parametrize("labels", [np.zeros((5, 1), dtype=int), np.full((4, 3), -1), np.zeros((3, 4), dtype=int)])
def test_where_nothing_can_be_said_nothing_changes(labels):
    assert np.array_equal(corrected(labels, 1), labels)
