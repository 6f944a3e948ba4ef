"""The record that every study fills in, on the smallest study there is, from arguments to files."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from craftrl.cli.parser import CommandParser
from craftrl.cli.reproduce import StudyCommand
from craftrl.data.files import write_json
from craftrl.errors import MissingDependencyError
from craftrl.paper.sweep import Later, Row, Study, seed_of


@dataclass(frozen=True)
class Toss:
    bias: float
    seed: int


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bias", type=float, default=0.5)


def runs(args: argparse.Namespace) -> list[Toss]:
    return [Toss(args.bias, seed) for seed in range(args.seeds)]


def run_one(toss: Toss) -> dict[str, Any]:
    return {"heads": int(np.random.default_rng(seed_of("coins", toss.seed)).random() < toss.bias)}


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
    runs=runs,
    run_one=run_one,
    report=report,
    draw=draw,
    writes=("heads.json", "heads.png"),
    options=options,
    full_seeds=8,
    full_adds=" and patience",
    examples=("--full --workers 2",),
)


def reproduce(study: Study, *argv: str) -> None:
    args = CommandParser(command=StudyCommand(study)).parse_args(["--quiet", *argv])
    args.main(args)


def test_a_study_runs_reports_draws_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reproduce(COINS, "--bias", "1", "--out", str(tmp_path))
    written = f"Written to {tmp_path}: heads.json, heads.png and one row per run."
    assert capsys.readouterr().out == f"3 heads in 3 tosses\n\n{written}\n"
    assert json.loads((tmp_path / "heads.json").read_text()) == {"heads": 3, "tosses": 3}
    assert {p.name for p in tmp_path.iterdir()} == {"heads.json", "heads.png", "rows.jsonl", "settings.json"}
    assert json.loads((tmp_path / "settings.json").read_text())["study"] == "coins"


def test_full_sets_the_seeds_and_any_number_of_workers_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce(COINS, "--full", "--out", str(tmp_path / "one"))
    reproduce(COINS, "--full", "--workers", "2", "--out", str(tmp_path / "two"))
    one, two = ((tmp_path / name / "rows.jsonl").read_text() for name in ("one", "two"))
    assert one == two
    assert one.count("\n") == 8
    assert "in 8 tosses" in capsys.readouterr().out


def test_seeds_that_are_asked_for_are_run_with_full_too(tmp_path: Path) -> None:
    reproduce(COINS, "--full", "--seeds", "2", "--out", str(tmp_path))
    assert (tmp_path / "rows.jsonl").read_text().count("\n") == 2


def test_help_has_options_and_examples() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    StudyCommand(COINS).add_arguments(parser)
    text = parser.format_help()
    assert "8 seeds and patience" in text
    assert "(default: 3, 8 with --full)" in " ".join(text.split())
    assert "--bias" in text
    assert "results/coins" in text
    assert "craftrl reproduce coins --full --workers 2\n" in text
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
