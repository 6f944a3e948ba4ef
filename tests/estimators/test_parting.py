"""States that are two in truth, found by their moves and confirmed by observations."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from craftrl import ClassifierOracle, TrajectoryDataset
from craftrl.core.encoders import read_states
from craftrl.core.oracle import OracleCalls
from craftrl.estimators.fused_states import fused_states
from craftrl.estimators.matching import match_states
from craftrl.estimators.misread import corrected
from craftrl.estimators.parting import part_fused
from craftrl.estimators.sharing import Shared
from craftrl.states.accuracy import accuracy

FUSED = np.array([0, 1, 2, 2, 3, 4])  # what cells 0..5 are called where 2 and 3 are one


def reads(tau):
    return lambda encoder, h: read_states(encoder, tau, h)


def walk(n, H, seed, memory=False):
    """Cells 0..5 of walks on a line by two agents, the second of which prefers to go up; or of ones that keep on."""
    rng = np.random.default_rng(seed)
    agent = np.repeat([0, 1], n // 2)
    cell = np.full((n, H), 2)
    last = rng.choice([-1, 1], size=n)
    for h in range(1, H):
        fresh = np.where(rng.random(n) < 0.4 + 0.2 * agent, 1, -1) * (rng.random(n) < 0.8)
        last = np.where((rng.random(n) < 0.8) & (last != 0), last, fresh) if memory else fresh
        cell[:, h] = np.clip(cell[:, h - 1] + last, 0, 5)
    return cell, agent


def shared_states(labels, tau):
    """What is shared when the one encoder says `labels`, which are found at all steps."""
    n_states = int(labels.max()) + 1
    found = np.ones((n_states, tau.H), dtype=bool)
    encoders = [lambda x: x[:, 0].astype(int)] * tau.H
    matching = match_states(encoders, tau_states(tau), tau, reads(tau))
    return Shared(encoders[0], labels, n_states, np.full(tau.H, n_states), found, matching)


def tau_states(tau):
    return np.stack([tau.at(h)[:, 0].astype(int) for h in range(1, tau.H + 1)], axis=1)


def prepared(tau):
    return ClassifierOracle(DecisionTreeClassifier(random_state=0), folds=2, calibrate=False).prepare(tau)


def dataset(cell, agent, seed=0):
    """Observations: the cell, and noise."""
    x = np.stack([cell, np.random.default_rng(seed).normal(size=cell.shape)], axis=2).astype(np.float32)
    return TrajectoryDataset.from_arrays([x[agent == k] for k in (0, 1)])


def test_two_cells_that_are_called_one_are_told_apart_by_their_moves():
    cell, agent = walk(2000, 12, seed=3)
    (state,) = fused_states(FUSED[cell], agent)
    true = cell[state.row, state.column]
    assert state.state == 2
    assert set(true) == {2, 3}
    assert accuracy(state.part, true) == 1.0
    assert len(true) > 500


@pytest.mark.parametrize("misread", [0.0, 0.02, 0.1])
def test_cells_that_are_one_are_left_alone(misread):
    cell, agent = walk(2000, 12, seed=4)
    rng = np.random.default_rng(0)
    read = np.where(rng.random(cell.shape) < misread, rng.integers(6, size=cell.shape), cell)
    assert fused_states(corrected(read, 6), agent) == []


def test_parts_that_an_encoder_reads_are_states():
    cell, agent = walk(600, 10, seed=5)
    tau = dataset(cell, agent)
    parted = part_fused(prepared(tau), shared_states(FUSED[cell], tau), 0.05, True, OracleCalls())
    assert parted.n_states == 6
    assert accuracy(parted.labels[:, 1:], cell[:, 1:]) == 1.0
    assert len(parted.found) == 6
    assert parted.n_at[-1] == 6


def test_an_agent_with_a_memory_makes_no_states_that_nobody_sees():
    """Who came from the left goes on to the right: the moves look as if every cell were two."""
    cell, agent = walk(600, 10, seed=6, memory=True)
    tau = dataset(cell, agent)
    assert fused_states(cell, agent)
    whole = shared_states(cell, tau)
    assert part_fused(prepared(tau), whole, 0.05, True, OracleCalls()) is whole


def test_three_cells_that_are_called_one_are_parted_one_after_the_other():
    cell, agent = walk(2000, 12, seed=7)
    tau = dataset(cell, agent)
    one_of_three = np.array([0, 1, 2, 2, 2, 3])
    parted = part_fused(prepared(tau), shared_states(one_of_three[cell], tau), 0.05, True, OracleCalls())
    assert parted.n_states == 6
    assert accuracy(parted.labels[:, 1:], cell[:, 1:]) > 0.99


def test_short_videos_have_no_before_and_after():
    assert fused_states(np.zeros((50, 2), dtype=int), np.zeros(50, dtype=int)) == []
