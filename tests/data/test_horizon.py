"""The first steps of a dataset, in memory and on disk."""

import numpy as np
import pytest
from craftrl.data.horizon import first_steps, well_reached
from craftrl.data.raw import Reader

from craftrl import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.errors import InvalidDataError, InvalidParameterError


def episodes(*lengths):
    """One agent's, with observations that tell trajectory and step."""
    return [np.array([[10 * i + h] for h in range(length)]) for i, length in enumerate(lengths)]


def test_a_dataset_is_cut_wherever_it_lies(tmp_path):
    tau = TrajectoryDataset.from_episodes([episodes(5, 2), episodes(4, 5)])
    tau.save(tmp_path / "data.h5")
    for whole in (tau, TrajectoryDataset.open(tmp_path / "data.h5")):
        cut = first_steps(whole, 3)
        assert (cut.H, cut.n, cut.lengths.tolist()) == (3, 4, [3, 2, 3, 3])
        assert np.array_equal(cut.at(3), tau.at(3))
        reader, out = Reader(cut.steps), np.empty((4, 1), tau.dtype)
        reader.read_into(2, 0, out)
        assert np.array_equal(out, tau.at(3))
        assert first_steps(whole, 5) is whole
    for H in (1, 6):
        with pytest.raises(InvalidParameterError, match=r"2\.\.5"):
            first_steps(tau, H)


@pytest.mark.parametrize(
    ("first", "second", "reached"),
    [
        ([4] * 5, [4] * 5, 4),  # few trajectories, all of one length
        ([4] * 5, [4] * 3 + [3] * 2, 4),  # fewer than a hundred: half must reach it
        ([4] * 5, [4] * 2 + [3] * 3, 3),
        ([9] * 60 + [3] * 60, [9] * 55 + [3] * 65, 9),
        ([9] * 60 + [3] * 60, [9] * 45 + [6] * 10 + [3] * 65, 6),  # fifty of each agent
        ([9] * 100 + [4] * 900, [9] * 99 + [5] * 901, 5),  # a tenth of each
        ([1] * 100, [9] * 100, 2),  # never less than two
    ],
)
def test_a_step_is_worth_learning_from_if_enough_of_every_agent_reach_it(first, second, reached):
    assert well_reached(TrajectoryDataset.from_episodes([episodes(*first), episodes(*second)])) == reached


def test_agents_keep_their_names_on_disk_and_in_what_is_learned_from_it(tmp_path):
    tau = TrajectoryDataset.from_episodes([episodes(5, 2), episodes(4, 5)])
    assert tau.names == (0, 1)
    named = TrajectoryDataset(tau.steps, tau.agent, tau.lengths, names=("alice", "bob"))
    named.save(tmp_path / "data.h5")
    again = TrajectoryDataset.open(tmp_path / "data.h5")
    assert again.names == first_steps(again, 3).names == as_dataset(tmp_path / "data.h5").names == ("alice", "bob")
    with pytest.raises(InvalidDataError, match="a name of its own"):
        TrajectoryDataset(tau.steps, tau.agent, tau.lengths, names=("alice", "alice"))
