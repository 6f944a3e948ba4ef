"""Fits of datasets on disk and in memory: time and peak memory against the number of trajectories.

    python -m benchmarks.scaling                 # up to one million trajectories; needs 4 GB of disk
    python -m benchmarks.scaling --sizes 50000   # quickly

Each dataset is written from the paper's world, then fitted in a process of its own, whose peak resident memory is taken
from the operating system. Smaller datasets are fitted in memory too: the labels must be equal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import write_rows
from craftrl import CRAFT, CoordinateOracle, TrajectoryDataset
from craftrl.data import DatasetWriter
from craftrl.envs import BitsExBMDP, collect

H, M = 30, 128
SIZES = (100_000, 300_000, 1_000_000)  # trajectories of both agents together
IN_MEMORY = 300_000  # up to here the same fit is done in memory
DRAWN = 10_000  # trajectories that are drawn at once
BOUNDS = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}


def write(path: Path, n: int) -> float:
    """n trajectories, never more than some of them in memory; the seconds it took."""
    world, rng, start = BitsExBMDP(H, M, seed=0), np.random.default_rng(0), time.perf_counter()
    with DatasetWriter(path) as out:
        for k, policy in enumerate(world.paper_policies()):
            for first in range(0, n // 2, DRAWN):
                tau = collect(world, [policy] * 2, [min(DRAWN, n // 2 - first), 1], seed=rng).tau
                for i in range(tau.n - 1):
                    out.append(k, tau.episode(i))
    return time.perf_counter() - start


def fit(path: Path, in_memory: bool) -> dict[str, Any]:
    """Run in a process of its own: seconds, peak memory and a digest of the labels."""
    tau = TrajectoryDataset.open(path)
    if in_memory:
        tau = TrajectoryDataset.from_arrays([tau.rows(np.flatnonzero(tau.agent == k)) for k in range(tau.K)])
    CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(tau.select(np.arange(0, tau.n, 100)))  # machine code is loaded
    start, worked = time.perf_counter(), time.process_time()
    labels = CRAFT.paper(CoordinateOracle(), **BOUNDS).fit(tau).labels_
    return {
        "fit seconds": time.perf_counter() - start,
        "processor seconds": time.process_time() - worked,
        "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "labels": hashlib.sha256(labels.tobytes()).hexdigest()[:16],
    }


def measure(n: int, folder: Path) -> dict[str, Any]:
    path = folder / str(n)
    row: dict[str, Any] = {"n": n, "H": H, "M": M, "write seconds": write(path, n)}
    row["GiB on disk"] = sum(file.stat().st_size for file in path.iterdir()) / 2**30
    for where in ("", "--in-memory") if n <= IN_MEMORY else ("",):
        command = [sys.executable, "-m", "benchmarks.scaling", "--fit", str(path), *where.split()]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        if where:
            assert found.pop("labels") == row["labels"], "a fit from disk must equal the one in memory"
        row |= {f"{key} in memory" if where else key: value for key, value in found.items()}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--in-memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit, arguments.in_memory)))
        return
    rows = []
    for n in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(n, Path(folder)))
        print(json.dumps(rows[-1]), flush=True)
    print("written:", write_rows("scaling", rows))


if __name__ == "__main__":
    main()
