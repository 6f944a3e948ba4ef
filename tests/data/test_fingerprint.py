"""What a model says of the data that it was fitted to."""

import numpy as np
import pytest

import craftrl
from craftrl import CRAFT, TrajectoryDataset
from craftrl.data.fingerprint import described, fingerprint, whole_digest
from craftrl.envs import BitsExBMDP, collect, record

WORLD = BitsExBMDP(horizon=4, n_features=6, seed=0)
AGENTS = WORLD.paper_policies()


def test_a_fingerprint_is_of_the_data_wherever_it_lies(tmp_path):
    tau = record(WORLD, AGENTS, 60, tmp_path / "data.h5", seed=0).tau
    assert fingerprint(tau) == fingerprint(collect(WORLD, AGENTS, 60, seed=0).tau)
    assert fingerprint(tau) == fingerprint(TrajectoryDataset.open(tmp_path / "data.h5"))
    assert fingerprint(tau) != fingerprint(collect(WORLD, AGENTS, 60, seed=1).tau)


@pytest.mark.parametrize("change", ["observation", "agent", "length"])
def test_a_fingerprint_changes_with_the_data(change):
    episodes = [[np.zeros((3, 2)) for _ in range(5)] for _ in range(2)]
    before = fingerprint(TrajectoryDataset.from_episodes(episodes))
    if change == "observation":
        episodes[1][4][2, 1] = 1
    elif change == "agent":
        episodes[0].append(episodes[1].pop())
    else:
        episodes[0][0] = episodes[0][0][:2]
    assert fingerprint(TrajectoryDataset.from_episodes(episodes)) != before


def test_a_whole_digest_sees_every_observation_and_nothing_beyond_an_end(tmp_path):
    x = np.zeros((2, 400, 3, 2), dtype=np.uint8)
    changed = x.copy()
    changed[1, 30, 1, 1] = 1  # one of 800 trajectories, none of those that the fingerprint reads
    first, second = TrajectoryDataset.from_arrays(x), TrajectoryDataset.from_arrays(changed)
    assert fingerprint(first) == fingerprint(second)
    assert whole_digest(first) != whole_digest(second)
    first.save(tmp_path / "x.h5")
    assert whole_digest(TrajectoryDataset.open(tmp_path / "x.h5")) == whole_digest(first)
    short = [[np.zeros((2, 2)), np.zeros((3, 2))] for _ in range(2)]
    padded = TrajectoryDataset.from_episodes(short)
    padded.steps.array[2, 0] = 7
    assert whole_digest(padded) == whole_digest(TrajectoryDataset.from_episodes(short))


def test_a_saved_model_says_what_it_was_fitted_to(tmp_path):
    tau = collect(WORLD, AGENTS, 500, seed=0).tau
    model = CRAFT(alpha=1.0, eta=0.1, nu=0.1).fit(tau)
    assert model.data_ == described(tau)
    assert model.data_["trajectories"] == [500, 500]
    model.save(tmp_path / "model")
    assert craftrl.load(tmp_path / "model").data_ == model.data_
    assert craftrl.load(tmp_path / "model").data_["fingerprint"] == fingerprint(tau)
