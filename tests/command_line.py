"""What tests of the command line share: commands run in this process, or as users run them, and complaints."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from craftrl.cli import main

ROOT = Path(__file__).parents[1]
BOUNDS = ["--alpha", "1", "--eta", "1/5", "--nu", "5/32"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}", "COLUMNS": "80"}


def started(*words, cwd, **more):
    """A command in a process of its own."""
    line = [sys.executable, "-m", "craftrl", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(line, cwd=cwd, env=ENVIRONMENT | more, **pipes)


def run(line, *more, cwd="."):
    """The exit code of a command in this process, what it prints, and its lines on standard error but for bars."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*str(line).split(), *map(str, more)])
    lines = [text for text in err.getvalue().replace("\r", "\n").split("\n") if text.strip() and "%|" not in text]
    return code, out.getvalue(), lines


def craftrl(line, *more, cwd="."):
    """What a command prints; it succeeds, and says nothing on standard error but progress."""
    code, out, lines = run(line, *more, cwd=cwd)
    assert (code, lines) == (0, [])
    return out


def complaint(line, *more, cwd="."):
    """The sentence of a command that is refused: nothing on standard output, exit code 2, one line, no traceback."""
    code, out, lines = run(line, *more, cwd=cwd)
    assert (code, out, len(lines)) == (2, "", 1)
    assert len(lines[0]) < 500
    return lines[0]
