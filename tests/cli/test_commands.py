"""The small commands: collect, inspect, evaluate, encode, actions, render, export, report and theory."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from command_line import complaint, craftrl
from craftrl import load
from craftrl.cli import main
from craftrl.data import TrajectoryDataset, read_true_states

# Every command that writes a file and can replace one: its line, the option and the ending.
WRITERS = {
    "encode": ("encode model data", "--out", ".csv"),
    "actions": ("actions model data", "--out", ".npz"),
    "report": ("report model data --diagnose 0", "--out", ".html"),
    "inspect": ("inspect data", "--sheet", ".png"),
}


def test_collect_keeps_the_truth_apart_and_depends_on_its_seeds_alone(made: Path, tmp_path: Path) -> None:
    tau = TrajectoryDataset.open(made / "data")
    assert (tau.n, tau.H, tau.K, tau.obs_shape) == (3000, 5, 2, (12,))
    assert read_true_states(made / "data").shape == (3000, 5)
    for name, seed in (("same", 0), ("other", 1)):
        line = f"collect --world bits --horizon 5 --features 12 --n 1500 --seed {seed} --out {tmp_path / name}"
        assert main(line.split()) == 0
    same, other = (TrajectoryDataset.open(tmp_path / name) for name in ("same", "other"))
    assert (tau.at(5) == same.at(5)).all()
    assert (tau.at(5) != other.at(5)).any()


def test_collect_goes_on_and_finds_its_work_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["collect", "--world", "bits", "--horizon", "3", "--features", "4", "--out", str(tmp_path / "data"), "--n"]
    assert main([*line, "50"]) == 0
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()}
    assert main([*line, "50"]) == 0
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "data").iterdir()} == before
    assert "data exists already; remove it, or choose another name" in complaint(capsys, *line, "60")


def test_inspect_draws_and_says_which_agents_to_compare(here: Path) -> None:
    out = craftrl("inspect", "data", "--pairs", "--seed", "1", cwd=here)
    assert "2 agents, 3000 episodes" in out
    assert "contact sheet: data.sheet.png" in out
    assert Path("data.sheet.png").stat().st_size > 100
    assert re.search(r"0 and 1 +1,500 \+ 1,500 +\d+% +4 of 4 .*worth comparing", out)
    assert "Compare 0 with 1 first" in out
    assert "contact sheet" not in craftrl("inspect", "data", "--no-sheet", cwd=here)


def test_evaluate_with_and_without_truth(here: Path) -> None:
    out = craftrl("evaluate", "model", "data", "--truth", cwd=here)
    mean = re.search(r"mean over h = 1\.\.5: ([\d.]+)%, over h = 2\.\.5: ([\d.]+)%", out)
    single = re.search(r"single states, h = 2\.\.5: mean ([\d.]+)%, worst ([\d.]+)%", out)
    chance = re.search(r"one state named at every step: mean over h = 2\.\.5: ([\d.]+)%", out)
    assert mean is not None
    assert single is not None
    assert chance is not None
    assert float(mean[2]) >= float(single[1]) >= float(single[2]) > 99
    assert 50 < float(chance[1]) < 65
    assert "share of trajectories in each" in craftrl("evaluate", "model", "data", cwd=here)


def test_encode_writes_what_the_model_says(here: Path) -> None:
    assert craftrl("encode", "model", "data", "--out", "states.csv", cwd=here).startswith("15000 states of 3000 traj")
    with open("states.csv") as file:
        lines = list(csv.DictReader(file))
    states = load("model").transform("data")
    assert lines[0].keys() == {"trajectory", "agent", "h", "state"}
    assert [int(line["state"]) for line in lines] == states.ravel().tolist()
    assert [line["agent"] for line in lines[::5]] == ["0"] * 1500 + ["1"] * 1500


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("there", ["link to the data", "link to the model", "folder", "loop"])
def test_force_replaces_no_data_no_model_and_no_link(
    here: Path, capsys: pytest.CaptureFixture[str], writer: str, there: str
) -> None:
    line, option, ending = WRITERS[writer]
    out = Path(f"out{ending}")
    links = {"link to the data": "data", "link to the model": "model", "loop": out.name}
    out.symlink_to(links[there]) if there in links else out.mkdir()
    before = {path.name: path.lstat().st_mtime_ns for path in here.iterdir()}
    assert "choose" in complaint(capsys, *line.split(), option, out, "--force")
    assert {path.name: path.lstat().st_mtime_ns for path in here.iterdir()} == before


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_replaced_on_request_alone(here: Path, capsys: pytest.CaptureFixture[str], writer: str) -> None:
    line, option, ending = WRITERS[writer]
    out = Path(f"out{ending}")
    out.write_text("mine")
    message = complaint(capsys, *line.split(), option, out)
    assert "is there already; choose another name, or replace it with --force" in message
    assert out.read_text() == "mine"
    assert main([*line.split(), option, str(out), "--force"]) == 0
    assert out.read_bytes() != b"mine"


def test_a_dataset_that_is_being_written_is_none(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("data", "part")
    Path("part/dataset.json").rename("part/unfinished.json")
    assert "There must be a dataset at part; it is unfinished" in complaint(capsys, "evaluate", "model", "part")


def test_theory_gives_the_papers_values_and_those_of_data(here: Path) -> None:
    found = dict(
        re.findall(r"(alpha|eta|nu)\s+= ([\d.]+)", craftrl("theory", "assumptions", "--world", "bits", cwd=here))
    )
    assert float(found["alpha"]) == pytest.approx(np.log(3), rel=1e-5)
    assert float(found["eta"]) == pytest.approx(1 / 5)
    assert float(found["nu"]) == pytest.approx(5 / 32)
    assert "alpha = " in craftrl("theory", "assumptions", "--data", "data", cwd=here)


def test_sample_size_and_its_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["theory", "sample-size", "--world"]
    assert main([*line, "bits"]) == 0
    total = re.search(r"([\d.e+]+) trajectories in all", capsys.readouterr().out)
    assert total is not None
    assert main([*line, "bits", "--trajectories", f"{float(total[1]) * 1.01:.0f}"]) == 0
    assert "guarantees epsilon_0 = 0.049" in capsys.readouterr().out
    assert main([*line, "bits", "--trajectories", "1000"]) == 0
    assert "guarantees nothing" in capsys.readouterr().out
    assert main([*line, "lock", "--class-size", "100"]) == main([*line, "lock", "--class-size", "100", "--states", "3"])
    first, second = capsys.readouterr().out.strip().split("\n")
    assert first == second  # the world's own states
