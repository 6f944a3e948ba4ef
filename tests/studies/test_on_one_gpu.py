"""The command that makes all rows of a GPU anew asks for what the studies know."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from craftrl.cli import _parser
from studies.on_one_gpu import LANES, commands

COMMITTED = {"rooms13": "pixels/rooms", "rooms": "pixels/rooms", "rows": "pixels/rows", "n": "pixels/n"}


@pytest.mark.parametrize("lane", LANES)
def test_every_command_is_one_that_the_command_line_knows(lane, tmp_path):
    for name, said in commands(lane, tmp_path, "recordings").items():
        args = _parser().parse_args(said)
        assert args.device == "cuda"
        assert Path(args.out) == tmp_path / name


@pytest.mark.parametrize(("name", "file"), COMMITTED.items())
def test_committed_rows_are_of_the_same_sizes(name, file, tmp_path):
    (said,) = (all_[name] for lane in LANES if name in (all_ := commands(lane, tmp_path, "")))
    args = _parser().parse_args(said)
    rows = [json.loads(line) for line in (Path("studies") / f"{file}.jsonl").read_text().splitlines()]
    mine = [row for row in rows if row["technique"] == "craft"]
    assert set(args.bounds) <= {row["bounds"] for row in mine}
    assert set(args.n or ()) <= {row["n"] for row in mine}


def test_lanes_run_and_those_that_fail_are_told(tmp_path):
    """With a `craftrl` that notes how it was called, and fails on what is named rows."""
    fake = tmp_path / "craftrl"
    fake.mkdir()
    fake.joinpath("__init__.py").touch()
    fake.joinpath("__main__.py").write_text(
        "import os, sys\n"
        "print(os.environ['CUDA_MPS_CLIENT_PRIORITY'], *sys.argv[1:])\n"
        "sys.exit(3 if sys.argv[-1].endswith('rows') else 0)\n"
    )
    control = tmp_path / "nvidia-cuda-mps-control"
    control.write_text("#!/bin/sh\nexit 0\n")
    control.chmod(control.stat().st_mode | stat.S_IXUSR)
    env = os.environ | {"PYTHONPATH": str(tmp_path), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = Path("studies/on_one_gpu.py").resolve()
    call = [sys.executable, script, tmp_path / "out", "rooms13", "walkers"]
    done = subprocess.run(call, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert sorted(done.stdout.splitlines()) == ["rooms13: done", "rows: exit code 3, see rows.log"]
    assert (tmp_path / "out" / "rooms13.log").read_text().startswith("0 reproduce pixels --preset rooms13")
    assert (tmp_path / "out" / "rows.log").read_text().startswith("1 reproduce pixels --preset full")


def test_unknown_lanes_are_refused():
    done = subprocess.run([sys.executable, "-m", "studies.on_one_gpu", "out", "lane"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "lane was given" in done.stderr
