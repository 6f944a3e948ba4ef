"""Programs run by torchrun in two processes of this machine, which exchange tensors by Gloo."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def surroundings(**environment):
    """Variables of the environment for a program that imports the library and what tests share."""
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT, ROOT / "tests")))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment}


def torchrun(*command, seconds=240, **environment):
    """Run to its end; the exit code and what was printed."""
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *map(str, command)],
        env=surroundings(**environment),
        capture_output=True,
        text=True,
        timeout=seconds,
    )
