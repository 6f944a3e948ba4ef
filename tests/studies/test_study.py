"""The runner of studies, on the smallest study there is: resumed, the same for any number of workers, never mixed."""

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from craftrl.errors import CraftError, InvalidParameterError
from craftrl.paper.sweep import run_sweep, seed_of
from studies import study
from studies.study import Study, commit, read_rows


@dataclass(frozen=True)
class Toss:
    bias: float
    seed: int


TOSSES = [Toss(bias, seed) for bias in (0.5, 0.9) for seed in range(3)]


def run_one(toss):
    rng = np.random.default_rng(seed_of("coins", toss.seed))
    return {"heads": int(rng.random() < toss.bias), "numbers": rng.random(2), "best": np.int64(rng.integers(10))}


COINS = Study(
    "coins",
    lambda args: [Toss(args.bias, seed) for seed in range(args.seeds)],
    run_one,
    lambda rows: f"{sum(row['heads'] for row in rows)} heads in {len(rows)} tosses",
    3,
    8,
    " and patience",
    lambda rows, out: (out / "heads.png").write_bytes(b"\x89PNG"),
    lambda parser: parser.add_argument("--bias", type=float, default=0.5),
)


def reproduce(of, *argv):
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    of.add_arguments(parser)
    of.main(parser.parse_args(["--quiet", *argv]))
    return parser.format_help()


def sweep(tosses, run, out, **given):
    return run_sweep("coins", tosses, run, out, progress=False, **given)


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def counted(ran, killer=None):
    def run(toss):
        if killer and len(ran) == 3:
            raise killer
        ran.append(toss)
        return run_one(toss)

    return run


def test_a_study_runs_reports_draws_and_says_where(tmp_path, capsys):
    text = reproduce(COINS, "--bias", "1", "--out", str(tmp_path))
    written = f"Written to {tmp_path}: heads.png, report.md, rows.jsonl."
    assert capsys.readouterr().out == f"3 heads in 3 tosses\n\n{written}\n"
    assert (tmp_path / "report.md").read_text() == "3 heads in 3 tosses\n"
    assert "(default: 3, 8 with --full)" in " ".join(text.split())
    for told in (
        "8 seeds and patience",
        "--bias",
        "results/coins",
        "coins --full --workers 2 --out results/coins-full",
    ):
        assert told in text
    reproduce(COINS, "--full", "--out", str(tmp_path / "all"))
    reproduce(COINS, "--full", "--seeds", "2", "--out", str(tmp_path / "two"))
    assert [len(read_rows(tmp_path / name / "rows.jsonl")) for name in ("all", "two")] == [8, 2]


def test_the_report_is_there_where_pictures_cannot_be_drawn_and_a_study_may_have_none(tmp_path, capsys):
    def fails(rows, out):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        reproduce(replace(COINS, draw=fails), "--out", str(tmp_path / "one"))
    assert "heads in 3 tosses" in capsys.readouterr().out
    text = reproduce(Study("coins", lambda args: TOSSES, run_one, COINS.report, 3), "--out", str(tmp_path / "two"))
    assert sorted(contents(tmp_path / "two")) == ["report.md", "rows.jsonl"]
    assert "full" not in text


def test_every_row_names_the_commit_that_made_it(tmp_path, monkeypatch):
    path = tmp_path / "rows.jsonl"
    reproduce(COINS, "--seeds", "2", "--out", str(tmp_path))
    assert re.fullmatch(r"[0-9a-f]{8}\+?", commit())
    assert {row["commit"] for row in read_rows(path)} == {commit()}
    monkeypatch.setattr(study, "commit", lambda: "0123abcd")
    reproduce(COINS, "--seeds", "3", "--out", str(tmp_path))
    assert [row["commit"] for row in read_rows(path)] == [commit(), commit(), "0123abcd"]
    path.write_text('{"seed": 0}\n{"seed": 1, "commit": "89abcdef"}\n')
    study.stamp(path)
    assert [row["commit"] for row in read_rows(path)] == ["0123abcd", "89abcdef"]
    monkeypatch.undo()
    monkeypatch.setattr(study, "STUDIES", tmp_path)  # no clone
    assert commit() == ""


def test_rows_come_as_asked_for_and_more_runs_are_added_to_those_that_are_there(tmp_path):
    ran = []
    sweep(TOSSES[:2], counted(ran), tmp_path)
    rows = sweep(TOSSES[1:4], counted(ran), tmp_path)
    assert ran == TOSSES[:4]
    assert [Toss(row["bias"], row["seed"]) for row in rows] == TOSSES[1:4]
    before, kept = contents(tmp_path), read_rows(tmp_path / "rows.jsonl")
    assert [Toss(row["bias"], row["seed"]) for row in kept] == [
        *TOSSES[1:4],
        TOSSES[0],
    ]  # what was asked for last, first
    assert sweep(TOSSES[1:4], counted(ran), tmp_path) == rows
    assert len(ran) == 4
    assert contents(tmp_path) == before


def test_any_number_of_workers_writes_the_same_files_and_each_keeps_to_one_thread(tmp_path):
    def threads(toss):
        import os

        return {**run_one(toss), "threads": [os.environ.get(f"{kind}_NUM_THREADS") for kind in ("OMP", "NUMBA")]}

    sweep(TOSSES[:2], run_one, tmp_path / "one", workers=1)
    rows = sweep(TOSSES[:2], threads, tmp_path / "two", workers=2)
    assert [row.pop("threads") for row in rows] == [["1", "1"]] * 2
    assert read_rows(tmp_path / "one" / "rows.jsonl") == rows


def test_torch_keeps_to_one_thread_in_this_process_too(tmp_path):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(2)
    threads = replace(COINS, run_one=lambda toss: {"heads": 0, "threads": torch.get_num_threads()})
    reproduce(threads, "--seeds", "1", "--out", str(tmp_path))
    assert read_rows(tmp_path / "rows.jsonl")[0]["threads"] == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_fails_leaves_the_others_alone_and_is_told_at_the_end(tmp_path, workers):
    def fails(toss):
        if toss.seed == 1:
            raise ValueError("edge")
        return run_one(toss)

    with pytest.raises(ValueError, match="edge") as caught:
        sweep(TOSSES, fails, tmp_path, workers=workers)
    assert "Toss(bias=0.5, seed=1)" in caught.value.__notes__[0]
    assert caught.value.__notes__[1].startswith("2 of 6 runs failed and have no row")
    assert {row["seed"] for row in read_rows(tmp_path / "rows.jsonl")} == {0, 2}
    assert len(sweep(TOSSES, run_one, tmp_path)) == 6


@pytest.mark.parametrize("killer", [KeyboardInterrupt, MemoryError])
def test_a_killed_sweep_keeps_its_rows_and_goes_on(tmp_path, killer):
    ran = []
    with pytest.raises(killer):
        sweep(TOSSES, counted(ran, killer), tmp_path / "killed")
    path = tmp_path / "killed" / "rows.jsonl"
    assert len(read_rows(path)) == 3
    path.write_text(path.read_text()[:-20])  # the kill cut the last row short
    sweep(TOSSES, counted(ran), tmp_path / "killed")
    assert ran == [*TOSSES[:3], *TOSSES[2:]]
    sweep(TOSSES, run_one, tmp_path / "whole")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_folders_of_others_are_refused_before_any_work(tmp_path):
    for name, file in {"dice": "rows.jsonl", "foreign": "data.npy"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text('{"sides": 6}\n')
    (tmp_path / "file").write_text("")
    before, ran = contents(tmp_path), []
    for folder, message in {
        "dice": "hold rows of coins; .*dice holds other files, such as rows.jsonl; choose another",
        "foreign": "foreign holds other files, such as data.npy",
        ".": "holds other files, such as dice",
        "file/results": r"must be writable; .*file/results is not \(Not a directory\)",
    }.items():
        with pytest.raises(InvalidParameterError, match=message):
            sweep(TOSSES, counted(ran), tmp_path / folder)
    assert (contents(tmp_path), ran) == (before, [])


def test_a_full_disk_is_one_sentence_and_no_obstacle(tmp_path, monkeypatch):
    opened = Path.open

    def full(self, mode="r", **given):
        if mode == "a":
            raise OSError(28, "No space left on device")
        return opened(self, mode, **given)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", full)
        with pytest.raises(CraftError, match="There must be room"):
            sweep(TOSSES, run_one, tmp_path / "new")
    assert len(sweep(TOSSES, run_one, tmp_path / "new")) == len(TOSSES)
    with pytest.raises(TypeError, match="object is no plain value"):
        sweep([Toss(0, 9)], lambda toss: {"thing": object()}, tmp_path / "new")
