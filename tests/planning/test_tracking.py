"""Where one is: a misread frame is told from a move that went another way."""

import numpy as np

from craftrl.planning import Grounding, StateGraph
from craftrl.planning.tracking import Tracker

LINE = np.repeat([[0, 1, 2, 3], [0, 4, 5, 6]], 100, axis=0)  # two ways from 0, by action 0 and by action 1


def tracked(labels, deterministic=True):
    """After so many labels of each move."""
    moves = StateGraph.from_states(LINE, np.zeros(len(LINE), int), sizes=(7,), shared=True)
    grounding = Grounding(moves, 2, deterministic=deterministic)
    for s, a, t in [(0, 0, 1), (0, 1, 4), *((s, a, s + 1) for s in (1, 2, 4, 5) for a in (0, 1))]:
        for _ in range(labels):
            grounding.add(s, a, t)
    tracker = Tracker(grounding)
    tracker.start(0)
    return tracker


def test_a_misread_frame_is_not_believed_against_well_tested_moves():
    tracker = tracked(labels=4)
    tracker.update(0, 6)  # nothing leads from 0 to 6
    assert tracker.node == 1
    tracker.update(0, 2)
    assert tracker.node == 2
    assert tracker.belief[2] > 0.99


def test_a_move_that_went_another_way_is_believed_once_the_next_frame_agrees():
    tracker = tracked(labels=4)
    tracker.update(0, 4)  # action 0 has always led to 1
    assert set(tracker.likely()) == {1, 4}
    tracker.update(0, 5)
    assert tracker.node == 5


def test_being_pushed_back_again_and_again_is_believed():
    """Up and down a ladder: a well-tested step up that ends one rung lower is a push, as in a collision."""
    rng = np.random.default_rng(0)
    rungs = np.clip(np.cumsum(np.pad(rng.choice([-1, 0, 1], (400, 11)), ((0, 0), (1, 0))), axis=1), 0, 10)
    grounding = Grounding(StateGraph.from_states(rungs, np.zeros(400, int), sizes=(11,), shared=True), 3)
    for rung in range(6):
        for _ in range(6):
            grounding.add(rung, 1, rung + 1)
    tracker = Tracker(grounding)
    tracker.start(2)
    for pushed_to in (1, 0):
        tracker.update(1, pushed_to)
    assert tracker.node == 0
    tracker.start(2)
    tracker.update(1, 9)  # nothing leads there: a misread frame
    assert tracker.node == 3


def test_what_was_hardly_tested_is_doubted_at_once():
    tracker = tracked(labels=1)
    tracker.update(0, 4)
    assert tracker.node == 4


def test_where_actions_slip_a_slip_is_believed():
    tracker = tracked(labels=8, deterministic=False)
    for _ in range(2):
        tracker.grounding.add(0, 0, 4)
    tracker.start(0)
    tracker.update(0, 4)
    assert tracker.node == 4


def test_frames_that_name_no_state_leave_what_is_expected():
    tracker = tracked(labels=4)
    tracker.update(1, -1)
    assert tracker.node == 4
    tracker.start(-1)
    assert (tracker.node, tracker.likely()) == (-1, [])
    tracker.update(0, -1)
    assert tracker.node == -1
    tracker.update(0, 3)
    assert tracker.node == 3
