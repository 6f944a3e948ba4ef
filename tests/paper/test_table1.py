"""Table 1: the sweep, the table beside the paper's, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.envs import BitsExBMDP
from craftrl.paper import table1
from craftrl.paper.table1 import CHANCE, NAMES, PUBLISHED, Run, report, reproduce_table1, run_one, table_of

STUDIES = Path(__file__).parents[2] / "studies"
SMALL = ["--seeds", "2", "--sizes", "60", "120", "--horizon", "5", "--features", "8", "--quiet"]


def row(technique: str, size: int, seed: int, accuracy: float) -> dict[str, Any]:
    run = {"technique": technique, "size": size, "seed": seed, "horizon": 30, "n_features": 128}
    shares = {"accuracy": accuracy, "accuracy_from_2": accuracy - 0.01, "state_mean": 0.8, "state_worst": 0.6}
    return {**run, **shares, **({"accuracy_no_state_half": 0.85} if technique == "craft" else {})}


def paper_rows(shift: float = 0.0) -> list[dict[str, Any]]:
    """Twenty seeds per cell that scatter about the paper's number, moved by `shift`."""
    return [
        row(technique, size, seed, published + shift + 0.0005 * (-1) ** seed)
        for (technique, size), published in PUBLISHED.items()
        for seed in range(20)
    ]


@pytest.fixture(autouse=True)
def one_chance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are made up have no worlds: chance is 70.5% there."""
    if "committed" not in request.node.name and "command" not in request.node.name:
        monkeypatch.setattr("craftrl.paper.table1.toy_chance", lambda rows: 0.705)


def cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table_of(rows, "")["cells"]
    return found


def test_cells_stand_beside_the_paper() -> None:
    table = cells(paper_rows())
    assert [(cell["technique"], cell["size"]) for cell in table] == list(PUBLISHED)
    for cell in table:
        assert cell["published"] == PUBLISHED[cell["technique"], cell["size"]]
        assert cell["accuracy"]["mean"] == pytest.approx(cell["published"])
        assert cell["accuracy"]["low"] < cell["accuracy"]["mean"] < cell["accuracy"]["high"]
        assert cell["standard_errors_apart"] == pytest.approx(0, abs=1e-6)
        assert cell["accuracy_from_2"]["mean"] == pytest.approx(cell["accuracy"]["mean"] - 0.01)
        assert (cell["accuracy_no_state_half"] is None) == (cell["technique"] != "craft")


def test_a_bound_is_met_from_above_and_missed_from_below() -> None:
    above, below = (cells(paper_rows(shift))[2]["standard_errors_apart"] for shift in (0.0008, -0.01))
    assert above == 0
    assert below < -2


def test_the_report_is_aligned_and_names_the_cells_that_do_not_agree() -> None:
    text = report(table_of(paper_rows(), ""))
    lines = text.splitlines()
    assert ">99.9" in lines[2]
    assert lines[2].index("97.7") == lines[3].index("68.7", 40) == lines[4].index("86.1")
    assert "85.00" in lines[5]
    assert lines[6].startswith(CHANCE)
    assert lines[6].split()[-3:] == ["70.50"] * 3
    assert "9 of 9 cells lie within two standard errors of the paper's.\n" in text
    assert text.count("80.00 / 60.00") == 9  # single states
    moved = [{**r, "accuracy": 0.7} if r["technique"] == "paired" and r["size"] == 500 else r for r in paper_rows()]
    moved[-1 - 40]["accuracy"] = 0.701  # some scatter, so that there is a standard error
    assert "8 of 9 cells" in report(table_of(moved, ""))
    assert "not: Paired observation at 500 (-" in report(table_of(moved, ""))


def test_other_worlds_have_no_published_number() -> None:
    other = table_of([{**r, "horizon": 10} for r in paper_rows()], "")
    assert all(cell["published"] is None for cell in other["cells"])
    assert "The paper has no number for these cells." in report(other)
    assert all(cell["published"] is None for cell in cells([{**r, "size": 700} for r in paper_rows()]))


def test_few_seeds_have_no_interval_and_the_table_says_so() -> None:
    table = table_of([row(t, 500, seed, 0.9 + 0.02 * seed) for t in NAMES for seed in range(4)], "")
    for cell in table["cells"]:
        assert cell["accuracy"]["low"] is cell["accuracy"]["high"] is cell["standard_errors_apart"] is None
    assert "[" not in report(table).splitlines()[2]
    assert "Too few seeds for intervals, and for a comparison with the paper: 4 of 5." in report(table)


def test_a_step_without_a_state_reads_the_first_coordinate_and_may_be_counted_as_half() -> None:
    """Paper: Line 46"""
    run = Run("craft", 30, 1, horizon=30, n_features=16)
    result = run_one(run)
    lost = range(run.horizon - result["steps_with_no_state"] + 1, run.horizon + 1)  # once lost, all later steps are
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    first = sum(world.feature_accuracy(h)[0] - 0.5 for h in lost) / run.horizon
    assert len(lost) > 3
    assert result["accuracy"] - result["accuracy_no_state_half"] == pytest.approx(first)


def test_all_techniques_see_the_same_data_and_craft_says_how_it_went() -> None:
    results = {t: run_one(Run(t, 800, 3, horizon=6, n_features=16)) for t in ("craft", "single", "paired")}
    assert results["craft"]["accuracy"] > results["single"]["accuracy"]
    assert 0 < results["craft"]["assigned_at_end"] <= 1
    for result in results.values():
        # One of the six steps is h = 1, where everybody is right.
        assert result["accuracy"] == pytest.approx((1 + 5 * result["accuracy_from_2"]) / 6)
        # No feature of this world is better in one state than in the other.
        assert result["state_mean"] == pytest.approx(result["accuracy_from_2"])
        assert 0.5 <= result["state_worst"] <= result["state_mean"]
    assert run_one(Run("paired", 800, 3, horizon=6, n_features=16)) == results["paired"]


def test_the_command_writes_rows_table_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["reproduce", "table1", *SMALL, "--out", str(tmp_path)]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "Average encoder accuracy in percent, H = 5, M = 8, 2 seeds" in out
    assert "Paired observation" in out
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 12
    assert "Too few seeds for intervals" in out
    assert "chance: a random feature" in out
    assert "worst state of a run" in out
    table = json.loads((tmp_path / "table.json").read_text())
    assert 0.5 < table["chance"] < 1
    assert {(c["technique"], c["size"]) for c in table["cells"]} == {
        (t, n) for t in ("craft", "single", "paired") for n in (60, 120)
    }
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "rows.jsonl").read_bytes()
    assert main(argv) == 0
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_a_stopped_sweep_goes_on_with_the_rows_that_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"sizes": [40], "horizon": 3, "features": 4, "quiet": True}
    reproduce_table1(seeds=2, out=tmp_path / "whole", **settings)
    calls = []

    def stops(run: Run) -> dict[str, float]:
        calls.append(run)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run_one(run)

    out = tmp_path / "stopped"
    monkeypatch.setattr(table1, "run_one", stops)
    with pytest.raises(KeyboardInterrupt):
        reproduce_table1(seeds=2, out=out, **settings)
    rows = out / "rows.jsonl"
    assert len(rows.read_text().splitlines()) == 2
    rows.write_text(rows.read_text() + '{"technique": "cra')  # a kill in the middle of a line
    monkeypatch.setattr(table1, "run_one", lambda run: calls.append(run) or run_one(run))
    reproduce_table1(seeds=2, out=out, **settings)
    assert len(calls) == 3 + 4
    assert rows.read_bytes() == (tmp_path / "whole" / "rows.jsonl").read_bytes()


def test_the_command_refuses_folders_and_senseless_numbers(tmp_path: Path, capsys) -> None:
    (tmp_path / "file").touch()
    for folder, told in {".": "holds other files, such as file; choose another", "file": "must be writable"}.items():
        assert main(["reproduce", "table1", *SMALL, "--out", str(tmp_path / folder)]) == 2
        assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for argv in (["--seeds", "0"], ["--sizes", "-5"], ["--workers", "two"]):
        assert main(["reproduce", "table1", *argv]) == 2
        assert "must be a whole number of at least 1" in capsys.readouterr().err


def committed(study: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (STUDIES / study / "rows.jsonl").read_text().splitlines()]


def test_the_code_still_gives_the_committed_rows() -> None:
    small = [r for r in committed("table1") if r["size"] <= 1000]
    for technique in NAMES:
        mine = [r for r in small if r["technique"] == technique]
        for known in np.random.default_rng(0).choice(np.array(mine, dtype=object), 3, replace=False):
            found = run_one(Run(known["technique"], known["size"], known["seed"]))
            assert found == {key: known[key] for key in found}


def test_the_committed_tables_follow_from_their_rows() -> None:
    """Paper: Table 1"""
    for study, seeds in (("table1", 20), ("table1-200-seeds", 200)):
        known = json.loads((STUDIES / study / "table.json").read_text())
        again = table_of(committed(study), known["command"])
        assert json.loads(json.dumps(again)) == known
        assert all(cell["accuracy"]["n"] == seeds for cell in again["cells"])
    assert "9 of 9 cells" in report(again)


def test_where_every_state_is_read_right() -> None:
    rows = [row for row in committed("table1-200-seeds") if row["technique"] == "craft"]
    good = [sum(row["state_worst"] >= 0.95 for row in rows if row["size"] == size) for size in (500, 1000, 5000)]
    assert good == [5, 105, 200]
    assert sum(row.get("steps_with_no_state", 0) for row in rows) == 316
