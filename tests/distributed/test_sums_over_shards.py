"""Counts of a dataset are the sums of the counts of its parts, whatever the parts."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from craftrl import CoordinateOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.spread import HERE, Recipe, SpreadLabels, below, paired, renamed, tally
from craftrl.distributed import LocalExecutor
from craftrl.distributed.parts import PackedShard, PartDataset, beginnings, step_of
from craftrl.distributed.places import ShardPlaces
from craftrl.engine.counting import group_counts, pair_counts, pair_losses
from craftrl.engine.dependence import agent_dependence, dependence, likely_dependence
from craftrl.engine.packing import constant_step
from craftrl.engine.spread_step import SpreadStep


def cut(tau, ends):
    """The places of a dataset cut at these trajectories, and wherever an agent ends."""
    bounds = sorted({0, tau.n, *np.cumsum(tau.counts).tolist(), *(end for end in ends if end < tau.n)})
    oracle, shards = CoordinateOracle(3), []
    for start, stop in pairwise(bounds):
        k = int(tau.agent[start])
        part = PartDataset(Rows(tau.steps, start, stop), k, tau.K, tau.lengths[start:stop])
        first = np.where(np.arange(tau.K) == k, start - tau.agent_slice(k).start, 0)
        steps = [oracle.evaluate(part, h) for h in range(1, tau.H + 1)]
        steps = tuple(type(step)(step.planes, step.present, step.counts, first) for step in steps)
        shards.append(PackedShard(steps, constant_step(part, 1), k))
    return ShardPlaces(LocalExecutor(), shards)


class Rows:
    """Some trajectories of a dataset in memory."""

    def __init__(self, steps, start, stop):
        self.steps, self.start = steps, start
        self.shape = (steps.shape[0], stop - start, *steps.shape[2:])
        self.dtype = steps.dtype

    def read(self, step, start, stop):
        return self.steps.read(step, self.start + start, self.start + stop)


@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 150), max_size=6), st.integers(2, 3))
def test_everything_that_is_counted_adds_up(seed, ends, K):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, size=(K, 50))
    episodes = [[rng.integers(0, 3, size=(length, 4)) for length in own] for own in np.maximum(lengths, [[3]] * K)]
    episodes = [[x[:n] for x, n in zip(own, [3, *ns[1:]])] for own, ns in zip(episodes, lengths)]
    tau = TrajectoryDataset.from_episodes(episodes)
    places = cut(tau, ends)
    whole = [CoordinateOracle(3).evaluate(tau, h) for h in (1, 2, 3)]
    spread = [SpreadStep(places, Recipe(step_of, HERE, h), 4, 3, tau.counts) for h in (1, 2, 3)]
    first, then = ([steps[0].among(steps[1]), steps[1]] for steps in (whole, spread))
    few = np.array([2, 0])
    for count in (
        lambda steps, pair: steps[2].totals,
        lambda steps, pair: steps[1].value_counts,
        lambda steps, pair: pair_counts(*steps[:2]),
        lambda steps, pair: pair_counts(steps[0].half(1, 5), steps[1].half(1, 5)),
        lambda steps, pair: pair_losses(*steps[1:], Grid.from_bounds(0.5, 0.1)),
        lambda steps, pair: agent_dependence(*pair),
        lambda steps, pair: likely_dependence(pair[0], pair[0], pair[1]),
        lambda steps, pair: dependence(pair[0].take(few), pair[0], pair[1].take(few)),
        lambda steps, pair: dependence(pair[0].nothing(), pair[0], pair[1]),
    ):
        assert np.array_equal(count(whole, first), count(spread, then))
    names = np.array([1, 0, -1])
    for step, other in ((0, 1), (2, 1)):
        labels = []
        for steps in (whole, spread):
            label = renamed(paired(steps[step].values(0), below(steps[other].values(1), 2), 2), np.arange(6)[::-1])
            labels.append(label)
        assert np.array_equal(tally(labels[0], 6), tally(labels[1], 6))
        assert np.array_equal(group_counts(whole[1], labels[0], 6), group_counts(spread[1], labels[1], 6))
    renames = [tally(renamed(renamed(steps[0].values(3), names), names[:2]), 3) for steps in (whole, spread)]
    assert np.array_equal(*renames)


@pytest.fixture
def places():
    tau = TrajectoryDataset.from_arrays([np.zeros((5, 2, 1), dtype=int)] * 2)
    return cut(tau, [3])


def test_questions_of_many_threads_travel_together_and_answers_find_their_way(places):
    sent = []
    ask = places._ask
    places._ask = lambda questions: (sent.append(len(questions)), ask(questions))[1]
    labels = SpreadLabels(places, Recipe(beginnings, HERE), 1)

    def work(times):
        """So many questions, one after the other."""
        for i in range(times):
            found = tally(renamed(labels, np.array([i + times])), i + times + 1)
            assert found[-1] == 10
        return times

    before = threading.active_count()
    assert list(places.together(work, [3, 1, 0, 2])) == [3, 1, 0, 2]
    assert sent == [3, 2, 1]
    assert threading.active_count() == before


def test_an_error_in_one_thread_leaves_no_other_waiting(places):
    labels = SpreadLabels(places, Recipe(beginnings, HERE), 1)

    def work(item):
        tally(renamed(labels, np.array([item])), item + 1)
        if item == 1:
            raise ValueError("one")
        return int(tally(labels, item + 1)[0])

    with pytest.raises(ValueError, match="one"):
        list(places.together(work, [0, 1, 2]))

    def wrong(item):
        return tally(SpreadLabels(places, Recipe(failing, HERE), 1), 1)

    with pytest.raises(ZeroDivisionError):
        list(places.together(wrong, [0, 1, 2]))


def failing(here):
    return 1 / 0


def test_recipes_are_equal_if_they_make_the_same(places):
    labels = SpreadLabels(places, Recipe(beginnings, HERE), 1)
    assert renamed(labels, np.array([3])) == renamed(labels, np.array([3]))
    assert renamed(labels, np.array([3])) != renamed(labels, np.array([4]))
    assert renamed(labels, np.array([3])) != renamed(labels, np.array([3], dtype=np.int32))
    # Renamed twice is renamed once.
    assert renamed(renamed(labels, np.array([1])), np.array([5, 3])) == renamed(labels, np.array([3]))


def test_neighbouring_shards_are_taken_together(tmp_path, monkeypatch):
    """A few tasks for each worker, never shards of two agents, never more than a task may read."""
    from craftrl.distributed import parts
    from craftrl.distributed.dataset import parts_of
    from sharding import LOCAL, write_shards

    rng = np.random.default_rng(0)
    x = [rng.integers(0, 2, size=(n, 2, 3), dtype=np.uint8) for n in (100, 60)]
    found = [part for part, _ in parts_of(write_shards(TrajectoryDataset.from_arrays(x), tmp_path / "s", 7), LOCAL)]

    def sizes(workers):
        groups = parts.taken_together(found, workers)
        assert [part for group in groups for part in group] == found
        assert all(len({part.shard.agent for part in group}) == 1 for group in groups)
        return [sum(part.shard.n for part in group) for group in groups]

    assert sizes(1) == [35, 35, 30, 35, 25]  # 160 trajectories, four tasks: 40 at most
    assert max(sizes(10)) == 7
    monkeypatch.setattr(parts, "AT_MOST", 14 * 6)  # bytes of 14 trajectories
    assert max(sizes(1)) == 14
