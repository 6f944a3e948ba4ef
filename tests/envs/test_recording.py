"""Collection onto disk: nothing overwritten, and no state from which it cannot go on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from craftrl.data.truth import read_true_states

from craftrl.data import TrajectoryDataset
from craftrl.envs import collect, make_world, record
from craftrl.errors import InvalidParameterError

WORLD, POLICIES = make_world("bits", horizon=4, n_features=5)


@pytest.mark.parametrize("name", ["data.h5", "shards"])
def test_what_is_on_disk_is_what_was_collected(tmp_path: Path, name: str) -> None:
    record(WORLD, POLICIES, 20, tmp_path / name, seed=3)
    again = collect(WORLD, POLICIES, 20, seed=3)
    tau = TrajectoryDataset.open(tmp_path / name)
    assert all((tau.at(h) == again.tau.at(h)).all() for h in range(1, 5))
    assert (read_true_states(next(tmp_path.glob("*.truth.npz")), tau) == again.truth.states).all()
    with pytest.raises(InvalidParameterError, match="exists already; remove it, or choose another name"):
        record(WORLD, POLICIES, 20, tmp_path / name, seed=3)


def test_where_the_data_is_its_truth_is_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(tau: TrajectoryDataset, path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TrajectoryDataset, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            record(WORLD, POLICIES, 20, tmp_path / "x.h5", seed=3)
    assert not (tmp_path / "x.h5").exists()
    record(WORLD, POLICIES, 20, tmp_path / "x.h5", seed=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.h5", "x.truth.npz"]


@pytest.mark.parametrize("foreign", ["another seed", "no truth at all"])
def test_the_truth_of_other_data_is_not_overwritten(tmp_path: Path, foreign: str) -> None:
    truth = tmp_path / "x.truth.npz"
    if foreign == "another seed":
        record(WORLD, POLICIES, 20, tmp_path / "x.h5", seed=4)
    else:
        np.savez(truth, something=np.zeros(3))
    before = truth.read_bytes()
    with pytest.raises(InvalidParameterError, match=r"x.truth.npz; that file exists already and is of other data"):
        record(WORLD, POLICIES, 20, tmp_path / "x", seed=3)
    assert truth.read_bytes() == before
    assert not (tmp_path / "x").exists()


def test_two_formats_of_the_same_data_share_their_truth(tmp_path: Path) -> None:
    record(WORLD, POLICIES, 20, tmp_path / "x.h5", seed=3)
    record(WORLD, POLICIES, 20, tmp_path / "x", seed=3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x", "x.h5", "x.truth.npz"]
