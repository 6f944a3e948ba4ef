"""The command that makes all rows of a GPU anew asks for what the studies know."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from craftrl.cli.reproduce import parsed
from studies.on_one_gpu import STUDIES, command


@pytest.mark.parametrize("name", STUDIES)
def test_every_command_is_one_that_the_command_line_knows(name, tmp_path):
    args = parsed(command(name, tmp_path, "recordings")[1:])[1]
    assert args.device == "cuda"
    assert Path(args.out) == tmp_path / name


def test_studies_run_and_those_that_fail_are_told(tmp_path):
    """With a `craftrl` that notes how it was called, and fails on the one with walkers."""
    fake = tmp_path / "craftrl"
    fake.mkdir()
    fake.joinpath("__init__.py").touch()
    fake.joinpath("__main__.py").write_text(
        "import os, sys\n"
        "print(os.environ['CUDA_MPS_CLIENT_PRIORITY'], *sys.argv[1:])\n"
        "sys.exit(3 if sys.argv[-1].endswith('walkers') else 0)\n"
    )
    control = tmp_path / "nvidia-cuda-mps-control"
    control.write_text("#!/bin/sh\nexit 0\n")
    control.chmod(control.stat().st_mode | stat.S_IXUSR)
    env = os.environ | {"PYTHONPATH": str(tmp_path), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = Path("studies/on_one_gpu.py").resolve()
    call = [sys.executable, script, tmp_path / "out", "--data", "recordings", "rooms13", "walkers"]
    done = subprocess.run(call, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert sorted(done.stdout.splitlines()) == ["rooms13: done", "walkers: exit code 3, see walkers.log"]
    assert (tmp_path / "out" / "rooms13.log").read_text().startswith("0 reproduce pixels --preset rooms13")
    assert (tmp_path / "out" / "walkers.log").read_text().startswith("1 reproduce pixels --preset full")


def test_unknown_studies_are_refused():
    done = subprocess.run([sys.executable, "-m", "studies.on_one_gpu", "out", "study"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "study was given" in done.stderr
