"""tau: what goes in, what comes out, and what is refused."""

import numpy as np
import pytest

from craftrl import CRAFT, InvalidDataError, InvalidParameterError, TrajectoryDataset, load
from craftrl.envs import BitsExBMDP, collect


def test_agents_are_grouped():
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
    short = tau.select(np.random.default_rng(1).permutation(tau.n))
    for data, order in ((tau, np.arange(1000)), (short, np.arange(1000))):
        whole = np.stack([data.at(1), data.at(2)], axis=1)
        for h, seen in ((None, whole), (2, whole[:, 1])):
            blocks = list(data.blocks(7 * 300, h))
            assert len(blocks) > 3
            assert {rows.start % 500 % 64 for rows, _ in blocks} == {0}
            assert np.array_equal(np.concatenate([order[rows] for rows, _ in blocks]), order)
            assert all(np.array_equal(seen[rows], block) for rows, block in blocks)


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
        (None, "Give a list with one entry per agent; None was given"),
        ({"a": 1}, "Give a list with one entry per agent; {'a': 1} was given"),
        ([1, 2], "an array or a list with at least one trajectory; agent 0 has none, but 1; leave it out"),
        ([], "trajectories of at least two agents; those of 0 were given"),
        ([GOOD], "trajectories of at least two agents; those of 1 were given"),
        ([GOOD, GOOD[:0]], "agent 1 has none, but array"),
        ([GOOD, np.zeros((3, 4, 5))], r"must have one shape; shapes \(2,\) and \(5,\) were given"),
        ([GOOD[:, :1], GOOD[:, :1]], "at least two steps; these have one"),
        ([GOOD, GOOD * np.nan], "those of agent 1 contain NaN or infinity"),
        ([GOOD, GOOD.astype(str)], "must be numbers in an array, none of them masked; those of agent 1 have dtype"),
        ([np.zeros(3), np.zeros(3)], r"shape \(trajectories, steps, ...\); agent 0's has shape \(3,\)"),
    ],
)
def test_bad_arrays_are_refused_in_one_sentence(given, message):
    with pytest.raises(InvalidDataError, match=message):
        TrajectoryDataset.from_arrays(given)


def test_an_empty_episode_is_refused():
    with pytest.raises(InvalidDataError, match="Each episode must hold at least one observation"):
        TrajectoryDataset.from_episodes([[np.zeros((0, 2))], [np.zeros((3, 2))]])


@pytest.mark.parametrize("h", [0, 5, -1])
def test_h_counts_from_one(h):
    with pytest.raises(InvalidParameterError, match=r"h must be one of 1..4; h ="):
        TrajectoryDataset.from_arrays([GOOD, GOOD]).at(h)


@pytest.mark.parametrize("i", [-1, 6, 0.5, True])
def test_trajectories_are_numbered_from_zero(i):
    with pytest.raises(InvalidParameterError, match=r"i must be one of 0..5"):
        TrajectoryDataset.from_arrays([GOOD, GOOD]).episode(i)


@pytest.mark.parametrize("lengths", [[4, 4], [0, 4, 4, 4, 4, 4], [5, 4, 4, 4, 4, 4], "long"])
def test_lengths_that_cannot_be_are_refused(lengths):
    assert TrajectoryDataset.from_arrays([GOOD, GOOD], [1, 2, 3, 4, 1, 2]).running(2).tolist() == [2, 2]
    with pytest.raises(InvalidDataError, match=r"lengths? "):
        TrajectoryDataset.from_arrays([GOOD, GOOD], lengths)


# -- the first steps ----------------------------------------------------------------------------------------------


def episodes(*lengths):
    """One agent's, with observations that tell trajectory and step."""
    return [np.array([[10 * i + h] for h in range(length)]) for i, length in enumerate(lengths)]


def test_a_dataset_is_cut_wherever_it_lies(tmp_path):
    tau = TrajectoryDataset.from_episodes([episodes(5, 2), episodes(4, 5)])
    tau.save(tmp_path / "data")
    for whole in (tau, TrajectoryDataset.open(tmp_path / "data")):
        cut = whole.first_steps(3)
        assert (cut.H, cut.n, cut.lengths.tolist()) == (3, 4, [3, 2, 3, 3])
        assert np.array_equal(cut.at(3), tau.at(3))
        assert np.array_equal(cut.rows([3, 0]), tau.rows([3, 0])[:, :3])
        assert whole.first_steps(5) is whole
    for H in (1, 6):
        with pytest.raises(InvalidParameterError, match=r"2\.\.5"):
            tau.first_steps(H)


@pytest.mark.parametrize(
    ("first", "second", "reached"),
    [
        ([4] * 5, [4] * 5, 4),  # few trajectories, all of one length
        ([4] * 5, [4] * 3 + [3] * 2, 4),  # fewer than a hundred: half must reach it
        ([4] * 5, [4] * 2 + [3] * 3, 3),
        ([4] * 1000, [4] * 49 + [3] * 951, 3),  # many: fifty
        ([4] * 1000, [4] * 50 + [3] * 950, 4),
        ([4] * 5, [1] * 5, 2),
    ],
)
def test_the_last_step_that_enough_reach(first, second, reached):
    assert TrajectoryDataset.from_episodes([episodes(*first), episodes(*second)]).well_reached() == reached


# -- what tells data apart ----------------------------------------------------------------------------------------


def test_a_fingerprint_is_of_the_data_wherever_it_lies(tmp_path):
    x = np.random.default_rng(0).random((2, 60, 4, 3))
    tau = TrajectoryDataset.from_arrays(x)
    tau.save(tmp_path / "data")
    listed = TrajectoryDataset.from_episodes([list(own) for own in x])
    assert tau.fingerprint() == TrajectoryDataset.open(tmp_path / "data").fingerprint() == listed.fingerprint()
    assert tau.fingerprint() != TrajectoryDataset.from_arrays(x + 1).fingerprint()


@pytest.mark.parametrize("change", ["observation", "agent", "length"])
def test_a_fingerprint_changes_with_the_data(change):
    given = [[np.zeros((3, 2)) for _ in range(5)] for _ in range(2)]
    before = TrajectoryDataset.from_episodes(given)
    marks = before.fingerprint(), before.digest()
    if change == "observation":
        given[1][4][2, 1] = 1
    elif change == "agent":
        given[0].append(given[1].pop())
    else:
        given[0][0] = given[0][0][:2]
    after = TrajectoryDataset.from_episodes(given)
    assert after.fingerprint() != marks[0]
    assert after.digest() != marks[1]


def test_a_digest_sees_every_observation(tmp_path):
    x = np.zeros((2, 400, 3, 2), dtype=np.uint8)
    changed = x.copy()
    changed[1, 30, 1, 1] = 1  # one of 800 trajectories, none of those that the fingerprint reads
    first, second = TrajectoryDataset.from_arrays(x), TrajectoryDataset.from_arrays(changed)
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    stored = [TrajectoryDataset.open(tmp_path / name) for name in ("first", "second")]
    assert first.fingerprint() == second.fingerprint() == stored[1].fingerprint()
    assert len({tau.digest() for tau in (first, second, *stored, stored[0].first_steps(2))}) == 5
    assert stored[0].digest() == TrajectoryDataset.open(tmp_path / "first").digest()


def test_a_saved_model_says_what_it_was_fitted_to(tmp_path):
    world = BitsExBMDP(horizon=4, n_features=6, seed=0)
    tau = collect(world, world.paper_policies(), 500, seed=0).tau
    tau.notes = {"reading": {"stride": 2}}
    model = CRAFT(alpha=1.0, eta=0.1, nu=0.1).fit(tau)
    assert model.data_ == {
        "trajectories": [500, 500],
        "steps": 4,
        "observation": [6],
        "dtype": "uint8",
        "fingerprint": tau.fingerprint(),
        "reading": {"stride": 2},
    }
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").data_ == model.data_
