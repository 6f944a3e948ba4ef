"""Error growth: the world that lies in wait, the corruption, and who lets mistakes multiply."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.envs.collection import sample_noise_path
from studies.error_growth.run import run_one
from studies.error_growth.spec import SCENARIOS, Run
from studies.error_growth.world import CreepingExBMDP, collect_corrupted


def test_the_slow_factor_switches_on_for_good_and_as_often_as_said() -> None:
    world = CreepingExBMDP(8, 5, seed=0, first_share=0.02, growth=1.5)
    slow = np.stack([e[:, 0] for e in sample_noise_path(world, 40_000, np.random.default_rng(0))])
    assert (np.diff(slow.astype(int), axis=0) >= 0).all()
    marginal = np.array([world.noise_marginal(h)[0] for h in range(1, 9)])
    assert marginal[:4] == pytest.approx([0, 0.02, 0.03, 0.045])
    assert slow.mean(axis=1) == pytest.approx(marginal, abs=0.008)


def test_the_world_stays_an_ex_bmdp() -> None:
    world = CreepingExBMDP(6, 5, seed=0, first_share=0.1, growth=1.4)
    rng = np.random.default_rng(1)
    for h, e_h in enumerate(sample_noise_path(world, 50, rng), start=1):
        s_h = rng.integers(world.n_states(h), size=50)
        x_h = world.emit(s_h, e_h, h, rng)
        assert (world.phi_star(x_h, h) == s_h).all()
        assert (world.phi_e(x_h, h) == e_h).all()


def test_the_corruption_spoils_noise_and_never_states() -> None:
    world = CreepingExBMDP(4, 5, seed=0, first_share=0.0, growth=1.0)
    collection = collect_corrupted(world, world.opposed_policies(), 500, bad_share=0.02, seed=3)
    tau, states = collection.tau, collection.truth.states
    for h in range(1, 5):
        assert (world.phi_star(tau.at(h), h) == states[:, h - 1]).all()
    bad = world.phi_e(tau.at(2), 2)[:, 0] == 1
    assert [int(bad[tau.agent == k].sum()) for k in range(2)] == [10, 10]
    assert (states[bad, 1] == 1 - tau.agent[bad]).all()  # in tau_A those in state 1, in tau_B those in state 0
    assert (world.phi_e(tau.at(4), 4)[:, 0] == bad).all()


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
def test_drafts_mistakes_multiply_and_crafts_do_not() -> None:
    """Paper: Section 3.1.1"""
    wrong = {
        learner: np.array(run_one(Run("corrupted", learner, 0, size=5000, horizon=14, n_features=8))["wrong"])
        for learner in ("craft", "draft")
    }
    spoilt = SCENARIOS["corrupted"].bad_share
    assert wrong["draft"][-1] > 10 * spoilt
    assert wrong["draft"][-1] / wrong["draft"][-5] == pytest.approx(1.4**4, rel=0.15)
    assert wrong["craft"].max() < 3 * spoilt


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--seeds", "2", "--size", "200", "--horizon", "6", "--features", "6", "--quiet", "--out", str(tmp_path)]
    assert main(["reproduce", "error-growth", *argv]) == 0
    assert "wrong labels in percent" in capsys.readouterr().out
    curves = json.loads((tmp_path / "curves.json").read_text())["curves"]
    assert len(curves) == 2 * len(SCENARIOS)
    assert all(len(curve["wrong"]) == 6 for curve in curves)
    assert (tmp_path / "error_growth.png").read_bytes().startswith(b"\x89PNG")


def test_two_steps_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["reproduce", "error-growth", "--horizon", "2", "--size", "100", "--features", "8", "--seeds", "1"]
    assert main([*line, "--quiet", "--out", str(tmp_path / "new")]) == 0
    assert "wrong labels in percent at h =                          2\n" in capsys.readouterr().out
