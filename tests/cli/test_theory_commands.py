"""`craftrl theory`: the paper's values, those of data, and sample sizes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from command_line import complaint
from craftrl.cli import main


def test_theory_gives_the_papers_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "assumptions", "--world", "bits"]) == 0
    found = dict(re.findall(r"(alpha|eta|nu)\s+= ([\d.]+)", capsys.readouterr().out))
    assert float(found["alpha"]) == pytest.approx(np.log(3), rel=1e-5)
    assert float(found["eta"]) == pytest.approx(1 / 5)
    assert float(found["nu"]) == pytest.approx(5 / 32)


def test_theory_of_data(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["theory", "assumptions", "--data", str(data), "--truth", str(data.with_name("data.truth.npz"))]
    assert main(argv) == 0
    assert "alpha = " in capsys.readouterr().out
    assert "either --world, or --data and --truth" in complaint(capsys, *argv[:4])


def test_sample_size_and_its_inverse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "sample-size", "--world", "bits"]) == 0
    total = re.search(r"([\d.e+]+) trajectories in all", capsys.readouterr().out)
    assert total is not None
    assert main(["theory", "sample-size", "--world", "bits", "--trajectories", f"{float(total[1]) * 1.01:.0f}"]) == 0
    assert "guarantee epsilon_0 = 0.049" in capsys.readouterr().out
    assert main(["theory", "sample-size", "--world", "bits", "--trajectories", "1000"]) == 0
    assert "guarantees nothing" in capsys.readouterr().out
    message = complaint(capsys, "theory", "sample-size", "--alpha", "1", "--eta", "1/5")
    assert "needs --nu, --nu-prime, --horizon, --class-size too" in message


def test_sample_size_knows_the_worlds_states(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["theory", "sample-size", "--world", "lock", "--class-size", "100"]
    assert main(argv) == main([*argv, "--states", "3"]) == 0
    first, second = capsys.readouterr().out.strip().split("\n")
    assert first == second
