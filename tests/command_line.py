"""What tests of the command line share: a small collection of bits, bounds for it, and complaints."""

from __future__ import annotations

from pathlib import Path

import pytest

from craftrl.cli import main

BOUNDS = ["--alpha", "1", "--eta", "1/5", "--nu", "5/32"]


def collect(out: Path, *more: str) -> int:
    world = ["--world", "bits", "--horizon", "5", "--features", "12", "--n", "1500"]
    return main(["collect", *world, "--out", str(out), *more])


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What the command says on stderr; nothing on stdout, exit code 2, one line, no traceback."""
    capsys.readouterr()
    assert main(list(argv)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err
