"""`craftrl fit`: what it writes, says and chooses, and that the same command always goes on."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

import craftrl as library
from command_line import BOUNDS, complaint, craftrl, started
from craftrl import CRAFT, envs
from craftrl.cli import main
from craftrl.data import TrajectoryDataset
from craftrl.envs import BitsExBMDP

PHASES = ("telling the agents apart", "finding states")


def test_a_model_that_python_reads_and_would_have_made(made: Path) -> None:
    model = library.load(made / "model")
    assert vars(model.bounds_) == {"alpha": 1.0, "eta": 0.2, "nu": 5 / 32}
    assert [model.encoders_[h].feature for h in range(2, 6)] == [
        BitsExBMDP(5, 12, 0).controllable_feature(h) for h in range(2, 6)
    ]
    again = CRAFT(alpha=1.0, eta=0.2, nu=5 / 32).fit(made / "data")
    assert np.array_equal(model.transform(made / "data"), again.transform(made / "data"))
    assert repr(model.choices_) == repr(again.choices_)


def test_it_says_what_was_chosen_and_why(here: Path) -> None:
    out = craftrl("fit", "data", "--coupling", "chain", "--relabel", "--out", "new", cwd=here)
    assert out.startswith("Data: 1500 + 1500 trajectories of 2 agents, 5 steps, observations 12.\n")
    assert "Learner: one entry of each observation, since observations are integers in 0..1" in out
    assert "\nVerdict: trust. CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5." in out
    assert "\nWarning: " not in out
    assert re.search(r"Chosen: alpha = [\d.]+, eta = [\d.]+, nu = [\d.]+: of \d+ settings tried", out)
    assert "Chosen: coupling" not in out
    assert library.load(here / "new").alpha == "auto"


def test_steps_that_few_reach_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    """The library decides; its own transform, the report and the table of states then leave them out as well."""
    world = BitsExBMDP(horizon=5, n_features=6, seed=0)
    tau = envs.collect(world, world.paper_policies(), 600, seed=0).tau
    episodes = [tau.episode(i)[: 5 if i % 40 == 0 else 4] for i in range(tau.n)]
    few = TrajectoryDataset.from_episodes([episodes[:600], episodes[600:]])
    few.save(tmp_path / "data")
    out = craftrl("fit", "data", "--out", "model", cwd=tmp_path)
    assert "Chosen: horizon = 4: few trajectories of some agent are longer." in out
    model = library.load(tmp_path / "model")
    assert len(model.encoders_) == len(CRAFT().fit(few).encoders_) == 4
    assert (model.transform(few)[:, 4] == -1).all()
    assert "4800 states of 1200" in craftrl("encode", "model", "data", "--out", "states.csv", cwd=tmp_path)
    craftrl("report", "model", "data", "--diagnose", "0", "--out", "report.html", cwd=tmp_path)
    craftrl("fit", "data", "--horizon", "3", "--out", "other", cwd=tmp_path)
    assert len(library.load(tmp_path / "other").encoders_) == 3


def test_fit_replaces_a_model_on_request_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "data", *BOUNDS, "--out", "new"]) == 0
    before = Path("new").read_bytes()
    message = complaint(capsys, "fit", "data", *BOUNDS, "--stationary", "--out", "new")
    assert "new is there already; choose another name, or replace it with --force" in message
    assert Path("new").read_bytes() == before
    assert main(["fit", "data", *BOUNDS, "--stationary", "--force", "--out", "new"]) == 0
    assert library.load("new").stationary is True
    assert {path.name for path in here.iterdir()} == {"data", "model", "new"}


def test_the_same_command_goes_on_after_the_model_was_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stopped between "Written" and the verdict, it gives the verdict; of other data or settings the model is kept."""
    line = ["fit", "data", *BOUNDS, "--out", "new"]
    process = started(*line, "--diagnose", "200", cwd=here)
    assert process.stdout is not None
    assert any(text.startswith("Written to new") for text in process.stdout)
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 143
    assert err.startswith("Terminated; nothing is half-written, and the same command goes on")
    before = Path("new").read_bytes()
    out = craftrl(*line, cwd=here)
    assert "\nVerdict: trust. " in out
    assert out.count("Written to new") == 1
    assert Path("new").read_bytes() == before
    assert "is there already" in complaint(capsys, "fit", "data", "--out", "new")
    assert (
        main(["collect", "--world", "bits", "--horizon", "5", "--features", "12", "--n", "50", "--out", "other"]) == 0
    )
    capsys.readouterr()
    assert main(["fit", "other", *BOUNDS, "--out", "new"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert Path("new").read_bytes() == before


def test_the_same_command_twice_at_once_loses_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = CRAFT.fit

    def fit_while_another_one_saves(self: CRAFT, *given: object, **more: object) -> CRAFT:
        fit(self, *given, **more).save("new")
        return self

    monkeypatch.setattr(CRAFT, "fit", fit_while_another_one_saves)
    assert main(["fit", "data", *BOUNDS, "--out", "new"]) == 0


def test_starts_are_found_on_request(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that was fitted otherwise is another one."""
    data = TrajectoryDataset.open("data")
    for k, agent in enumerate("ab"):
        np.save(f"{agent}.npy", data.rows(np.flatnonzero(data.agent == k))[:, 1:])
    craftrl("import", "a.npy", "b.npy", "--out", "clips", cwd=here)
    line = ["fit", "clips", *BOUNDS, "--find-start", "--out", "new"]
    assert "Chosen: start = 2: " in craftrl(*line, cwd=here)
    assert "Chosen: start = 2: " in craftrl(*line, cwd=here)
    line.remove("--find-start")
    assert main(line) == 2
    assert "is there already" in capsys.readouterr().err


def test_fit_says_whether_to_trust_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "data", *BOUNDS, "--diagnose", "2", "--out", "new"]) == 0
    assert re.search(r"^(trust|check|do not trust): score [\d.]+", capsys.readouterr().out, flags=re.MULTILINE)
    assert main(["fit", "data", *BOUNDS, "--out", "unasked"]) == 0
    assert "refits on resampled trajectories (10) agree" in capsys.readouterr().out


def test_recordings_go_into_a_dataset_beside_the_model(made: Path, tmp_path: Path) -> None:
    """The same command again finds it there; the model is that of the dataset they came from."""
    tau = TrajectoryDataset.open(made / "data")
    for k, name in enumerate(("ann", "ben")):
        np.savez(tmp_path / f"{name}.npz", x=tau.rows(np.flatnonzero(tau.agent == k)))
    line = ["fit", "ann.npz", "ben.npz", *BOUNDS, "--out", "new.safetensors"]
    assert "1500 + 1500 trajectories of 2 agents (ann, ben)" in craftrl(*line, cwd=tmp_path)
    written = (tmp_path / "new.data" / "dataset.json").stat().st_mtime_ns
    craftrl(*line, "--force", cwd=tmp_path)
    assert (tmp_path / "new.data" / "dataset.json").stat().st_mtime_ns == written
    new = library.load(tmp_path / "new.safetensors")
    assert (new.transform(tau) == library.load(made / "model").transform(tau)).all()


def test_a_network_goes_on_and_ends_with_the_same_model(frames: Path, tmp_path: Path) -> None:
    """Ended by SIGTERM in the middle of training."""
    pytest.importorskip("torch")
    options = ["--alpha", "1", "--eta", "0.1", "--nu", "0.05", "--epochs", "2", "--device", "cpu", "--seed", "3"]
    out, err = started("fit", frames, *options, "--out", "whole", cwd=tmp_path).communicate()
    lines = err.replace("\r", "\n").split("\n")  # one bar over all phases, and in a log one line for each
    assert [line.partition(":")[0] for line in lines if line.strip()] == list(PHASES)
    assert "Learner: a network, since observations are images of shape (12, 12, 3), on the CPU; one encoder" in out
    assert re.search(r"\nVerdict: (trust|check|do not trust)\. CRAFT found", out)  # networks are checked too
    process = started("fit", frames, *options, "--out", "new", cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".new.unfinished/*/log-odds*.pt")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    process.communicate()
    assert process.returncode == 143
    assert not (tmp_path / "new").exists()
    assert (again := started("fit", frames, *options, "--out", "new", cwd=tmp_path)).communicate()
    assert again.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "new"}  # nothing is left beside the model
    one, two = (library.load(tmp_path / name) for name in ("whole", "new"))
    assert one.oracle.training.seed == 3
    before = (tmp_path / "new").read_bytes()  # as if it had been stopped before the verdict
    assert "\nVerdict: " in craftrl("fit", frames, *options, "--out", "new", cwd=tmp_path)
    assert (tmp_path / "new").read_bytes() == before
    assert (one.labels_ == two.labels_).all()


def test_images_that_will_take_long_on_a_cpu_are_told_with_smaller_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).integers(0, 256, (20, 4, 96, 128, 3)).astype(np.uint8)
    TrajectoryDataset.from_arrays([x[:10], x[10:]]).save(tmp_path / "data")
    monkeypatch.setattr("craftrl.cli.fit.PER_PIXEL", 0.01)
    monkeypatch.setattr(CRAFT, "fit", lambda model, tau: 1 / 0)
    assert main(["fit", str(tmp_path / "data"), "--device", "cpu", "--out", str(tmp_path / "model")]) == 1
    told = "Time: about 2.7 hours, 41 minutes with --resize 64x48, 10 minutes with --resize 32x24; less on a GPU.\n"
    assert told in capsys.readouterr().out
