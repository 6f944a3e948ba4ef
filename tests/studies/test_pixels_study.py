"""The pixel study on a tiny world: rows, resuming, table and pictures."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

from craftrl.cli import main
from craftrl.envs import PixelsExBMDP, collect
from craftrl.errors import InvalidParameterError
from craftrl.oracles.network import Training
from studies.cells import ONE_STATE, markdown
from studies.pixels.report import format_table, rates_won
from studies.pixels.spec import NAMES, PRESETS, Preset, sweep

TINY = Preset(size=2, horizon=3, walkers=(1,), n=(60,))


SHARES = {"state_mean": 0.5, "state_worst": 0.25, "one_state": 0.125, "probe": 1.0}
ROW = {**SHARES, "technique": "paired", "size": 4, "n": 20, "n_states": [1, 2], "walkers": 0, "cut": "whole"}
ROW |= {"n_states_true": [1, 2], "loss": 0.5, "table_loss": 0.4, "seconds": 1.0}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setattr("studies.pixels.run._training", lambda run: Training(epochs=2, device="cpu"))


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
    assert rows[0]["seconds_by_phase"].keys() >= {"log-odds", "embedding", "states", "encoding"}
    won = rows[1]["loss_by_lr"]
    assert won.keys() == {"0.0003", "0.001", "0.003"}
    assert rows[1]["loss"] == min(won.values()) == won[f"{rows[1]['lr']:g}"]
    cells = json.loads((tmp_path / "table.json").read_text())["cells"]
    assert cells[0]["accuracy"] == pytest.approx(rows[0]["pooled"])
    assert cells[0]["found"] == [rows[0]["found"]]
    assert cells[0]["true"] == [4]
    assert cells[1]["accuracy"] == pytest.approx(rows[1]["accuracy"])
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


def test_rates_are_a_matter_of_rivals():
    runs = sweep(TINY, ["craft", "paired"], rates=[1e-3])
    assert [(r.technique, r.rates, r.cut) for r in runs] == [("craft", (), "whole"), ("paired", (1e-3,), "whole")]


def test_clips_come_from_anywhere_and_their_states_with_them():
    from studies.rivals import cut

    world = PixelsExBMDP(8, 2, 0, seed=0)
    whole = collect(world, world.policies(), 30, seed=0)
    clips, unequal = cut(whole, "clips", 0), cut(whole, "unequal", 0)
    assert clips.tau.H == 6
    assert set(clips.truth.states[:, 0]) > {0}  # they begin in more than the start
    for h in range(1, 7):
        assert np.array_equal(world.phi_star(clips.tau.at(h), 1), clips.truth.states[:, h - 1])
    assert {3, 8} <= set(unequal.tau.lengths)
    assert np.array_equal(unequal.tau.at(3), whole.tau.at(3))
    assert cut(whole, "whole", 0) is whole
    with pytest.raises(InvalidParameterError, match="Clips of 6 steps need longer trajectories; these have 6 steps"):
        cut(clips, "clips", 0)


@pytest.mark.parametrize("study", ["pixels", "games"])
def test_rivals_do_not_learn_from_cuts(study, tmp_path, capsys):
    assert main(["reproduce", study, "--cut", "clips", "--out", str(tmp_path)]) == 2
    assert "--cut clips is for craft alone; ac-state," in capsys.readouterr().err


def test_tables_give_means_over_seeds_states_found_and_what_knowing_nothing_scores():
    rows = [{**ROW, "technique": "single", "seed": 0, "walkers": 2, "accuracy": 1.0, "lr": 1e-3, "found": None}]
    craft = {**ROW, "technique": "craft", "accuracy": 0.0, "true": 2}
    rows += [{**craft, "seed": i, "pooled": pooled, "found": 2 + i} for i, pooled in enumerate([0.5, 0.75])]
    table = markdown(rows, ("walkers",), NAMES).splitlines()
    assert table[0].endswith("| 0 walkers | 2 walkers |")
    assert table[2:] == [
        "| CRAFT | 62.5 (50.0 to 75.0) / 25, 2 to 3 of 2 states, 2 seeds | - |",
        f"| {NAMES['single']} | - | 100.0 / 25, probe 100 |",
        f"| {ONE_STATE} | 12.5 | 12.5 |",
    ]
    assert rates_won(rows) == f"Learning rates that won: {NAMES['single']} 0.001."
    assert rates_won(rows[1:]) == markdown([], ("walkers",), NAMES) == ""


def test_five_seeds_have_an_interval_and_cuts_are_columns():
    rows = [{**ROW, "technique": "craft", "seed": i, "pooled": 0.9 + i / 100, "found": 2, "true": 2} for i in range(5)]
    rows.append({**rows[0], "cut": "clips"})
    head, _, craft, _ = markdown(rows[::-1], ("size", "cut"), NAMES).splitlines()
    assert head.endswith("| 4x4 cells, whole | 4x4 cells, clips |")
    assert craft.startswith("| CRAFT | 92.0 (90.0 to 94.0) / 25, 2 of 2 states, 5 seeds | 90.0 / 25, 2 of 2 states |")


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
