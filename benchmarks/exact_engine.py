"""The exact engine against NumPy's matrix products and the literal algorithm, on the same data in one run.

    python benchmarks/exact_engine.py            # 3 to 4 minutes on two cores
    python benchmarks/exact_engine.py --quick    # the paper's largest setting alone

NumPy's time is that of the products x_h^T x_{h+1} alone, one for each agent and step, on arrays that are float32
already, with one BLAS thread. The engine counts the same pairs; its whole fit also packs the bits, turns counts into
losses, clusters, merges and trains encoders. Times of one thread are that thread's own, so that other work on the
machine does not count; those of all cores are the clock's. The best of several runs each.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

import numpy as np
from measuring import RESULTS, machine, seconds, write_rows
from threadpoolctl import threadpool_limits

from craftrl import CRAFT, CoordinateOracle, TrajectoryDataset
from craftrl.core.craft import Bounds, craft
from craftrl.core.grid import Grid
from craftrl.data.files import written_whole
from craftrl.engine.counting import count_planes
from craftrl.engine.packing import Part, View, pack_coordinates
from craftrl.engine.threads import usable_threads
from craftrl.envs import BitsExBMDP, collect

H, PAPER_M, PAPER_N = 30, 128, 5000
FEATURES = (32, 128, 512, 2048)
TRAJECTORIES = (500, 5000, 20_000, 100_000)
BOUNDS = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}  # the toy world's own
# What `fit` calls, by the part of the algorithm that it is.
PARTS = {
    "pack": ("craftrl.engine.packing:Part", "pack"),
    "count and minimise": ("craftrl.engine.counting:Counter", "best_pairs"),
    "evaluate f": ("craftrl.oracles.finite:PreparedCounting", "evaluated"),
    "cluster": ("craftrl.core.craft", "cluster_pairs"),
    "separate": ("craftrl.oracles.finite:PreparedCounting", "separation"),
    "merge": ("craftrl.core.craft", "merge_clusters"),
    "encode": ("craftrl.oracles.finite:PreparedCounting", "encode"),
}


def numpy_seconds(tau: TrajectoryDataset, budget: float = 8.0) -> float:
    """All float32 matrix products, one BLAS thread; where they take long, some steps stand for all."""
    total, timed = 0.0, 0
    with threadpool_limits(1, "blas"):
        for h in range(1, tau.H):
            x, y = (tau.at(step).astype(np.float32) for step in (h, h + 1))
            agents = [tau.agent_slice(k) for k in range(tau.K)]
            products = partial(_products, x, y, agents)
            total += seconds(products, at_least=2, budget=0.1, clock=time.thread_time)
            timed += 1
            if total > budget:
                break
    return total * (tau.H - 1) / timed


def _products(x: np.ndarray, y: np.ndarray, agents: list[slice]) -> None:
    for mine in agents:
        x[mine].T @ y[mine]


def literal_seconds(tau: TrajectoryDataset, grid: Grid, encoders: int = 3) -> float:
    """Line 10 as the tests' literal algorithm does it, for a few encoders of one step, scaled to all."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from reference import minimise_cluster_loss

    pairs = np.stack([tau.at(1), tau.at(2)], axis=1).tolist()
    agents = [pairs[tau.agent_slice(k)] for k in range(tau.K)]
    Phi = [partial(_coordinate, i) for i in range(encoders)]
    start = time.thread_time()
    minimise_cluster_loss(*agents, 1, Phi, Phi, 2, list(grid.values))
    return (time.thread_time() - start) * (tau.obs_shape[0] / encoders) ** 2 * (tau.H - 1)


def _coordinate(i: int, x: list[int]) -> int:
    return x[i]


def measure(M: int, n: int) -> dict[str, Any]:
    """One row: every time at one size."""
    world = BitsExBMDP(H, M, seed=0)
    tau = collect(world, world.paper_policies(), n, seed=0).tau
    grid = Grid.from_bounds(BOUNDS["alpha"], BOUNDS["eta"])
    row: dict[str, Any] = {"M": M, "n": n, "H": H, "numpy products": numpy_seconds(tau)}
    row["literal (extrapolated)"] = literal_seconds(tau, grid)
    views, part = [View(h) for h in range(1, H + 1)], Part(tau)
    for label, n_threads, clock in (
        ("one thread", 1, time.thread_time),
        ("all cores", usable_threads(), time.perf_counter),
    ):
        oracle, best = CoordinateOracle(n_threads=n_threads), partial(seconds, clock=clock)
        counter = oracle.prepare(tau).counter
        row[label] = {
            "threads": n_threads,
            "pack": best(partial(pack_coordinates, part, 2, n_threads)),
            "count": best(lambda c=counter: list(c.map(partial(_count, c), range(1, H)))),
            "count and minimise": best(lambda c=counter: c.best_pairs(views, grid)),
            "fit without tests": best(lambda o=oracle: craft(o.prepare(tau), Bounds(**BOUNDS))),
            "fit": best(lambda o=oracle: CRAFT.paper(o, **BOUNDS).fit(tau)),
        }
    row["default fit"] = seconds(lambda: CRAFT(CoordinateOracle()).fit(tau), budget=2.0)
    row["parts of fit (one thread)"] = parts_of_fit(tau)
    return row


def _count(counter: Any, h: int) -> None:
    """Every pair count of two steps."""
    counter.parts.total(lambda part: count_planes(part.planes(View(h)), part.planes(View(h + 1)), part.segments))


def parts_of_fit(tau: TrajectoryDataset) -> dict[str, float]:
    """Where the seconds of the fastest of several fits go, one thread."""
    best: dict[str, float] = {}
    for _ in range(5):
        spent: dict[str, float] = {}
        with ExitStack() as stack:
            for part, (owner, name) in PARTS.items():
                stack.enter_context(_timed(owner, name, part, spent))
            start = time.thread_time()
            CRAFT.paper(CoordinateOracle(n_threads=1), **BOUNDS).fit(tau)
            spent["whole"] = time.thread_time() - start
        if not best or spent["whole"] < best["whole"]:
            best = spent
    return best


@contextmanager
def _timed(owner_name: str, name: str, part: str, spent: dict[str, float]) -> Iterator[None]:
    owner = resolve_name(owner_name)
    original: Callable[..., Any] = getattr(owner, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.thread_time()
        try:
            return original(*args, **kwargs)
        finally:
            spent[part] = spent.get(part, 0.0) + time.thread_time() - start

    with patch.object(owner, name, timed):
        yield


def check(M: int, n: int) -> None:
    """The engine's counts are NumPy's."""
    world = BitsExBMDP(3, M, seed=0)
    tau = collect(world, world.paper_policies(), n, seed=0).tau
    counts = CoordinateOracle().prepare(tau).pair_counts(2)
    for k in range(2):
        x, y = (tau.at(h)[tau.agent_slice(k)].astype(np.float64) for h in (2, 3))
        assert np.array_equal(counts[:, :, 1, 1, k], x.T @ y)
        assert np.array_equal(counts[:, :, 1, 0, k], x.T @ (1 - y))


def show(row: dict[str, Any]) -> None:
    """One size as text: times in milliseconds, and how often they fit into NumPy's."""
    reference = row["numpy products"]
    print(f"\nM = {row['M']}, n = {row['n']} per agent, H = {row['H']}")
    print(f"  {'literal algorithm, Line 10':<34}{1e3 * row['literal (extrapolated)']:14.0f} ms  (extrapolated)")
    print(f"  {'NumPy float32 products, 1 thread':<34}{1e3 * reference:14.1f} ms")
    for label in ("one thread", "all cores"):
        for part in ("pack", "count", "count and minimise", "fit without tests", "fit"):
            time_ = row[label][part]
            print(f"  engine, {label:<11}{part:<20}{1e3 * time_:9.1f} ms, {time_ / reference:6.2f} of NumPy's")
    print(f"  {'default fit, all cores':<34}{1e3 * row['default fit']:14.1f} ms")
    parts = row["parts of fit (one thread)"]
    print("  parts of fit: " + ", ".join(f"{part} {1e3 * time_:.1f}" for part, time_ in parts.items()) + " ms")


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Times against M and against n, both logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    for axes, key, fixed in zip(figure.subplots(1, 2, sharey=True), ("M", "n"), (("n", PAPER_N), ("M", PAPER_M))):
        some = sorted((row for row in rows if row[fixed[0]] == fixed[1]), key=lambda row: row[key])
        x = [row[key] for row in some]
        axes.loglog(x, [row["literal (extrapolated)"] for row in some], ":", color="0.6", label="literal algorithm")
        axes.loglog(x, [row["numpy products"] for row in some], "o-", color="0.3", label="NumPy products, 1 thread")
        for label, line in (("one thread", "--"), ("all cores", "-")):
            for part, colour in (("count", "#0072B2"), ("count and minimise", "#009E73"), ("fit", "#D55E00")):
                times = [row[label][part] for row in some]
                axes.loglog(x, times, line, marker=".", color=colour, label=f"engine: {part}, {label}")
        axes.set_xlabel("features M" if key == "M" else "trajectories per agent n")
        axes.set_title(f"{fixed[0]} = {fixed[1]}, H = {H}")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("seconds")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=3.5, fontsize=8
    )
    with written_whole(path, "picture") as temporary:
        figure.savefig(temporary, format="png", dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the paper's largest setting alone")
    quick = parser.parse_args().quick
    print(", ".join(f"{key}: {value}" for key, value in machine().items()))
    check(PAPER_M, PAPER_N)
    sizes = [(PAPER_M, PAPER_N)]
    if not quick:
        sizes += [(M, PAPER_N) for M in FEATURES if M != PAPER_M] + [(PAPER_M, n) for n in TRAJECTORIES if n != PAPER_N]
    rows = []
    for M, n in sizes:
        rows.append(measure(M, n))
        show(rows[-1])
    print("\nwritten:", write_rows("exact_engine_quick" if quick else "exact_engine", rows))
    if not quick:
        plot(rows, RESULTS / "exact_engine.png")


if __name__ == "__main__":
    main()
