"""`craftrl evaluate`: with and without ground truth, and files that do not belong to the model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import complaint
from craftrl.cli import main


def test_evaluate_with_and_without_truth(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(model), str(data), "--truth", str(data.with_name("data.truth.npz"))]) == 0
    out = capsys.readouterr().out
    mean = re.search(r"mean over h = 1\.\.5: ([\d.]+)%, over h = 2\.\.5: ([\d.]+)%", out)
    assert mean is not None
    assert float(mean[1]) > 99
    single = re.search(r"single states, h = 2\.\.5: mean ([\d.]+)%, worst ([\d.]+)%", out)
    assert single is not None
    assert float(mean[2]) >= float(single[1]) >= float(single[2]) > 99
    chance = re.search(r"one state named at every step: mean over h = 2\.\.5: ([\d.]+)%", out)
    assert chance is not None
    assert 50 < float(chance[1]) < 65
    assert main(["evaluate", str(model), str(data)]) == 0
    assert "share of trajectories in each" in capsys.readouterr().out


def test_evaluate_refuses_foreign_files(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"format": "other"}')
    message = complaint(capsys, "evaluate", str(foreign), str(data))
    assert "A model must be a file that save or craftrl fit has written" in message
    message = complaint(capsys, "evaluate", str(model), str(data), "--truth", str(model))
    assert "Ground truth must be an NPZ file with `states`" in message
    other = tmp_path / "other.h5"
    main(["collect", "--world", "bits", "--horizon", "6", "--features", "12", "--n", "5", "--out", str(other)])
    message = complaint(capsys, "evaluate", str(model), str(other))
    assert "Trajectories must have at most 5 steps, as those fitted" in message
    message = complaint(capsys, "evaluate", str(model), str(data), "--truth", str(tmp_path / "other.truth.npz"))
    assert "shape (3000, 5)" in message
    assert "it belongs to other data" in message
