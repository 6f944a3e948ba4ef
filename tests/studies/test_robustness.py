"""The study of broken assumptions, on its smallest sizes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.cli import main
from craftrl.envs import BitsExBMDP, collect
from studies.robustness.distractor import planted_codes, planted_distractors
from studies.robustness.hidden import HiddenBitsExBMDP
from studies.robustness.notice import (
    DIAGNOSTICS,
    format_noticed,
    format_predictions,
    format_verdicts,
    is_right,
    noticed,
    predictions,
    verdicts,
)
from studies.robustness.report import cells, format_cells
from studies.robustness.run import BROKEN, run_one
from studies.robustness.spec import DATA_SIZES, LEARNERS, VIOLATION_SIZES, Run, sweep

ROWS = Path(__file__).parents[2] / "studies" / "robustness" / "rows.jsonl"


def row(accuracy: float, score: float, **changes: Any) -> dict[str, Any]:
    given = {"world": "toy", "violation": "none", "size": 0.0, "n": 1000, "learner": "default", "seed": 0}
    findings = dict.fromkeys(
        (
            "stability",
            "explained_so_far",
            "least_p_value",
            "least_closure_p_value",
            "same_count",
            "assigned",
        ),
        1.0,
    )
    return {
        **given,
        **findings,
        **dict.fromkeys(("accuracy", "state_mean", "state_worst"), accuracy),
        "chance": 0.7,
        "warned": False,
        "score": score,
        "verdict": "trust" if score > 0.9 else "do not trust",
        **changes,
    }


def test_a_sweep_names_every_run_once() -> None:
    runs = sweep(2)
    n_datasets = sum(map(len, DATA_SIZES.values())) + sum(len(s) for v in VIOLATION_SIZES.values() for s in v.values())
    assert len(set(runs)) == len(runs) == 2 * n_datasets * len(LEARNERS)
    assert {run.violation for run in runs} <= {"none", "hidden", *BROKEN}
    assert {run.learner for run in runs if not run.n_resamples} == {"markov"}


def test_a_diagnostic_that_orders_models_by_accuracy_foretells_it() -> None:
    rows = [row(0.5 + 0.05 * i, 0.1 * i) for i in range(11)]
    found = {(p.diagnostic, p.group): p for p in predictions(rows)}
    assert found["score", "all"].rank_correlation == pytest.approx(1)
    assert found["score", "all"].auc == 1
    assert np.isnan(found["stability", "all"].rank_correlation)
    assert found["stability", "all"].auc == 0.5
    assert found["score", "data size"].rows == 11
    assert ("score", "lock") not in found
    assert format_predictions(list(found.values())).splitlines()[1].startswith("all")


def test_a_group_is_one_violation_with_its_unbroken_world() -> None:
    rows = [
        row(1.0, 1.0),
        row(1.0, 1.0, n=100),
        row(0.7, 0.5, violation="leaks", size=0.1),
        row(0.9, 0.5, world="lock"),
    ]
    counts = {p.group: p.rows for p in predictions(rows) if p.diagnostic == "score"}
    assert counts["leaks"] == 2
    assert counts["slips"] == 1
    assert counts["data size"] == 2
    assert counts["lock"] == 1


def test_cells_and_verdicts_count_seeds() -> None:
    rows = [row(0.9, 0.95), row(1.0, 0.95, seed=1), row(0.6, 0.3, violation="leaks", size=0.1, warned=True)]
    table = cells(rows)
    assert [cell.accuracy.n for cell in table] == [2, 1]
    assert table[0].accuracy.mean == table[0].state_worst == pytest.approx(0.95)
    assert [cell.right for cell in table] == [0.5, 0]
    assert format_cells(table).count("\n") == 2
    assert "chance" in format_cells(table)
    assert [(v["verdict"], v["models"], v["right"]) for v in verdicts(rows)] == [
        ("do not trust", 1, 0),
        ("trust", 2, 0.5),
    ]
    assert "do not trust" in format_verdicts(verdicts(rows))
    unbroken, leaks = noticed(rows)
    assert unbroken["wrong"] == {"models": 1, "warned": 0, "trusted": 1}
    assert leaks["wrong"] == {"models": 1, "warned": 1, "trusted": 0}
    assert leaks["right"]["models"] == 0
    assert len(format_noticed([unbroken, leaks]).splitlines()) == 3


def test_hidden_steps_show_a_coin_instead_of_the_state() -> None:
    world = HiddenBitsExBMDP(8, 6, seed=1, hidden=0.5)
    data = collect(world, world.paper_policies(), 2000, 0)
    assert not world.hidden[0]
    assert 0 < world.hidden.sum() < 8
    for h in range(1, 9):
        shown = data.tau.at(h)[:, world.controllable_feature(h)]
        agreement = (shown == data.truth.states[:, h - 1]).mean()
        assert agreement == pytest.approx(0.5 if world.hidden[h - 1] else 1.0, abs=0.05)
        feature, right = world.controllable_feature(h), 0.5 if world.hidden[h - 1] else 1.0
        assert world.feature_accuracy(h)[feature] == right
        assert (world.feature_state_accuracy(h)[:, feature] == right).all()
    assert not HiddenBitsExBMDP(8, 6, 1, 0.0).hidden.any()


def test_planted_distractors_are_found_with_data_and_nothing_else_is() -> None:
    found = {row["where"]: row for row in planted_distractors([1500], 1)}
    assert found["nowhere"]["alarm"] == 0
    for where in ("from the start", "in the middle", "at the end"):
        assert found[where]["alarm"] == found[where]["tainted"] == 1
    assert found["in the middle"]["seen"] == 0.5  # the two at the borders, of four


def test_planted_codes_are_the_states_xor_the_frozen_factor() -> None:
    world = BitsExBMDP(5, 6, seed=2)
    data = collect(world, world.paper_policies(), 50, 0)
    codes = planted_codes(world, data.tau, range(3, 5))
    e_1 = world.phi_e(data.tau.at(1), 1)[:, 0]
    flipped = np.array([0, 0, 1, 1, 0])
    assert np.array_equal(codes, data.truth.states ^ (e_1[:, None] * flipped))


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
@pytest.mark.parametrize(
    "run",
    [
        Run("toy", "mislabelled", 0.05, "default", 800, 0, 6, 16, 2),
        Run("control", "alike, sticky", 0.3, "default", 1500, 0, 6, 16, 2),
        Run("lock", "slips", 0.01, "paper", 2000, 1, 4, 6, 2),
    ],
    ids=lambda r: r.world,
)
def test_small_violations_are_survived_and_the_diagnosis_agrees(run: Run) -> None:
    result = run_one(run)
    assert result["accuracy"] > 0.97
    assert result["verdict"] != "do not trust"
    assert len(result["accuracy_by_step"]) == len(result["trust_by_step"]) == run.horizon
    assert result["state_worst"] > 0.9 > result["chance"]
    found = [read(result) for read in DIAGNOSTICS.values()]
    assert np.isfinite(found).all()


@pytest.mark.filterwarnings("ignore::craftrl.AssumptionWarning")
def test_what_the_mechanisms_of_the_new_violations_foretell() -> None:
    """Starts are noticed at once, and where agents are alike it decides whose habits they share."""
    starts = run_one(Run("toy", "starts", 0.2, "default", 1000, 0, 6, 16, 0))
    assert starts["accuracy"] > 0.97
    assert "several starts" in starts["told"]
    random, sticky = (
        run_one(Run("control", kind, 0.3, "default", 1000, 1, 8, 16, 0)) for kind in ("alike", "alike, sticky")
    )
    assert random["accuracy"] < 0.9 < sticky["accuracy"]


def test_the_same_run_gives_the_same_row() -> None:
    run = Run("toy", "corrupted", 0.2, "default", 300, 4, 5, 12, 2)
    assert run_one(run) == run_one(run)


def test_the_command_draws_and_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studies.robustness import spec

    monkeypatch.setattr(spec, "DATA_SIZES", {"toy": (300, 100)})
    monkeypatch.setattr(spec, "VIOLATION_SIZES", {"toy": {"leaks": (0.2,)}})
    monkeypatch.setattr(spec, "WORLD_SIZE", {"toy": (4, 8)})
    monkeypatch.setattr("studies.robustness.distractor.SIZES", (100,))
    main(["reproduce", "robustness", "--seeds", "2", "--quiet", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "over 12 models" in printed
    assert "from the start" in printed
    for name in ("tables.json", "robustness.png", "trust.png"):
        assert (tmp_path / name).stat().st_size > 1000


def committed() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


def test_what_the_page_says_of_the_curves_follows_from_the_rows() -> None:
    rows = committed()
    table = {(c.world, c.violation, c.size, c.n, c.learner): c for c in cells(rows)}

    def percent(world: str, violation: str, size: float, learner: str = "default", n: int = 1000) -> int:
        return round(100 * table[world, violation, size, n, learner].accuracy.mean)

    for violation, size, paper in (("slips", 0.4, 83), ("mislabelled", 0.3, 74), ("corrupted", 0.2, 78)):
        assert percent("toy", violation, size) >= 99
        assert percent("toy", violation, size, "paper") == paper
    assert [percent("toy", "leaks", size) for size in (0.05, 0.1, 0.3)] == [100, 53, 50]
    assert [percent("control", "alike", size) for size in (0.1, 0.3, 0.5)] == [82, 70, 66]
    assert [percent("control", "starts", size) for size in (0.1, 0.2, 0.3, 0.5)] == [100, 100, 100, 59]
    assert [percent("control", "noise", size) for size in (0.05, 0.1, 0.3)] == [100, 100, 50]
    assert all(percent("lock", "slips", size, n=2000) == 100 for size in (0.03, 0.1, 0.2, 0.4))
    sticky = [row for row in rows if row["violation"] == "alike, sticky" and row["learner"] != "paper"]
    assert all(row["code_accuracy"] > 0.997 for row in sticky)  # closure alone
    assert all(row["code_accuracy"] == 1 for row in sticky if row["world"] == "control")


def test_what_the_page_says_of_the_diagnoses_follows_from_the_rows() -> None:
    rows = committed()
    table = noticed(rows)
    assert sum(of["wrong"]["models"] for of in table) == 229
    assert sum(of["wrong"]["warned"] for of in table) == 210
    trusted = [row for row in rows if row.get("verdict") == "trust" and row["learner"] == "default"]
    mistaken = [row for row in trusted if not is_right(row)]
    assert (len(trusted), len(mistaken)) == (303, 9)
    assert sum(row["violation"] == "leaks" and row["size"] == 1 for row in mistaken) == 7
    assert min(row["accuracy"] for row in mistaken if row["violation"] != "leaks") > 0.985
    starts = [of for of in table if of["violation"] == "starts"]
    assert all(of[kind]["warned"] == of[kind]["models"] for of in starts for kind in ("wrong", "right"))
    unbroken = [of["right"] for of in table if of["violation"] == "none"]
    assert [sum(of[name] for of in unbroken) for name in ("models", "warned", "trusted")] == [72, 0, 68]
