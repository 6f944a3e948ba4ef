"""The bounds study: its grid, and its command on a tiny sweep."""

import json
from pathlib import Path

import pytest

from craftrl.cli import main
from craftrl.core.craft import Bounds
from craftrl.envs import BitsExBMDP, collect
from studies.bounds.report import cells, format_grid, format_summary
from studies.bounds.run import MEASURES, Trial, run_one
from studies.bounds.spec import GRID, SIZES, Run, grid_name, sweep

ROOT = Path(__file__).parents[2]

# A failed assumption is a result here.
pytestmark = pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")


def test_the_grid_has_every_combination_and_the_truth_in_the_middle() -> None:
    names = [grid_name(factors) for factors in GRID]
    assert len(set(names)) == 27
    assert names[13] == "true"
    assert grid_name((0.5, 1.0, 2.0)) == "alpha x 0.5 nu x 2"


def test_a_trial_runs_bounds_that_mean_the_same_once() -> None:
    world = BitsExBMDP(4, 6)
    trial = Trial(world, collect(world, world.paper_policies(), 300, seed=0).tau, "chain")
    assert trial.scores(Bounds(1.1, 0.2, 0.1)) == trial.scores(Bounds(2.2, 0.2, 0.1)) == dict.fromkeys(MEASURES, 1.0)
    assert len(trial.found) == 1  # Line 1 cuts alpha off at 1


def test_a_run_tries_the_grid_and_the_search_from_three_starts() -> None:
    result = run_one(Run("rare", 400, 0, 5, 6))
    assert result["accuracy"]["independent"].keys() == {*map(grid_name, GRID), "auto"}
    assert result["accuracy"]["chain"].keys() == {*map(grid_name, GRID), "auto"}
    for measure in MEASURES:
        assert result[measure].keys() == {"independent", "chain"}
        assert result[measure]["chain"].keys() == result["accuracy"]["chain"].keys()
    assert result["chosen"]["independent"]["true"]["nu"] < 0.1


def test_a_sweep_names_every_run_once() -> None:
    runs = sweep(SIZES, 8)
    assert len(set(runs)) == len(runs) == len(SIZES) * (8 + 2 + 2)


def test_the_command_prints_summary_and_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.bounds import spec

    monkeypatch.setattr(spec, "SIZES", (200,))
    monkeypatch.setattr(spec, "sweep", lambda sizes, seeds: sweep(sizes, seeds, 4, 6))
    main(["reproduce", "bounds", "--seeds", "2", "--quiet", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    table = cells([json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()])
    assert format_summary(table) in printed
    assert "chance: a random feature: " in printed
    assert "worst state of a run: true " in printed
    assert format_grid(table, 200, "independent") in printed
    assert (tmp_path / "bounds.png").stat().st_size > 10_000
