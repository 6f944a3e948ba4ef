"""Observations that an encoder misread, corrected by the moves before and after them."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from craftrl import CRAFT, ClassifierOracle
from craftrl.estimators.misread import corrected
from craftrl.states.accuracy import accuracy

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


def test_where_all_begin_in_one_state_they_still_do():
    states = paths()
    states[:, 0] = 3
    states[::50, 1] = 9  # no walk gets there in one step
    assert (corrected(states, RING)[:, 0] == 3).all()
    states[:, 0] = -1
    assert (corrected(states, RING)[:, 0] == -1).all()


@pytest.mark.parametrize("labels", [np.zeros((5, 1), dtype=int), np.full((4, 3), -1), np.zeros((3, 4), dtype=int)])
def test_where_nothing_can_be_said_nothing_changes(labels):
    assert np.array_equal(corrected(labels, 1), labels)


def test_states_of_a_fit_are_right_where_single_observations_are_not():
    """One observation in twenty shows another cell, so that no encoder reads more than 95.6% of them right."""
    rng = np.random.default_rng(0)
    agent = np.repeat([0, 1], 1500)
    cell = np.zeros((3000, 8), dtype=int)
    for h in range(1, 8):
        to_the_right = np.where(agent == 0, 0.6, 0.2) + 0.15 * (cell[:, h - 1] % 2)
        cell[:, h] = (cell[:, h - 1] + np.where(rng.random(3000) < to_the_right, 1, -1)) % 8
    shown = np.where(rng.random(cell.shape) < 0.05, rng.integers(8, size=cell.shape), cell)
    x = np.eye(8)[shown] + rng.normal(0, 0.1, (*cell.shape, 8))
    trees = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=16)
    oracle = ClassifierOracle(trees, folds=2, calibrate=False)
    model = CRAFT(oracle, alpha=0.5, eta=0.05, nu=0.01, stationary=True).fit(x, agent)
    assert model.n_states_total_ == 8
    assert 0.95 < accuracy(model.transform(x)[:, 1:], cell[:, 1:]) < 0.96
    assert accuracy(model.labels_[:, 1:], cell[:, 1:]) > 0.98
