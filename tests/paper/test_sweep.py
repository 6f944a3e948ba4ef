"""Sweeps: resumed, the same for any number of workers, never mixed, never half-written."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.errors import InvalidParameterError
from craftrl.paper.sweep import run_sweep, seed_of


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


def test_packed_rows_serve_as_well(tmp_path: Path) -> None:
    rows = run_sweep("draws", DRAWS, draw, tmp_path, progress=False)
    shutil.rmtree(tmp_path / "rows")

    def never(settings: Draw) -> dict[str, Any]:
        raise AssertionError("work was started")

    assert run_sweep("draws", DRAWS, never, tmp_path, progress=False) == rows
    assert not (tmp_path / "rows").exists()


def test_any_number_of_workers_writes_the_same_files(tmp_path: Path) -> None:
    run_sweep("draws", DRAWS, draw, tmp_path / "one", workers=1, progress=False)
    run_sweep("draws", DRAWS, draw, tmp_path / "two", workers=2, progress=False)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_one_quiet_process_needs_neither_joblib_nor_tqdm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("joblib", "tqdm"):
        monkeypatch.setitem(sys.modules, package, None)
    assert len(run_sweep("draws", DRAWS, draw, tmp_path, progress=False)) == len(DRAWS)


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
    assert len(list((tmp_path / "killed" / "rows").glob("*.json"))) == 3

    def counted(settings: Draw) -> dict[str, Any]:
        ran.append(settings)
        return draw(settings)

    run_sweep("draws", DRAWS, counted, tmp_path / "killed", progress=False)
    assert ran == DRAWS
    run_sweep("draws", DRAWS, draw, tmp_path / "whole", progress=False)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_a_torn_row_is_run_again(tmp_path: Path) -> None:
    rows = run_sweep("draws", DRAWS, draw, tmp_path, progress=False)
    torn = next((tmp_path / "rows").glob("*.json"))
    torn.write_text(torn.read_text()[:20])
    (tmp_path / "rows.jsonl").unlink()
    assert run_sweep("draws", DRAWS, draw, tmp_path, progress=False) == rows


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

    def never(settings: Draw) -> dict[str, Any]:
        raise AssertionError("work was started")

    with pytest.raises(InvalidParameterError, match=r"must be writable; .*file/results is not \(Not a directory\)"):
        run_sweep("draws", DRAWS, never, tmp_path / "file" / "results", progress=False)


def test_no_unfinished_file_stays_behind(tmp_path: Path) -> None:
    def not_plain(settings: Draw) -> dict[str, Any]:
        return {"thing": object()}

    with pytest.raises(TypeError, match="object is no plain value"):
        run_sweep("draws", DRAWS, not_plain, tmp_path, progress=False)
    assert list(contents(tmp_path)) == ["settings.json"]


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


def test_a_disk_that_is_full_at_the_first_row_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        raise InvalidParameterError("There must be room on the disk.")

    with monkeypatch.context() as patch:
        patch.setattr("craftrl.paper.sweep.write_text", full)
        with pytest.raises(InvalidParameterError, match="room"):
            run_sweep("draws", DRAWS, draw, tmp_path / "new", progress=False)
    assert not (tmp_path / "new").exists()
    assert len(run_sweep("draws", DRAWS, draw, tmp_path / "new", progress=False)) == len(DRAWS)
