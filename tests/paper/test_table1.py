"""Table 1: the sweep, the table beside the paper's, and the command; and the statistics of sweeps over seeds."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.envs import BitsExBMDP
from craftrl.paper import table1
from craftrl.paper.sweep import estimate, seed_of
from craftrl.paper.table1 import CHANCE, NAMES, PUBLISHED, Run, report, reproduce_table1, run_one, table_of

STUDIES = Path(__file__).parents[2] / "studies"
SMALL = ["--seeds", "2", "--sizes", "60", "120", "--horizon", "5", "--features", "8", "--quiet"]


# -- statistics -------------------------------------------------------------------------------------------------------


def test_seeds_are_those_of_the_parts_alone():
    assert seed_of("a", 1).entropy == seed_of("a", 1).entropy
    assert len({seed_of(*parts).entropy for parts in [("a", 1), ("a", 2), ("b", 1), ("a1",)]}) == 4


def test_the_interval_is_students_and_few_seeds_have_none():
    found = estimate([0.1, 0.2, 0.3, 0.4, 0.5])
    assert (found.mean, found.n) == (pytest.approx(0.3), 5)
    assert found.high - found.mean == pytest.approx(2.776445 * 0.5**0.5 / 10, rel=1e-5)  # t_{0.975, 4}
    assert estimate([-0.9, 0.1, -0.95, -1.0, -0.9], least=-1.0).low == -1
    assert estimate([0.8] * 5).interval == (0.8, 0.8)
    assert estimate([0.5, 0.6, 0.7, 0.8]).interval is None
    assert estimate([0.5]).deviation == 0


# -- the table, of rows that are made up ------------------------------------------------------------------------------


def row(technique, size, seed, accuracy, **other):
    shares = {"accuracy": accuracy, "accuracy_from_2": accuracy - 0.01, "state_mean": 0.8, "state_worst": 0.6}
    half = {"accuracy_no_state_half": 0.85} if technique == "craft" else {}
    return {
        "technique": technique,
        "size": size,
        "seed": seed,
        "horizon": 30,
        "n_features": 128,
        **shares,
        **half,
        **other,
    }


def paper_rows(shift=0.0, n=20, **other):
    """Twenty seeds per cell that scatter about the paper's number, moved by `shift`."""
    scatter = [shift + 0.0005 * (-1) ** seed for seed in range(n)]
    return [row(*cell, seed, at + off, **other) for cell, at in PUBLISHED.items() for seed, off in enumerate(scatter)]


@pytest.fixture
def table(monkeypatch):
    """table.json of rows that have no worlds: chance is 70.5% there."""
    monkeypatch.setattr("craftrl.paper.table1.toy_chance", lambda rows: 0.705)
    return lambda rows: table_of(rows, "")


def test_cells_stand_beside_the_paper(table):
    cells = table(paper_rows())["cells"]
    assert [(cell["technique"], cell["size"]) for cell in cells] == list(PUBLISHED)
    for cell in cells:
        assert cell["published"] == PUBLISHED[cell["technique"], cell["size"]]
        assert cell["accuracy"]["mean"] == pytest.approx(cell["published"])
        assert cell["accuracy"]["low"] < cell["accuracy"]["mean"] < cell["accuracy"]["high"]
        assert cell["standard_errors_apart"] == pytest.approx(0, abs=1e-6)
        assert cell["accuracy_from_2"]["mean"] == pytest.approx(cell["accuracy"]["mean"] - 0.01)
        assert (cell["accuracy_no_state_half"] is None) == (cell["technique"] != "craft")
    above, below = (table(paper_rows(shift))["cells"][2]["standard_errors_apart"] for shift in (0.0008, -0.01))
    assert above == 0  # the paper gives a bound there
    assert below < -2


def test_the_report_is_aligned_and_names_the_cells_that_do_not_agree(table):
    text = report(table(paper_rows()))
    lines = text.splitlines()
    assert ">99.9" in lines[2]
    assert lines[2].index("97.7") == lines[3].index("68.7", 40) == lines[4].index("86.1")
    assert "85.00" in lines[5]
    assert lines[6].startswith(CHANCE)
    assert lines[6].split()[-3:] == ["70.50"] * 3
    assert "9 of 9 cells lie within two standard errors of the paper's.\n" in text
    assert text.count("80.00 / 60.00") == 9  # single states
    off = [{**r, "accuracy": r["accuracy"] - 0.17} if (r["technique"], r["size"]) == ("paired", 500) else r
           for r in paper_rows()]  # fmt: skip
    assert re.search(r"8 of 9 cells .* not: Paired observation at 500 \(-", report(table(off)))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (paper_rows(horizon=10), "The paper has no number for these cells."),
        (paper_rows(n_features=64), "The paper has no number for these cells."),
        ([{**r, "size": 700 + r["size"]} for r in paper_rows()], "The paper has no number for these cells."),
        (paper_rows(n=4), "Too few seeds for intervals, and for a comparison with the paper: 4 of 5."),
    ],
    ids=["another horizon", "other features", "other sizes", "few seeds"],
)
def test_what_cannot_be_compared_with_the_paper_is_not(table, rows, sentence):
    made = table(rows)
    assert sentence in report(made)
    assert {cell["standard_errors_apart"] for cell in made["cells"]} == {None}
    assert ("[" in report(made).splitlines()[2]) == ("Too few" not in sentence)


# -- runs -------------------------------------------------------------------------------------------------------------


def test_a_step_without_a_state_reads_the_first_coordinate_and_may_be_counted_as_half():
    """Paper: Line 46"""
    run = Run("craft", 30, 1, horizon=30, n_features=16)
    result = run_one(run)
    lost = range(run.horizon - result["steps_with_no_state"] + 1, run.horizon + 1)  # once lost, all later steps are
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    first = sum(world.feature_accuracy(h)[0] - 0.5 for h in lost) / run.horizon
    assert len(lost) > 3
    assert result["accuracy"] - result["accuracy_no_state_half"] == pytest.approx(first)


def test_all_techniques_see_the_same_data_and_craft_says_how_it_went():
    results = {t: run_one(Run(t, 800, 3, horizon=6, n_features=16)) for t in NAMES}
    assert results["craft"]["accuracy"] > results["single"]["accuracy"]
    assert 0 < results["craft"]["assigned_at_end"] <= 1
    for result in results.values():
        # One of the six steps is h = 1, where everybody is right.
        assert result["accuracy"] == pytest.approx((1 + 5 * result["accuracy_from_2"]) / 6)
        # No feature of this world is better in one state than in the other.
        assert result["state_mean"] == pytest.approx(result["accuracy_from_2"])
        assert 0.5 <= result["state_worst"] <= result["state_mean"]


def test_the_command_writes_rows_table_and_picture(tmp_path, capsys):
    argv = ["reproduce", "table1", *SMALL, "--out", str(tmp_path)]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "Average encoder accuracy in percent, H = 5, M = 8, 2 seeds" in out
    assert "chance: a random feature" in out
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 12
    table = json.loads((tmp_path / "table.json").read_text())
    assert 0.5 < table["chance"] < 1
    assert {(c["technique"], c["size"]) for c in table["cells"]} == {(t, n) for t in NAMES for n in (60, 120)}
    assert (tmp_path / "table1.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "rows.jsonl").read_bytes()
    assert main(argv) == 0
    assert (tmp_path / "rows.jsonl").read_bytes() == before


def test_a_stopped_sweep_goes_on_with_the_rows_that_it_has(tmp_path, monkeypatch):
    settings = {"sizes": [40], "horizon": 3, "features": 4, "quiet": True}
    reproduce_table1(seeds=2, out=tmp_path / "whole", **settings)
    calls = []

    def stops(run):
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
    reproduce_table1(seeds=2, out=out, **settings)
    assert len(calls) == 3 + 4
    assert rows.read_bytes() == (tmp_path / "whole" / "rows.jsonl").read_bytes()


def test_the_command_refuses_folders_and_senseless_numbers(tmp_path, capsys):
    (tmp_path / "file").touch()
    for argv, told in [
        ([*SMALL, "--out", str(tmp_path)], "holds other files, such as file; choose another"),
        ([*SMALL, "--out", str(tmp_path / "file")], "must be writable"),
        *((argv, "must be a whole number of at least 1") for argv in
          (["--seeds", "0"], ["--sizes", "-5"], ["--workers", "two"])),
    ]:  # fmt: skip
        assert main(["reproduce", "table1", *argv]) == 2
        assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# -- what is committed ------------------------------------------------------------------------------------------------


def committed(study):
    return [json.loads(line) for line in (STUDIES / study / "rows.jsonl").read_text().splitlines()]


def test_the_code_still_gives_the_committed_rows():
    small = [r for r in committed("table1") if r["size"] <= 1000]
    for technique in NAMES:
        mine = [r for r in small if r["technique"] == technique]
        for known in np.random.default_rng(0).choice(np.array(mine, dtype=object), 3, replace=False):
            found = run_one(Run(known["technique"], known["size"], known["seed"]))
            assert found == {key: known[key] for key in found}


def test_the_committed_tables_follow_from_their_rows():
    """Paper: Table 1"""
    for study, seeds in (("table1", 20), ("table1-200-seeds", 200)):
        known, rows = json.loads((STUDIES / study / "table.json").read_text()), committed(study)
        again = table_of(rows, known["command"])
        assert json.loads(json.dumps(again)) == known
        assert all(cell["accuracy"]["n"] == seeds for cell in again["cells"])
    assert "9 of 9 cells" in report(again)
    craft = [row for row in rows if row["technique"] == "craft"]
    right = [sum(row["state_worst"] >= 0.95 for row in craft if row["size"] == size) for size in (500, 1000, 5000)]
    assert right == [5, 105, 200]  # as the study says
    assert sum(row.get("steps_with_no_state", 0) for row in craft) == 316
