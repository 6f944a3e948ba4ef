"""Sweeps: resumed, the same for any number of workers, never mixed, never half-written."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.errors import CraftError, InvalidParameterError
from craftrl.paper.sweep import estimate, run_sweep, seed_of


@dataclass(frozen=True)
class Draw:
    size: int
    seed: int


DRAWS = [Draw(size, seed) for size in (2, 3) for seed in range(3)]


def draw(settings: Draw) -> dict[str, Any]:
    rng = np.random.default_rng(seed_of("draw", settings.size, settings.seed))
    return {"numbers": rng.random(settings.size), "best": np.int64(rng.integers(10))}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_rows_come_in_the_order_of_the_settings(tmp_path: Path) -> None:
    rows = run_sweep("draws", DRAWS, draw, tmp_path, progress=False)
    assert [(row["size"], row["seed"]) for row in rows] == [(d.size, d.seed) for d in DRAWS]
    assert all(len(row["numbers"]) == row["size"] for row in rows)
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == rows


def never(settings: Draw) -> dict[str, Any]:
    raise AssertionError("work was started")


def test_a_finished_sweep_is_read_and_not_run_again(tmp_path: Path) -> None:
    rows = run_sweep("draws", DRAWS, draw, tmp_path, progress=False)
    before = contents(tmp_path)
    assert list(before) == ["rows.jsonl", "settings.json"]
    assert run_sweep("draws", DRAWS, never, tmp_path, progress=False) == rows
    assert contents(tmp_path) == before


def test_any_number_of_workers_writes_the_same_files(tmp_path: Path) -> None:
    run_sweep("draws", DRAWS, draw, tmp_path / "one", workers=1, progress=False)
    run_sweep("draws", DRAWS, draw, tmp_path / "two", workers=2, progress=False)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_workers_keep_to_one_thread(tmp_path: Path) -> None:
    def threads(settings: Draw) -> dict[str, Any]:
        import os

        return {"omp": os.environ.get("OMP_NUM_THREADS"), "numba": os.environ.get("NUMBA_NUM_THREADS")}

    rows = run_sweep("threads", DRAWS[:2], threads, tmp_path, workers=2, progress=False)
    assert {(row["omp"], row["numba"]) for row in rows} == {("1", "1")}


@pytest.mark.parametrize("killer", [KeyboardInterrupt, MemoryError])
def test_a_killed_sweep_keeps_its_rows_and_goes_on(tmp_path: Path, killer: type[BaseException]) -> None:
    ran: list[Draw] = []

    def killed_at_the_fourth(settings: Draw) -> dict[str, Any]:
        if len(ran) == 3:
            raise killer
        ran.append(settings)
        return draw(settings)

    with pytest.raises(killer):
        run_sweep("draws", DRAWS, killed_at_the_fourth, tmp_path / "killed", progress=False)
    assert len((tmp_path / "killed" / "rows.jsonl").read_text().splitlines()) == 3

    def counted(settings: Draw) -> dict[str, Any]:
        ran.append(settings)
        return draw(settings)

    run_sweep("draws", DRAWS, counted, tmp_path / "killed", progress=False)
    assert ran == DRAWS
    run_sweep("draws", DRAWS, draw, tmp_path / "whole", progress=False)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_a_row_that_was_cut_short_is_run_again(tmp_path: Path) -> None:
    rows = run_sweep("draws", DRAWS, draw, tmp_path, progress=False)
    whole = (tmp_path / "rows.jsonl").read_text()
    (tmp_path / "rows.jsonl").write_text(whole[:-20])
    ran: list[Draw] = []

    def counted(settings: Draw) -> dict[str, Any]:
        ran.append(settings)
        return draw(settings)

    assert run_sweep("draws", DRAWS, counted, tmp_path, progress=False) == rows
    assert ran == DRAWS[-1:]
    assert (tmp_path / "rows.jsonl").read_text() == whole


def test_a_folder_of_other_settings_is_refused(tmp_path: Path) -> None:
    run_sweep("draws", DRAWS, draw, tmp_path, progress=False)
    before = contents(tmp_path)
    more = [Draw(2, seed) for seed in range(20)]
    message = f"{tmp_path} has size = 2, 3, and 2 was asked for; choose another folder with --out"
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        run_sweep("draws", more, draw, tmp_path, progress=False)
    with pytest.raises(InvalidParameterError, match=r"has seed = 0, 1, 2, and 0, 1, 2, \.\., 19 was asked for"):
        run_sweep("draws", [Draw(s, seed) for s in (2, 3) for seed in range(20)], draw, tmp_path, progress=False)
    with pytest.raises(InvalidParameterError, match="has study = draws, and others was asked for"):
        run_sweep("others", DRAWS, draw, tmp_path, progress=False)
    with pytest.raises(InvalidParameterError, match="combination of settings"):
        run_sweep("draws", [*DRAWS[:3], *DRAWS[3:4]], draw, tmp_path, progress=False)
    assert contents(tmp_path) == before


def test_a_foreign_settings_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps([1, 2]))
    with pytest.raises(InvalidParameterError, match="must be the settings file of a study"):
        run_sweep("draws", DRAWS, draw, tmp_path, progress=False)


def test_an_unwritable_folder_is_found_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidParameterError, match=r"must be writable; .*file/results is not \(Not a directory\)"):
        run_sweep("draws", DRAWS, never, tmp_path / "file" / "results", progress=False)


def test_results_that_no_file_holds_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object is no plain value"):
        run_sweep("draws", DRAWS, lambda settings: {"thing": object()}, tmp_path, progress=False)
    with pytest.raises(InvalidParameterError, match=r"may not bear a setting's name; \{'seed'\} do"):
        run_sweep("draws", DRAWS, lambda settings: {"seed": 1}, tmp_path, progress=False)


@pytest.mark.parametrize(
    ("settings", "workers", "message"),
    [
        (DRAWS, 0, "workers must be an integer of at least 1; 0 was given"),
        ([DRAWS[0]] * 2, 1, "each with settings of its own"),
        ([], 1, "at least one run"),
    ],
)
def test_senseless_sweeps(tmp_path: Path, settings: list[Draw], workers: int, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        run_sweep("draws", settings, draw, tmp_path / "out", workers=workers, progress=False)
    assert not (tmp_path / "out").exists()


def test_seeds_are_those_of_the_parts_alone() -> None:
    assert seed_of("a", 1).entropy == seed_of("a", 1).entropy
    assert len({seed_of(*parts).entropy for parts in [("a", 1), ("a", 2), ("b", 1), ("a1",)]}) == 4


def test_settings_that_no_run_can_take_are_not_kept(tmp_path):
    """Where no run comes to its end, the folder would only be in the way of better settings."""

    def refuse(settings):
        raise InvalidParameterError("n must be small; it is not.")

    with pytest.raises(InvalidParameterError, match="n must be small"):
        run_sweep("demo", DRAWS, refuse, tmp_path / "new", progress=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("wanted", ["w", "a"])  # the settings, and the first row
def test_a_full_disk_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    opened = Path.open

    def full(self: Path, mode: str = "r", **given: Any) -> Any:
        if mode == wanted:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(self, mode, **given)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(CraftError, match="There must be room"):
            run_sweep("draws", DRAWS, draw, tmp_path / "new", progress=False)
    assert not (tmp_path / "new").exists()
    assert len(run_sweep("draws", DRAWS, draw, tmp_path / "new", progress=False)) == len(DRAWS)


class TestEstimate:
    def test_the_interval_is_students(self) -> None:
        found = estimate([0.1, 0.2, 0.3, 0.4, 0.5])
        assert (found.mean, found.n) == (pytest.approx(0.3), 5)
        assert found.high - found.mean == pytest.approx(2.776445 * found.standard_error, rel=1e-5)  # t_{0.975, 4}
        assert found.standard_error == pytest.approx(0.5**0.5 / 10)

    def test_it_covers_the_mean_as_often_as_it_says(self) -> None:
        rng = np.random.default_rng(0)
        found = [estimate(rng.normal(size=8), -10, 10) for _ in range(2000)]
        assert np.mean([of.low <= 0 <= of.high for of in found]) == pytest.approx(0.95, abs=0.015)

    def test_it_covers_the_mean_of_accuracies_more_often_than_the_bootstrap(self) -> None:
        """Samples of 8 seeds of Table 1's 200, whose accuracies are skewed and end at 1."""
        path = Path(__file__).parents[2] / "studies" / "table1-200-seeds" / "rows.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        rng = np.random.default_rng(0)
        ours, theirs = [], []
        for size in (500, 1000, 5000):
            all_200 = np.array([r["accuracy"] for r in rows if r["technique"] == "craft" and r["size"] == size])
            for x in rng.choice(all_200, (300, 8)):
                low, high = estimate(x).interval
                assert 0 <= low <= high <= 1
                ours.append(low <= all_200.mean() <= high)
                means = rng.choice(x, (1000, 8)).mean(axis=1)
                low, high = np.quantile(means, [0.025, 0.975])
                theirs.append(low <= all_200.mean() <= high)
        assert np.mean(ours) > 0.85
        assert np.mean(ours) > np.mean(theirs) + 0.03

    def test_measures_may_have_other_bounds(self) -> None:
        gains = [-0.9, 0.1, -0.95, -1.0, -0.9]
        assert estimate(gains, least=-1.0).low == -1

    def test_few_seeds_have_no_interval(self) -> None:
        assert estimate([0.5, 0.6, 0.7, 0.8]).interval is None
        assert estimate([0.5]).deviation == 0
        assert estimate([0.8] * 5).interval == (0.8, 0.8)
