"""Commands as processes: streams that are full or closed, signals, names that are no text, memory that runs out."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command_line import ENVIRONMENT, run, started
from craftrl.cli import Terminated, main
from craftrl.data import DatasetWriter

COLLECT = "collect --world bits --horizon 3 --features 4 --n 5 --out"


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("{} --help >/dev/full", 2, "No space left on device"),
        ("{} theory assumptions --world bits | true", 0, ""),
        ("{} --help >&-", 0, ""),
        ("{} inspect missing 2>&-", 2, ""),
    ],
)
def test_streams_that_are_full_or_closed(shell, code, said, tmp_path):
    line = shell.format(f"{sys.executable} -m craftrl")
    done = subprocess.run(line, shell=True, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)


def test_a_full_standard_error_leaves_the_exit_code_as_it_is(monkeypatch):
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["evaluate", "missing", "missing"]) == 2
        with contextlib.suppress(OSError):
            full.close()


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGTERM, 143, "Terminated"), pytest.param(signal.SIGINT, 130, "Interrupted", marks=pytest.mark.slow)],
)
def test_a_signal_ends_a_command_in_one_sentence_and_leaves_no_parts(number, code, word, tmp_path):
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, np.zeros((40_000, 2, 3)))
    process = started("import", "a.npy", "b.npy", "--out", "data", cwd=tmp_path)
    while not (tmp_path / "data").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out) == (code, "")
    said = f"{word}; nothing is half-written, and the same command goes on from what was finished."
    assert err.splitlines()[-1].rpartition("\r")[2].endswith(said)
    assert not (tmp_path / "data" / "dataset.json").exists()


def while_imported(stop):
    """As compiled modules fail where a signal comes while they are imported."""
    failed = ImportError("initialization failed")
    failed.__cause__ = stop
    return failed


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (while_imported(KeyboardInterrupt()), 130, "Interrupted; nothing is half-written"),
        (while_imported(Terminated()), 143, "Terminated; nothing is half-written"),
        (MemoryError("Unable to allocate 9.00 GiB"), 2, "it does not (Unable to allocate 9.00 GiB); take less of it"),
        (OSError("Could not find/load 'lib.so'"), 2, "it is not (Could not find/load 'lib.so'); check paths"),
        (ZeroDivisionError("a fault of ours"), 1, "Traceback (most recent call last)"),
    ],
)
def test_what_stops_a_command_is_told(error, code, said, monkeypatch, tmp_path):
    def failing(*given, **more):
        raise error

    monkeypatch.setattr(DatasetWriter, "append", failing)
    found, _, lines = run(COLLECT, tmp_path / "x")
    assert found == code
    assert said in lines[0]


def test_names_that_are_no_text_are_printed_as_escapes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", written)
    assert main([*COLLECT.split(), os.fsdecode(b"\xff")]) == 0
    assert b"\\udcff" in written.buffer.getvalue()
