"""The exact engine against NumPy's matrix products and the literal algorithm, on the same data in one run.

    python -m benchmarks.exact_engine            # about 3 minutes on two cores
    python -m benchmarks.exact_engine --quick    # the paper's largest setting alone

NumPy's time is that of the products x_h^T x_{h+1} alone, one for each agent and step, on arrays that are float32
already, with one BLAS thread. The engine counts the same pairs; its whole fit also packs the bits, turns counts into
losses, clusters, merges, trains encoders and tests what it learned. Times of one thread are that thread's own, so that
other work on the machine does not count; those of all cores are the clock's. The best of several runs each.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring import seconds, write_rows
from craftrl import CRAFT, CoordinateOracle, TrajectoryDataset
from craftrl.core.craft import Bounds, craft
from craftrl.core.grid import Grid
from craftrl.engine.counting import count_planes
from craftrl.engine.packing import Part, View, pack_coordinates
from craftrl.engine.threads import usable_threads
from craftrl.envs import BitsExBMDP, collect

H, PAPER_M, PAPER_N = 30, 128, 5000
FEATURES = (32, 128, 512, 2048)
TRAJECTORIES = (500, 5000, 20_000, 100_000)
BOUNDS = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}  # the toy world's own


def numpy_seconds(tau: TrajectoryDataset, budget: float = 8.0) -> float:
    """All float32 matrix products, one BLAS thread; where they take long, some steps stand for all."""
    total, timed = 0.0, 0
    agents = [tau.agent_slice(k) for k in range(tau.K)]
    with threadpool_limits(1, "blas"):
        for h in range(1, tau.H):
            x, y = (tau.at(step).astype(np.float32) for step in (h, h + 1))
            products = partial(lambda x, y: [x[mine].T @ y[mine] for mine in agents], x, y)
            total += seconds(products, at_least=2, budget=0.1, clock=time.thread_time)
            timed += 1
            if total > budget:
                break
    return total * (tau.H - 1) / timed


def literal_seconds(tau: TrajectoryDataset, grid: Grid, encoders: int = 3) -> float:
    """Line 10 as the tests' literal algorithm does it, for a few encoders of one step, scaled to all."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from reference import minimise_cluster_loss

    pairs = np.stack([tau.at(1), tau.at(2)], axis=1).tolist()
    agents = [pairs[tau.agent_slice(k)] for k in range(tau.K)]
    Phi = [lambda x, i=i: x[i] for i in range(encoders)]
    start = time.thread_time()
    minimise_cluster_loss(*agents, 1, Phi, Phi, 2, list(grid.values))
    return (time.thread_time() - start) * (tau.obs_shape[0] / encoders) ** 2 * (tau.H - 1)


def measure(M: int, n: int) -> dict[str, Any]:
    """One row: every time at one size."""
    world = BitsExBMDP(H, M, seed=0)
    tau = collect(world, world.paper_policies(), n, seed=0).tau
    grid = Grid.from_bounds(BOUNDS["alpha"], BOUNDS["eta"])
    row: dict[str, Any] = {"M": M, "n": n, "H": H, "numpy products": numpy_seconds(tau)}
    row["literal (extrapolated)"] = literal_seconds(tau, grid)
    views = [View(h) for h in range(1, H + 1)]
    for label, n_threads, clock in (
        ("one thread", 1, time.thread_time),
        ("all cores", usable_threads(), time.perf_counter),
    ):
        oracle, best = CoordinateOracle(n_threads=n_threads), partial(seconds, clock=clock)
        counter = oracle.prepare(tau).counter
        row[label] = {
            "threads": n_threads,
            "pack": best(partial(pack_coordinates, Part(tau), 2, n_threads)),
            "count": best(lambda c=counter: list(c.map(partial(_count, c), range(1, H)))),
            "count and minimise": best(lambda c=counter: c.best_pairs(views, grid)),
            "fit without tests": best(lambda o=oracle: craft(o.prepare(tau), Bounds(**BOUNDS))),
            "fit": best(lambda o=oracle: CRAFT.paper(o, **BOUNDS).fit(tau)),
        }
    oracle = CoordinateOracle(n_threads=1)
    couplings = ["chain"] if oracle.prepare(tau).affordable("markov") else ["chain", "markov"]
    row["log-odds"] = {
        coupling: seconds(lambda c=coupling: oracle.prepare(tau).log_odds(grid, c), clock=time.thread_time)
        for coupling in couplings
    }
    row["default fit"] = seconds(lambda: CRAFT(CoordinateOracle()).fit(tau), budget=2.0)
    return row


def _count(counter: Any, h: int) -> None:
    """Every pair count of two steps."""
    counter.parts.total(lambda part: count_planes(part.planes(View(h)), part.planes(View(h + 1)), part.segments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the paper's largest setting alone")
    quick = parser.parse_args().quick
    sizes = [(PAPER_M, PAPER_N)]
    if not quick:
        sizes += [(M, PAPER_N) for M in FEATURES if M != PAPER_M] + [(PAPER_M, n) for n in TRAJECTORIES if n != PAPER_N]
    rows = []
    for M, n in sizes:
        rows.append(measure(M, n))
        print(json.dumps(rows[-1]), flush=True)
    if not quick:
        print("\nwritten:", write_rows("exact_engine", rows))


if __name__ == "__main__":
    main()
