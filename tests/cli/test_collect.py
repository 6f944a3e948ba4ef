"""`craftrl collect`: data apart from its truth, the same for the same seeds, and nothing overwritten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command_line import collect, complaint
from craftrl.cli import main
from craftrl.data import TrajectoryDataset


def test_collect_keeps_the_truth_out_of_the_data(data: Path) -> None:
    tau = TrajectoryDataset.open(data)
    assert (tau.n, tau.H, tau.K, tau.obs_shape) == (3000, 5, 2, (12,))
    with np.load(data.with_name("data.truth.npz")) as truth:
        assert truth["states"].shape == (3000, 5)
        assert truth["actions"].shape == (3000, 4)
    assert sorted(p.name for p in data.parent.iterdir() if p.suffix != ".json") == ["data.h5", "data.truth.npz"]


def test_collect_depends_on_its_seeds_alone(tmp_path: Path, data: Path) -> None:
    collect(tmp_path / "same.h5")
    collect(tmp_path / "other.h5", "--seed", "1")
    first, same, other = (TrajectoryDataset.open(p) for p in (data, tmp_path / "same.h5", tmp_path / "other.h5"))
    assert (first.at(5) == same.at(5)).all()
    assert (first.at(5) != other.at(5)).any()


def test_collect_overwrites_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = data.read_bytes()
    argv = ["collect", "--world", "bits", "--n", "5", "--out", str(data)]
    assert "data.h5 exists already; remove it, or choose another name." in complaint(capsys, *argv)
    assert data.read_bytes() == before


def test_collect_killed_between_its_files_goes_on(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def killed(tau: TrajectoryDataset, path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TrajectoryDataset, "save", killed)
        assert collect(tmp_path / "x.h5") == 130
    assert [p.name for p in tmp_path.iterdir()] == ["x.truth.npz"]
    argv = ["collect", "--world", "bits", "--n", "5", "--out", str(tmp_path / "x.h5")]
    assert "x.truth.npz; that file exists already and is of other data; remove it" in complaint(capsys, *argv)
    assert collect(tmp_path / "x.h5") == 0
    assert (TrajectoryDataset.open(tmp_path / "x.h5").at(5) == TrajectoryDataset.open(data).at(5)).all()
    assert (tmp_path / "x.truth.npz").read_bytes() == data.with_name("data.truth.npz").read_bytes()


def test_worlds_that_others_made_are_collected_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("minigrid")
    out = tmp_path / "grid.h5"
    argv = ["--world", "minigrid", "--layout", "MiniGrid-Empty-5x5-v0", "--walkers", "1", "--horizon", "3", "--n", "4"]
    assert main(["collect", *argv, "--out", str(out)]) == 0
    tau = TrajectoryDataset.open(out)
    assert (tau.n, tau.H, tau.obs_shape) == (8, 3, (30, 30, 3))
    assert "grid.truth.npz" in capsys.readouterr().out
    told = complaint(capsys, "theory", "assumptions", "--world", "minigrid")
    assert "minigrid can only be played; collect data from it, and give that with --data" in told


def test_an_unknown_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["collect", "--world", "chess", "--n", "5", "--out", str(tmp_path / "x.h5")]
    assert (
        "must be one of bits, lock, multimaze, pixels, freeway, seaquest, minigrid, doom; 'chess' was given"
        in complaint(capsys, *argv)
    )


def test_collect_refuses_options_of_other_worlds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["collect", "--world", "multimaze", "--features", "9", "--n", "5", "--out", str(tmp_path / "x.h5")]
    assert "The world multimaze takes horizon and seed; n_features was given; leave it out" in complaint(capsys, *argv)
    assert list(tmp_path.iterdir()) == []


def test_seeds_are_not_negative(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["collect", "--world", "bits", "--n", "5", "--seed", "-1", "--out", str(tmp_path / "x.h5")]
    with pytest.raises(SystemExit, match="2"):
        main(argv)
    assert "must be a whole number of at least 0; '-1' was given" in capsys.readouterr().err
