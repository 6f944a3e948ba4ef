"""The study of the structured worlds, on its smallest sizes."""

from pathlib import Path
from typing import Any

import pytest

from craftrl.cli import main
from studies.worlds.report import cells, chance_of_worlds, enough, format_table
from studies.worlds.run import run_one
from studies.worlds.spec import HORIZON, SIZES, Run, sweep

ROOT = Path(__file__).parents[2]
PERFECT = {
    "accuracy": 1.0,
    "steps_with_right_state_count": 1.0,
    "graph_precision": 1.0,
    "graph_recall": 1.0,
    "label_graph_precision": 1.0,
    "label_graph_recall": 0.9,
    "assigned_at_end": 0.9,
}


def row(size: int, seed: int, **changes: float) -> dict[str, Any]:
    return {"world": "lock", "coupling": "chain", "size": size, "seed": seed, **PERFECT, **changes}


def test_enough_is_the_size_from_which_no_seed_fails() -> None:
    table = cells([row(10, 0), row(10, 1), row(20, 0), row(20, 1, graph_recall=0.9), row(40, 0), row(40, 1)])
    assert [cell["recovered"] for cell in table] == [2, 1, 2]
    assert enough(table) == {("lock", "chain"): 40}
    assert enough(cells([row(10, 0, accuracy=0.99)])) == {("lock", "chain"): None}
    assert format_table(table, {"lock": 0.4}).count("\n") == 4


def test_single_states_have_columns_where_they_were_measured() -> None:
    single = {"state_mean": 0.91, "state_worst": 0.82, "chance": 0.4}
    old, new = [row(10, 0)], [row(10, 0, **single)]
    assert cells(new)[0]["state_worst"] == 0.82
    assert chance_of_worlds(new) == {"lock": 0.4}
    assert "82.00%" in format_table(cells(new), chance_of_worlds(new))
    assert "state_worst" not in cells(old)[0]
    assert format_table(cells(old), chance_of_worlds(old)).count("%") == 3


def test_a_sweep_names_every_run_once() -> None:
    runs = sweep(SIZES, 2, HORIZON)
    assert len(set(runs)) == len(runs) == 2 * 2 * sum(map(len, SIZES.values()))


@pytest.mark.parametrize(
    "run",
    [Run("lock", "independent", 4000, 1, 5), Run("multimaze", "independent", 12_000, 1, 4)],
    ids=lambda r: r.world,
)
def test_exact_craft_recovers_states_and_graph(run: Run) -> None:
    result = run_one(run)
    assert result["accuracy"] == result["state_mean"] == result["state_worst"] == 1.0
    assert 0 < result["chance"] < 0.7
    assert result["steps_with_right_state_count"] == 1.0
    assert result["graph_precision"] == result["graph_recall"] == 1.0
    assert result["label_graph_precision"] == result["label_graph_recall"] == 1.0


def test_the_command_prints_a_table_and_what_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.worlds import spec

    monkeypatch.setattr(spec, "SIZES", {"lock": (3000,)})
    monkeypatch.setattr(spec, "HORIZON", {"lock": 3})
    main(["reproduce", "worlds", "--seeds", "1", "--quiet", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "lock, chain: states and graph recovered in every seed: from 3,000" in printed
    assert "chance: one state" in printed
    assert (tmp_path / "table.json").exists()
