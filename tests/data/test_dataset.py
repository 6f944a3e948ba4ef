"""tau: what goes in, what comes out, and what is refused."""

import numpy as np
import pytest

from craftrl import InvalidDataError, InvalidParameterError, TrajectoryDataset


def test_time_first_agents_grouped():
    x_a, x_b = np.arange(2 * 3 * 4).reshape(2, 3, 4), 100 + np.arange(5 * 3 * 4).reshape(5, 3, 4)
    tau = TrajectoryDataset.from_arrays([x_a, x_b])
    assert (tau.n, tau.H, tau.K, tau.obs_shape) == (7, 3, 2, (4,))
    assert tau.counts.tolist() == [2, 5]
    assert np.array_equal(tau.at(1)[:2], x_a[:, 0])
    assert np.array_equal(tau.at(3)[tau.agent_slice(1)], x_b[:, 2])
    assert tau.all_present


def test_episodes_of_unequal_length_are_present_while_they_last():
    tau = TrajectoryDataset.from_episodes([[np.ones((2, 3)), np.ones((4, 3))], [np.ones((3, 3))]])
    assert (tau.H, tau.n) == (4, 3)
    assert tau.present(3).tolist() == [False, True, True]
    assert tau.at(4)[0].tolist() == [0, 0, 0]
    assert not tau.all_present


def test_agents_may_have_different_horizons():
    tau = TrajectoryDataset.from_arrays([np.ones((2, 3, 1)), np.ones((2, 5, 1))])
    assert tau.lengths.tolist() == [3, 3, 5, 5]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.float32])
@pytest.mark.parametrize("obs", [(), (3,), (4, 4, 3)])
def test_any_shape_and_dtype(dtype, obs):
    x = np.ones((3, 2, *obs), dtype=dtype)
    tau = TrajectoryDataset.from_arrays([x, x])
    assert tau.dtype == dtype
    assert tau.at(2).shape == (6, *obs)


def test_blocks_are_the_whole():
    x = np.random.default_rng(0).integers(0, 255, size=(500, 2, 7)).astype(np.uint8)
    tau = TrajectoryDataset.from_arrays([x, x])
    blocks = list(tau.blocks(2, block_bytes=7 * 100))
    assert len(blocks) > 3
    assert np.array_equal(np.concatenate([b for _, b in blocks]), tau.at(2))
    assert all(np.array_equal(tau.at(2)[rows], b) for rows, b in blocks)


def test_select_regroups_by_other_agents():
    x = np.arange(6).reshape(6, 1, 1) + np.zeros((6, 2, 1), dtype=int)
    tau = TrajectoryDataset.from_arrays([x[:3], x[3:]])
    chosen = tau.select([5, 0, 3], agent=[1, 0, 0])
    assert chosen.agent.tolist() == [0, 0, 1]
    assert chosen.at(1).ravel().tolist() == [0, 3, 5]


GOOD = np.zeros((3, 4, 2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "Give a list with one entry per agent; NoneType was given"),
        ({"a": GOOD, "b": GOOD}, "Give a list with one entry per agent; dict was given"),
        ([1, 2], "an array or a list of trajectories; agent 0's is int"),
        ([], "trajectories of at least two agents; those of 0 were given"),
        ([GOOD], "trajectories of at least two agents; those of 1 were given"),
        ([GOOD, GOOD[:0]], "agent 1 has none; leave it out"),
        ([GOOD, np.zeros((3, 4, 5))], r"must have one shape; shapes \(2,\) and \(5,\) were given"),
        ([GOOD[:, :1], GOOD[:, :1]], "at least two steps; these have 1"),
        ([GOOD, GOOD * np.nan], "those of agent 1 contain NaN or infinity"),
        ([GOOD, GOOD.astype(str)], "must be numbers in an array; those of agent 1 have dtype"),
        ([np.zeros(3), np.zeros(3)], r"shape \(trajectories, steps, ...\); agent 0's has shape \(3,\)"),
    ],
)
def test_bad_arrays_are_refused_in_one_sentence(given, message):
    with pytest.raises(InvalidDataError, match=message):
        TrajectoryDataset.from_arrays(given)


def test_an_empty_episode_is_refused():
    with pytest.raises(InvalidDataError, match="Each episode must hold at least one observation"):
        TrajectoryDataset.from_episodes([[np.zeros((0, 2))], [np.zeros((3, 2))]])


def test_one_long_episode_among_many_short_ones_may_need_more_than_there_is():
    long = np.broadcast_to(np.uint8(0), (2**40, 3))  # takes no memory itself
    with pytest.raises(InvalidParameterError, match=r"5 trajectories of up to 10\d* steps must fit into memory"):
        TrajectoryDataset.from_episodes([[np.zeros((3, 3))] * 4, [long]])


@pytest.mark.parametrize("h", [0, 5, -1])
def test_h_counts_from_one(h):
    with pytest.raises(InvalidParameterError, match=r"h must be one of 1..4; h ="):
        TrajectoryDataset.from_arrays([GOOD, GOOD]).at(h)
