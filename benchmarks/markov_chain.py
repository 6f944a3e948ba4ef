"""What coupling="markov" costs beside coupling="chain", on the same data and one thread.

    python benchmarks/markov_chain.py    # about two minutes on one core

Times are of the log-odds (Lines 9-10) alone, from bit planes that are packed already, at one grid: `log_odds` with a
fresh oracle each time. They are the thread's own processor time, the best of several runs, so that other work does not
count. `again` is a second grid with what was kept from the first, as in a search over bounds. `settled` is the share of
pairs of encoders whose dependences had to be counted exactly.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np
from measuring import seconds, write_rows

from craftrl import CoordinateOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.envs import BitsExBMDP, collect
from craftrl.oracles.counting import PreparedCounting

H = 30
GRID, OTHER = Grid.from_bounds(math.log(3), 1 / 5), Grid.from_bounds(0.5, 1 / 10)
BITS = ((32, 500), (128, 500), (128, 5000), (512, 500))  # encoders, trajectories per agent
VALUES = ((32, 500, 4), (32, 500, 8))  # and values of each encoder


def bits(M: int, n: int) -> TrajectoryDataset:
    world = BitsExBMDP(H, M, seed=0)
    return collect(world, world.paper_policies(), n, seed=0).tau


def walks(M: int, n: int, N_s: int) -> TrajectoryDataset:
    """M walks over N_s values in a ring; agents differ in the first one's direction."""
    rng = np.random.default_rng(0)
    steps = rng.integers(-1, 2, size=(2, n, H, M))
    for agent, up in enumerate((0.4, 0.6)):
        steps[agent, :, :, 0] = np.where(rng.random((n, H)) < up, 1, -1)
    steps[:, :, 0] = 0
    return TrajectoryDataset.from_arrays(list((steps.cumsum(axis=2) % N_s).astype(np.uint8)))


def row(tau: TrajectoryDataset, N_s: int = 2) -> dict[str, Any]:
    packed = CoordinateOracle(N_s, n_threads=1).prepare(tau)
    for h in range(1, H + 1):
        packed.step(h)

    def fresh() -> PreparedCounting:
        again = CoordinateOracle(N_s, n_threads=1).prepare(tau)
        again._steps = packed._steps
        return again

    def timed(coupling: Any) -> float:
        return seconds(lambda: fresh().log_odds(GRID, coupling), clock=time.thread_time, budget=3.0)

    known = fresh()
    known.log_odds(GRID, "markov")
    chain = known._markov
    assert chain is not None
    return {
        "chain": timed("chain"),
        "markov": timed("markov"),
        "again": seconds(lambda: known.log_odds(OTHER, "markov"), clock=time.thread_time),
        "settled": float(np.mean(np.concatenate([settled.ravel() for settled in chain.settled]))),
    }


def main() -> None:
    rows = []
    for M, n, N_s in [*((M, n, 2) for M, n in BITS), *VALUES]:
        tau = bits(M, n) if N_s == 2 else walks(M, n, N_s)
        rows.append({"M": M, "n": n, "values": N_s, **row(tau, N_s)})
        print(json.dumps(rows[-1]), flush=True)
    write_rows("markov_chain", rows, H=H)


if __name__ == "__main__":
    main()
