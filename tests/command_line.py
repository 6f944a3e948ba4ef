"""What tests of the command line share: commands run in this process, or as users run them, and complaints."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from craftrl.cli import main

ROOT = Path(__file__).parents[1]
BOUNDS = ["--alpha", "1", "--eta", "1/5", "--nu", "5/32"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}", "COLUMNS": "80"}


def started(*words: object, cwd: Path, **more: str) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    line = [sys.executable, "-m", "craftrl", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(line, cwd=cwd, env=ENVIRONMENT | more, **pipes)


def craftrl(line: object, *more: object, cwd: str | Path = ".") -> str:
    """What a command prints, run in this process; it succeeds, and says nothing on standard error but progress."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*str(line).split(), *map(str, more)])
    lines = [text for text in err.getvalue().replace("\r", "\n").split("\n") if text.strip() and "%|" not in text]
    assert (code, lines) == (0, [])
    return out.getvalue()


def complaint(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What the command says on stderr; nothing on stdout, exit code 2, one line, no traceback."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert len(err) < 500
    return err
