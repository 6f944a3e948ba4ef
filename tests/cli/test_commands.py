"""The small commands: collect, import, inspect, evaluate, encode, actions and theory."""

from __future__ import annotations

import csv
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from command_line import complaint, craftrl
from craftrl import load
from craftrl.data import TrajectoryDataset, read_true_states

# Every command that writes a file and can replace one: its line, the option and the ending.
WRITERS = {
    "encode": ("encode model data", "--out", ".csv"),
    "actions": ("actions model data", "--out", ".npz"),
    "report": ("report model data --diagnose 0", "--out", ".html"),
    "inspect": ("inspect data", "--sheet", ".png"),
}


def test_collect_keeps_the_truth_apart_and_depends_on_its_seeds_alone(here: Path) -> None:
    tau = TrajectoryDataset.open("data")
    assert (tau.n, tau.H, tau.K, tau.obs_shape) == (3000, 5, 2, (12,))
    assert read_true_states("data").shape == (3000, 5)
    for name, seed in (("same", 0), ("other", 1)):
        craftrl(f"collect --world bits --horizon 5 --features 12 --n 1500 --seed {seed} --out {name}")
    assert (tau.at(5) == TrajectoryDataset.open("same").at(5)).all()
    assert (tau.at(5) != TrajectoryDataset.open("other").at(5)).any()


def test_collect_goes_on_and_finds_its_work_done(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "collect --world bits --horizon 3 --features 4 --out new --n"
    craftrl(line, 50)
    before = {path.name: path.stat().st_mtime_ns for path in Path("new").iterdir()}
    craftrl(line, 50)
    assert {path.name: path.stat().st_mtime_ns for path in Path("new").iterdir()} == before
    assert "new exists already; remove it, or choose another name" in complaint(capsys, *line.split(), "60")


def test_import_says_what_it_found_and_inspect_draws_it_and_compares_the_agents(here: Path) -> None:
    tau = TrajectoryDataset.open("data")
    for k, name in enumerate(("ann", "ben")):
        np.savez(f"{name}.npz", x=tau.rows(np.flatnonzero(tau.agent == k)))
    out = craftrl("import ann.npz ben.npz --stride 2 --out new")
    assert "2 agents, 3000 episodes of up to 3 steps" in out
    out = craftrl("inspect data --pairs --seed 1")
    assert "contact sheet: data.sheet.png" in out
    assert Path("data.sheet.png").stat().st_size > 100
    assert re.search(r"0 and 1 +1,500 \+ 1,500 +\d+% +4 of 4 .*worth comparing", out)
    assert "Compare 0 with 1 first" in out
    assert "contact sheet" not in craftrl("inspect data --no-sheet")


def test_evaluate_with_and_without_truth(here: Path) -> None:
    out = craftrl("evaluate model data --truth")
    (mean,) = re.findall(r"mean over h = 1\.\.5: [\d.]+%, over h = 2\.\.5: ([\d.]+)%", out)
    ((single, worst),) = re.findall(r"single states, h = 2\.\.5: mean ([\d.]+)%, worst ([\d.]+)%", out)
    (chance,) = re.findall(r"one state named at every step: mean over h = 2\.\.5: ([\d.]+)%", out)
    assert float(mean) >= float(single) >= float(worst) > 99
    assert 50 < float(chance) < 65
    assert "share of trajectories in each" in craftrl("evaluate model data")


def test_encode_writes_what_the_model_says(here: Path) -> None:
    assert craftrl("encode model data --out states.csv").startswith("15000 states of 3000 trajectories")
    with open("states.csv") as file:
        lines = list(csv.DictReader(file))
    states = load("model").transform("data")
    assert lines[0].keys() == {"trajectory", "agent", "h", "state"}
    assert [int(line["state"]) for line in lines] == states.ravel().tolist()
    assert [line["agent"] for line in lines[::5]] == ["0"] * 1500 + ["1"] * 1500


def test_new_recordings_may_be_longer_than_those_fitted_and_come_in_parts(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model with an encoder for each step then reads the steps that it has encoders for."""
    x = TrajectoryDataset.open("data").rows(np.arange(40))
    np.savez("longer.npz", x=np.concatenate([x, x], axis=1))
    assert craftrl("encode model longer.npz --out states.npz").startswith("200 states of 40 trajectories")
    with np.load("states.npz") as columns:
        assert columns["state"].tolist() == load("model").transform(x).ravel().tolist()
    monkeypatch.setattr("craftrl.cli.commands.AT_ONCE", 100)
    craftrl("encode model longer.npz --out parts.npz")
    assert Path("parts.npz").read_bytes() == Path("states.npz").read_bytes()


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_replaced_on_request_alone_and_never_data_a_model_or_a_link(
    here: Path, capsys: pytest.CaptureFixture[str], writer: str
) -> None:
    line, option, ending = WRITERS[writer]
    out = Path(f"out{ending}")
    for there in ("data", "model", out.name, "folder"):
        out.mkdir() if there == "folder" else out.symlink_to(there)
        before = {path.name: path.lstat().st_mtime_ns for path in here.iterdir()}
        assert "choose" in complaint(capsys, *line.split(), option, out, "--force")
        assert {path.name: path.lstat().st_mtime_ns for path in here.iterdir()} == before
        out.rmdir() if there == "folder" else out.unlink()
    out.write_text("mine")
    message = complaint(capsys, *line.split(), option, out)
    assert "is there already; choose another name, or replace it with --force" in message
    assert out.read_text() == "mine"
    craftrl(line, option, out, "--force")
    assert out.read_bytes() != b"mine"


def test_a_dataset_that_is_being_written_is_none(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("data", "part")
    Path("part/dataset.json").rename("part/unfinished.json")
    assert "There must be a dataset at part; it is unfinished" in complaint(capsys, "evaluate", "model", "part")


def test_theory_gives_the_papers_values_and_those_of_data(here: Path) -> None:
    found = dict(re.findall(r"(alpha|eta|nu)\s+= ([\d.]+)", craftrl("theory assumptions --world bits")))
    assert float(found["alpha"]) == pytest.approx(np.log(3), rel=1e-5)
    assert float(found["eta"]) == pytest.approx(1 / 5)
    assert float(found["nu"]) == pytest.approx(5 / 32)
    assert "alpha = " in craftrl("theory assumptions --data data")


def test_sample_size_and_its_inverse(here: Path) -> None:
    line = "theory sample-size --world bits"
    (total,) = re.findall(r"([\d.e+]+) trajectories in all", craftrl(line))
    assert "guarantees epsilon_0 = 0.049" in craftrl(line, "--trajectories", f"{float(total) * 1.01:.0f}")
    assert "guarantees nothing" in craftrl(line, "--trajectories", 1000)
    assert craftrl(line, "--states", 2) == craftrl(line)  # the world's own states
    assert craftrl(line, "--states", 3) != craftrl(line)
