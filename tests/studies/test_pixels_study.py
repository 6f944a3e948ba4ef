"""The pixel study on a tiny world: rows, resuming, table and pictures."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl.cli import main
from craftrl.oracles.network import Training
from studies.cells import ONE_STATE, states_right
from studies.pixels.picture import draw_study
from studies.pixels.report import format_table, label
from studies.pixels.spec import NAMES, PRESETS, Preset, sweep
from studies.pixels.tables import QUESTIONS, markdown, rates_won, read_rows

HERE = Path(__file__).parents[2] / "studies" / "pixels"
TINY = Preset(size=2, horizon=3, walkers=(1,), n=(60,))


def test_rows_with_chosen_bounds_alone_are_drawn(tmp_path):
    rows = [row for row in read_rows(HERE / "rooms.jsonl") if row["technique"] == "craft" and row["bounds"] == "auto"]
    assert rows
    draw_study(rows, tmp_path / "pixels.png")
    assert (tmp_path / "pixels.png").stat().st_size > 1000
    draw_study([{**rows[0], "technique": "craft-steps"}], tmp_path / "ablations.png")
    assert not (tmp_path / "ablations.png").exists()


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setattr("studies.pixels.run._training", lambda run: Training(epochs=2, plateau=0, device="cpu"))


ARGUMENTS = ["reproduce", "pixels", "--preset", "tiny", "--device", "cpu", "--quiet"]


@pytest.mark.filterwarnings("ignore::craftrl.errors.AssumptionWarning")
def test_the_study_writes_rows_table_and_pictures_and_resumes(tiny, tmp_path, monkeypatch, capsys):
    argv = [*ARGUMENTS, "--out", str(tmp_path), "--techniques", "craft", "paired"]
    assert main([*argv, "--example"]) == 0
    assert {p.name for p in tmp_path.iterdir()} >= {
        "table.json",
        "pixels.png",
        "example.png",
        "rows.jsonl",
        "settings.json",
    }
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["technique"] for row in rows] == ["craft", "paired"]
    for row in rows:
        assert 0 <= row["accuracy"] <= 1
        assert len(row["n_states"]) == len(row["n_states_true"]) == 3
        assert row["n_states_true"] == [1, 3, 4]
        assert row["loss"] > 0
        assert row["chance"] == pytest.approx(np.log(2))
    assert rows[0]["seconds_by_phase"].keys() >= {"log-odds", "encoding", "sharing"}
    won = rows[1]["loss_by_lr"]
    assert won.keys() == {"0.0003", "0.001", "0.003"}
    assert rows[1]["loss"] == min(won.values()) == won[f"{rows[1]['lr']:g}"]
    cells = json.loads((tmp_path / "table.json").read_text())["cells"]
    assert cells[0]["accuracy"] == pytest.approx(rows[0]["accuracy"])
    printed = capsys.readouterr().out
    assert format_table(rows) in printed
    assert NAMES["paired"] in printed

    def never(run):
        raise AssertionError("a finished run was run again")

    monkeypatch.setattr("studies.pixels.run.run_one", never)
    assert main(argv) == 0
    assert capsys.readouterr().out == printed


def test_an_example_needs_craft(tiny, tmp_path, capsys):
    assert main([*ARGUMENTS, "--out", str(tmp_path), "--techniques", "paired", "--example"]) == 2
    assert "--example needs the technique craft; only paired was given" in capsys.readouterr().err


def test_all_techniques_of_a_dataset_come_together_and_see_the_same_data(tiny):
    from studies.pixels.run import data_of

    runs = sweep(TINY, ["craft", "ac-state"], walkers=[0, 1], device="cpu")
    assert [(r.walkers, r.technique) for r in runs] == [(0, "craft"), (0, "ac-state"), (1, "craft"), (1, "ac-state")]
    assert data_of(runs[0]) is data_of(runs[1])
    assert data_of(runs[2]) is not data_of(replace(runs[2], seed=1))


def test_bounds_are_a_matter_of_craft_alone_and_rates_of_its_rivals():
    runs = sweep(TINY, ["craft", "paired"], bounds=["true", "auto"], rates=[1e-3])
    assert [(r.technique, r.bounds, r.rates) for r in runs] == [
        ("craft", "true", ()),
        ("craft", "auto", ()),
        ("paired", "none", (1e-3,)),
    ]
    assert label("craft", "auto") != label("craft", "true") == NAMES["craft"]


def test_the_tables_of_the_docs_give_means_over_seeds_and_say_what_knowing_nothing_scores():
    shares = {"state_mean": 0.5, "state_worst": 0.25, "one_state": 0.125, "probe": 1.0}
    row = {**shares, "technique": "paired", "bounds": "none", "size": 4, "n": 20, "n_states": [1, 2], "walkers": 0}
    row |= {"n_states_true": [1, 2], "loss": 0.5, "table_loss": 0.4, "lr": 1e-3, "seconds": 1.0}
    rows = [{**row, "seed": seed, "accuracy": accuracy} for seed, accuracy in enumerate([0.5, 0.75])]
    rows.append({**row, "technique": "single", "seed": 0, "walkers": 2, "accuracy": 1.0})
    table = markdown(rows, "walkers").splitlines()
    assert table[0].endswith("| 0 walkers | 2 walkers |")
    assert table[2:] == [
        f"| {NAMES['paired']} | 62.5 / 50.0 / 25 (100), 2 seeds | - |",
        f"| {NAMES['single']} | - | 100.0 / 50.0 / 25 (100) |",
        f"| {ONE_STATE} | 12.5 | 12.5 |",
    ]
    assert f"{NAMES['paired']} 0.001, 0.001; " in rates_won(rows)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_page_has_the_table_of_the_committed_rows(name):
    page = (HERE.parents[1] / "docs" / "pixels.md").read_text()
    assert markdown(read_rows(HERE / name), QUESTIONS[name]) in page


def test_steps_with_the_right_number_of_states_are_counted_from_the_second():
    assert states_right({"n_states": [2, 3, 4, 5], "n_states_true": [1, 3, 4, 4]}) == 2


def test_a_grid_is_recovered_from_its_transitions():
    from studies.pixels.example import grid_layout, transitions

    side = np.arange(9).reshape(3, 3)
    paths = np.concatenate([side, side.T, side[::-1, ::-1], side.T[::-1, ::-1]])
    follows = transitions(paths, 9)
    assert follows.sum() == 24
    place = grid_layout(follows)
    neighbours = [np.linalg.norm(place[a] - place[b]) for a, b in zip(*np.nonzero(follows))]
    corners = np.linalg.norm(place[0] - place[8])
    assert max(neighbours) < 0.6 * corners
