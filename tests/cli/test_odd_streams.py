"""Standard output that is full or closed, signals, names that are no text, memory that runs out."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import ENVIRONMENT, started
from craftrl.cli import Terminated, main
from craftrl.data import DatasetWriter

LINE = ["theory", "assumptions", "--world", "bits", "--horizon", "3", "--features", "4"]
COLLECT = ["collect", "--world", "bits", "--horizon", "3", "--features", "4", "--n", "5"]


def test_a_full_standard_output_is_told_in_one_sentence(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        line = [sys.executable, "-m", "craftrl", *LINE]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left on device" in done.stderr


def test_a_reader_that_leaves_and_streams_that_are_closed_are_no_errors(tmp_path: Path) -> None:
    line = f"{sys.executable} -m craftrl {' '.join(LINE)}"
    shell = {"shell": True, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT, "cwd": tmp_path}
    assert subprocess.run(f"{line} | true", **shell).stderr == ""
    assert subprocess.run(f"{line} >&-", **shell).returncode == 0
    assert subprocess.run(f"{sys.executable} -m craftrl evaluate missing missing 2>&-", **shell).returncode == 2


def test_a_full_standard_error_leaves_the_exit_code_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["evaluate", "missing", "missing"]) == 2
        with contextlib.suppress(OSError):
            full.close()


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "Terminated"), (signal.SIGINT, 130, "Inter")]
)
def test_a_signal_ends_a_command_in_one_sentence_and_leaves_no_parts(
    number: signal.Signals, code: int, word: str, tmp_path: Path
) -> None:
    process = started(*["collect", "--world", "pixels", "--n", "20000", "--out", "data"], cwd=tmp_path)
    while not (tmp_path / "data").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out) == (code, "")
    assert err.startswith(word)
    assert err.endswith("; nothing is half-written, and the same command goes on from what was finished.\n")
    assert not (tmp_path / "data" / "dataset.json").exists()


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_signal_while_a_library_is_imported_is_a_stop(
    stop: type[BaseException], code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def half_imported(*given: object, **more: object) -> None:
        try:
            raise stop
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error  # as compiled modules do

    monkeypatch.setattr(DatasetWriter, "append", half_imported)
    assert main([*COLLECT, "--out", str(tmp_path / "x")]) == code


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError("Unable to allocate 9.00 GiB"), "it does not (Unable to allocate 9.00 GiB); take less of it"),
        (OSError("Could not find/load shared object file 'lib.so'"), "it is not (Could not find/load shared object"),
    ],
)
def test_what_the_machine_lacks_is_told(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacking(*given: object, **more: object) -> None:
        raise error

    monkeypatch.setattr("craftrl.envs.BitsExBMDP", lacking)
    assert main([*COLLECT, "--out", str(tmp_path / "x")]) == 2
    assert said in capsys.readouterr().err


def test_names_that_are_no_text_are_printed_as_escapes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", written)
    assert main([*COLLECT, "--out", os.fsdecode(b"\xff")]) == 0
    assert b"\\udcff" in written.buffer.getvalue()


def test_a_study_that_is_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(run: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("craftrl.paper.table1.run_one", interrupted)
    assert main(["reproduce", "table1", "--seeds", "1", "--quiet", "--out", str(tmp_path / "t")]) == 130
    assert "the same command goes on" in capsys.readouterr().err
