"""`craftrl fit`: what it writes, says and chooses, and every complaint in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import craftrl
from command_line import BOUNDS, complaint
from craftrl import envs
from craftrl.cli import main
from craftrl.data import TrajectoryDataset
from craftrl.envs import BitsExBMDP


def test_fit_writes_a_model_that_python_reads(model: Path, data: Path) -> None:
    loaded = craftrl.load(model)
    assert vars(loaded.bounds_) == {"alpha": 1.0, "eta": 0.2, "nu": 5 / 32}
    assert loaded.alpha == 1.0
    assert [loaded.encoders_[h].feature for h in range(2, 6)] == [
        BitsExBMDP(5, 12, 0).controllable_feature(h) for h in range(2, 6)
    ]
    again = craftrl.CRAFT(alpha=1.0, eta=0.2, nu=5 / 32).fit(data)
    assert np.array_equal(loaded.transform(data), again.transform(data))


def test_fit_says_what_it_chose_and_why(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(data), "--coupling", "chain", "--relabel", "yes", "--out", str(tmp_path / "model")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Data: 1500 + 1500 trajectories of 2 agents, all 5 steps, observations 12.\n")
    assert "Learner: one entry of each observation, since observations are integers in 0..1" in out
    assert "Bounds: alpha, eta, nu chosen from the data." in out
    assert "\nVerdict: trust. CRAFT found 1 state at step 1, 2 states at each of steps 2 to 5." in out
    assert "\nWarning: " not in out
    assert re.search(r"Chosen: alpha = [\d.]+, eta = [\d.]+, nu = [\d.]+: of \d+ settings tried", out)
    assert "Chosen: coupling" not in out
    assert craftrl.load(tmp_path / "model").alpha == "auto"


def test_steps_that_few_reach_are_left_out_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = BitsExBMDP(horizon=5, n_features=6, seed=0)
    tau = envs.collect(world, world.paper_policies(), 600, seed=0).tau
    x = [[tau.at(h)[i] for h in range(1, 6)] for i in range(tau.n)]
    cut = [x[i][: 5 if i % 40 == 0 else 4] for i in range(tau.n)]
    TrajectoryDataset.from_episodes([cut[:600], cut[600:]]).save(tmp_path / "data.h5")
    assert main(["fit", str(tmp_path / "data.h5"), "--out", str(tmp_path / "model")]) == 0
    assert "the first 4 of 5 steps, which enough of all agents reach" in capsys.readouterr().out
    assert len(craftrl.load(tmp_path / "model").encoders_) == 4
    argv = ["fit", str(tmp_path / "data.h5"), "--out", str(tmp_path / "other"), "--horizon"]
    assert main([*argv, "3"]) == 0
    assert len(craftrl.load(tmp_path / "other").encoders_) == 3
    assert "The horizon must lie in 2..5" in complaint(capsys, *argv, "9", "--force")


def test_fit_replaces_nothing_but_a_model_and_that_on_request(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = data.read_bytes()
    for force in ([], ["--force"]):
        message = complaint(capsys, "fit", str(data), *BOUNDS, *force, "--out", str(data))
        assert "data.h5 exists and is no model of craftrl; choose another name." in message
        assert "is a folder; choose" in complaint(capsys, "fit", str(data), *force, "--out", str(tmp_path))
    assert data.read_bytes() == before
    out = ["--out", str(tmp_path / "model")]
    assert main(["fit", str(data), *BOUNDS, *out]) == 0
    assert "model is there already; choose another name" in complaint(capsys, "fit", str(data), *BOUNDS, *out)
    assert main(["fit", str(data), *BOUNDS, "--stationary", "--force", *out]) == 0
    assert craftrl.load(tmp_path / "model").stationary
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_fit_says_whether_to_trust_it(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["fit", str(data), "--alpha", "1", "--eta", "1/5", "--nu", "5/32", "--diagnose", "2"]
    assert main([*argv, "--out", str(tmp_path / "model")]) == 0
    assert re.search(r"^(trust|check|do not trust): score [\d.]+", capsys.readouterr().out, flags=re.M)
    assert main([*argv[:-2], "--out", str(tmp_path / "unasked")]) == 0
    assert "refits on resampled trajectories (10) agree" in capsys.readouterr().out


def test_fit_from_one_file_per_agent(data: Path, model: Path, tmp_path: Path) -> None:
    """Recordings go into a store beside the model; the same command again finds it done; the model is the same."""
    tau = TrajectoryDataset.open(data)
    x = np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1)
    for k, name in enumerate(("ann", "ben")):
        np.savez(tmp_path / f"{name}.npz", x=x[tau.agent == k])
    fit = ["fit", str(tmp_path / "ann.npz"), str(tmp_path / "ben.npz"), *BOUNDS, "--out", str(tmp_path / "model")]
    assert main(fit) == 0
    written = (tmp_path / "model.data.h5").stat().st_mtime_ns
    assert main([*fit, "--force"]) == 0
    assert (tmp_path / "model.data.h5").stat().st_mtime_ns == written
    assert (craftrl.load(tmp_path / "model").transform(tau) == craftrl.load(model).transform(tau)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "3"], "--epochs is for networks; add --oracle network"),
        (["--values", "3"], "--values is for coordinates; add --oracle coordinates"),
    ],
)
def test_options_of_another_oracle_are_refused(
    data: Path, tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in complaint(capsys, "fit", str(data), *options, "--out", str(tmp_path / "model"))


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (["--alpha", "0", "--eta", "1/5", "--nu", "1/8"], "alpha must be a positive number; alpha = 0.0 was given"),
        (["--alpha", "1", "--eta", "0.6", "--nu", "1/8"], "eta must lie in (0, 1/2]; eta = 0.6 was given"),
        (["--alpha", "1", "--eta", "1/5", "--nu", "2"], "nu must lie in (0, 1]; nu = 2.0 was given"),
    ],
)
def test_fit_refuses_bounds_out_of_range(
    data: Path, tmp_path: Path, bounds: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in complaint(capsys, "fit", str(data), *bounds, "--out", str(tmp_path / "model"))
    assert list(tmp_path.iterdir()) == []


def test_fit_refuses_what_is_no_number(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["fit", str(data), "--alpha", "one", "--out", "model"])
    assert stop.value.code == 2
    assert "must be a number or a fraction such as 5/32; 'one' was given" in capsys.readouterr().err


def test_fit_refuses_missing_data_and_unwritable_places(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complaint(capsys, "fit", str(tmp_path / "none.h5"), *BOUNDS, "--out", str(tmp_path / "model"))
    message = complaint(capsys, "fit", str(data), *BOUNDS, "--out", str(data / "model"))
    assert "The output folder must be writable" in message


def test_a_store_is_not_read_in_another_way(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = complaint(capsys, "fit", str(data), "--key", "x", "--out", str(tmp_path / "model"))
    assert (
        text
        == f"--key is for recordings that are imported; {data} is a store already; leave it out, or import again.\n"
    )
