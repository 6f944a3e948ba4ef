"""The record that every study fills in, on the smallest study there is: resumed, the same for any number of workers,
never mixed with other studies."""

from __future__ import annotations

import argparse
import errno
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.data.files import write_json
from craftrl.errors import CraftError, InvalidParameterError, MissingDependencyError
from craftrl.paper.sweep import seed_of
from studies.study import Later, Row, Study, run_sweep


@dataclass(frozen=True)
class Toss:
    bias: float
    seed: int


TOSSES = [Toss(bias, seed) for bias in (0.5, 0.9) for seed in range(3)]


def run_one(toss: Toss) -> dict[str, Any]:
    rng = np.random.default_rng(seed_of("coins", toss.seed))
    return {"heads": int(rng.random() < toss.bias), "numbers": rng.random(2), "best": np.int64(rng.integers(10))}


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    heads = sum(row["heads"] for row in rows)
    write_json(out / "heads.json", {"heads": heads, "tosses": len(rows)})
    return f"{heads} heads in {args.seeds} tosses"


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    (out / "heads.png").write_bytes(b"\x89PNG")


COINS = Study(
    name="coins",
    summary="how often a coin shows heads",
    seeds=3,
    runs=lambda args: [Toss(args.bias, seed) for seed in range(args.seeds)],
    run_one=run_one,
    report=report,
    draw=draw,
    writes=("heads.json", "heads.png"),
    options=lambda parser: parser.add_argument("--bias", type=float, default=0.5),
    full_seeds=8,
    full_adds=" and patience",
    examples=("--full --workers 2",),
)


def reproduce(study: Study, *argv: str) -> None:
    parser = argparse.ArgumentParser()
    study.add_arguments(parser)
    study.main(parser.parse_args(["--quiet", *argv]))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_study_runs_reports_draws_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce(COINS, "--bias", "1", "--out", str(tmp_path))
    written = f"Written to {tmp_path}: heads.json, heads.png and one row per run."
    assert capsys.readouterr().out == f"3 heads in 3 tosses\n\n{written}\n"
    assert json.loads((tmp_path / "heads.json").read_text()) == {"heads": 3, "tosses": 3}
    assert list(contents(tmp_path)) == ["heads.json", "heads.png", "rows.jsonl", "settings.json"]
    assert json.loads((tmp_path / "settings.json").read_text())["study"] == "coins"


def test_full_sets_the_seeds_unless_they_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce(COINS, "--full", "--out", str(tmp_path / "all"))
    reproduce(COINS, "--full", "--seeds", "2", "--out", str(tmp_path / "two"))
    assert [(tmp_path / name / "rows.jsonl").read_text().count("\n") for name in ("all", "two")] == [8, 2]
    assert "in 8 tosses" in capsys.readouterr().out


def test_help_has_options_and_examples() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    COINS.add_arguments(parser)
    text = parser.format_help()
    for told in ("8 seeds and patience", "--bias", "results/coins", "craftrl reproduce coins --full --workers 2\n"):
        assert told in text
    assert "(default: 3, 8 with --full)" in " ".join(text.split())
    assert "writes heads.json, heads.png and one row per run" in text


def test_a_study_may_have_no_pictures_no_options_and_no_full_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = replace(COINS, draw=None, options=None, full_seeds=None, runs=lambda args: [Toss(0.0, 0)])
    reproduce(plain, "--out", str(tmp_path))
    assert "0 heads" in capsys.readouterr().out
    assert not (tmp_path / "heads.png").exists()


def test_the_report_is_printed_before_a_picture_can_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def no_matplotlib(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
        raise MissingDependencyError("pictures need Matplotlib")

    with pytest.raises(MissingDependencyError):
        reproduce(replace(COINS, draw=no_matplotlib), "--out", str(tmp_path))
    assert "heads in 3 tosses" in capsys.readouterr().out


def test_a_later_function_is_imported_when_it_is_called() -> None:
    assert Later("math", "hypot")(3.0, 4.0) == 5.0
    missing = Later("no_such_module", "f")
    with pytest.raises(ModuleNotFoundError):
        missing()


def never(settings: Toss) -> dict[str, Any]:
    raise AssertionError("work was started")


def test_rows_come_in_the_order_asked_for_and_a_finished_sweep_is_only_read(tmp_path: Path) -> None:
    rows = run_sweep("coins", TOSSES, run_one, tmp_path, progress=False)
    assert [Toss(row["bias"], row["seed"]) for row in rows] == TOSSES
    before = contents(tmp_path)
    assert [json.loads(line) for line in before["rows.jsonl"].splitlines()] == rows
    assert run_sweep("coins", TOSSES, never, tmp_path, progress=False) == rows
    assert contents(tmp_path) == before


def test_more_runs_are_added_to_those_that_are_there(tmp_path: Path) -> None:
    ran: list[Toss] = []

    def counted(toss: Toss) -> dict[str, Any]:
        ran.append(toss)
        return run_one(toss)

    run_sweep("coins", TOSSES[:2], counted, tmp_path, progress=False)
    rows = run_sweep("coins", TOSSES[1:4], counted, tmp_path, progress=False)
    assert ran == TOSSES[:4]
    assert [Toss(row["bias"], row["seed"]) for row in rows] == TOSSES[1:4]
    assert (tmp_path / "rows.jsonl").read_text().count("\n") == 4  # the first one is kept


def test_any_number_of_workers_writes_the_same_files_and_each_keeps_to_one_thread(tmp_path: Path) -> None:
    def threads(toss: Toss) -> dict[str, Any]:
        import os

        return {**run_one(toss), "threads": [os.environ.get(f"{kind}_NUM_THREADS") for kind in ("OMP", "NUMBA")]}

    run_sweep("coins", TOSSES, run_one, tmp_path / "one", workers=1, progress=False)
    run_sweep("coins", TOSSES, run_one, tmp_path / "two", workers=2, progress=False)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    rows = run_sweep("coins", TOSSES[:2], threads, tmp_path / "threads", workers=2, progress=False)
    assert [row["threads"] for row in rows] == [["1", "1"]] * 2


@pytest.mark.parametrize("killer", [KeyboardInterrupt, MemoryError])
def test_a_killed_sweep_keeps_its_rows_and_goes_on(tmp_path: Path, killer: type[BaseException]) -> None:
    ran: list[Toss] = []

    def killed_at_the_fourth(toss: Toss) -> dict[str, Any]:
        if len(ran) == 3:
            raise killer
        ran.append(toss)
        return run_one(toss)

    with pytest.raises(killer):
        run_sweep("coins", TOSSES, killed_at_the_fourth, tmp_path / "killed", progress=False)
    path = tmp_path / "killed" / "rows.jsonl"
    assert len(path.read_text().splitlines()) == 3
    path.write_text(path.read_text()[:-20])  # the kill cut the last row short

    def counted(toss: Toss) -> dict[str, Any]:
        ran.append(toss)
        return run_one(toss)

    run_sweep("coins", TOSSES, counted, tmp_path / "killed", progress=False)
    assert ran == [*TOSSES[:3], *TOSSES[2:]]
    run_sweep("coins", TOSSES, run_one, tmp_path / "whole", progress=False)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_folders_of_others_are_refused_before_any_work(tmp_path: Path) -> None:
    run_sweep("coins", TOSSES, run_one, tmp_path / "coins", progress=False)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "settings.json").write_text("[1, 2]")
    (tmp_path / "file").write_text("")
    before = contents(tmp_path)
    for folder, message in {
        "coins": "hold rows of dice made by craftrl .*coins holds other files, such as rows.jsonl; choose another",
        "foreign": "foreign holds other files, such as settings.json",
        ".": "holds other files, such as coins",
        "file/results": r"must be writable; .*file/results is not \(Not a directory\)",
    }.items():
        with pytest.raises(InvalidParameterError, match=message):
            run_sweep("dice", TOSSES, never, tmp_path / folder, progress=False)
    assert contents(tmp_path) == before


def test_results_that_no_file_holds_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object is no plain value"):
        run_sweep("coins", TOSSES, lambda toss: {"thing": object()}, tmp_path, progress=False)


@pytest.mark.parametrize("wanted", ["w", "a"])  # the settings, and the first row
def test_a_full_disk_is_one_sentence_and_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    opened = Path.open

    def full(self: Path, mode: str = "r", **given: Any) -> Any:
        if mode == wanted:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(self, mode, **given)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(CraftError, match="There must be room"):
            run_sweep("coins", TOSSES, run_one, tmp_path / "new", progress=False)
    assert len(run_sweep("coins", TOSSES, run_one, tmp_path / "new", progress=False)) == len(TOSSES)
