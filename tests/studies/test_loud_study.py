"""The study of silent wrong models, on its smallest sizes."""

from pathlib import Path

import numpy as np
import pytest

from craftrl.cli import main
from studies.loud.cases import draw_case
from studies.loud.report import beside_known, counts, group_of
from studies.loud.run import run_one
from studies.loud.spec import Run, sweep
from studies.loud.world import TabularExBMDP


def row(**changes):
    given = {"worlds": "fresh", "kind": "ring", "bounds": "chosen", "agents": 2, "sizes": [100, 10]}
    found = {"violation": "none", "worst_state": 1.0, "worst_named": 1.0, "known_state": 1.0, "known_named": 0.5}
    return {**given, **found, "warned": False, "told": [], "verdict": "trust", **changes}


def test_a_case_follows_from_its_number_and_keeps_to_its_tables():
    for seed in range(12):
        case, again = (draw_case(seed, "about 30") for _ in range(2))
        data = case.data()
        assert all(np.array_equal(data.tau.at(h), again.data().tau.at(h)) for h in range(1, data.tau.H + 1))
        if not isinstance(case.world, TabularExBMDP) or case.violation != "none":
            continue
        states, actions = data.truth.states, data.truth.actions
        for h in range(1, data.tau.H):
            assert np.array_equal(states[:, h], case.world.T(h)[states[:, h - 1], actions[:, h - 1]])
            assert np.array_equal(case.world.phi_star(data.tau.at(h + 1), h + 1), states[:, h])


def test_no_coordinate_but_one_is_the_state():
    case = next(c for c in (draw_case(seed, "400") for seed in range(50)) if c.violation == "none")
    data = case.data()
    functions = case.oracle("functions")
    for h in range(2, data.tau.H + 1):
        right = (data.tau.at(h) == data.truth.states[:, [h - 1]]).mean(axis=0)
        assert (right == 1).sum() == 1
        values = [np.asarray(phi(data.tau.at(h))) for phi in functions.Phi(h)]
        assert sum(np.array_equal(value, data.truth.states[:, h - 1]) for value in values) == 1
        assert max(value.max() for value in values) < functions.n_values


def test_sizes_of_agents():
    assert set(draw_case(0, "200").sizes) == {200}
    sizes = draw_case(2, "4000:200").sizes
    assert (sizes[0], sizes[-1]) == (4000, 200)


def test_groups_and_counts():
    rows = [
        row(),
        row(worst_state=0.9, worst_named=0.9, warned=True, verdict="do not trust"),
        row(worst_named=0.5, warned=True, verdict="check"),
        row(violation="leaks", known_state=None, verdict="check"),
    ]
    assert [group_of(r) for r in rows] == ["right", "wrong", "too few states", "right, broken"]
    assert [(c["group"], c["warned"], c["trusted"]) for c in counts(rows, lambda r: r["worlds"])] == [
        ("wrong", 1, 0),
        ("too few states", 1, 0),
        ("right, broken", 0, 0),
        ("right", 0, 1),
    ]
    assert beside_known(rows) == [
        {"balance": "1:10", "models": 3, "worst_state": 2, "worst_named": 1, "known_state": 3, "known_named": 0}
    ]


def test_a_sweep_names_every_run_once_and_a_run_repeats_itself():
    runs = sweep(30)
    assert len(set(runs)) == 80
    assert {run.bounds for run in runs} == {"chosen", "known"}
    for encoders in ("coordinates", "functions"):
        run = Run("fresh", encoders, "known", "200", 3, n_resamples=1)
        assert run_one(run) == run_one(run)


def test_the_command_prints_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("studies.loud.spec.SIZES", ("100", "200:50"))
    main(["reproduce", "loud", "--seeds", "1", "--quiet", "--out", str(tmp_path)])
    assert "models are" in capsys.readouterr().out
    assert (tmp_path / "table.json").stat().st_size > 100
