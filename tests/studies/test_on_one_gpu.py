"""The command that makes all rows of a GPU anew asks for what the studies know, and says which failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from craftrl.cli.reproduce import parsed
from studies.on_one_gpu import STUDIES, command


@pytest.mark.parametrize("name", STUDIES)
def test_every_command_is_one_that_the_command_line_knows(name, tmp_path):
    args = parsed(command(name, tmp_path, "recordings")[1:])[1]
    assert (args.device, Path(args.out)) == ("cuda", tmp_path / name)


def test_studies_run_and_those_that_fail_are_told(tmp_path):
    """With a `craftrl` that prints how it was called, and fails on the one with walkers."""
    (tmp_path / "craftrl.py").write_text(
        "import sys\nprint(*sys.argv[1:])\nsys.exit(3 if sys.argv[-1].endswith('walkers') else 0)\n"
    )
    call = [sys.executable, Path("studies/on_one_gpu.py").resolve(), tmp_path / "out"]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*call, "rooms13", "walkers"], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert sorted(done.stdout.splitlines()) == ["rooms13: done", "walkers: exit code 3, see walkers.log"]
    assert (tmp_path / "out" / "rooms13.log").read_text().startswith("reproduce pixels --preset rooms13")
    done = subprocess.run([*call, "study"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "study was given" in done.stderr
