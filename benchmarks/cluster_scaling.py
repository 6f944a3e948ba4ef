"""How exact fits scale with workers: measured on two, modelled for thousands.

    python benchmarks/cluster_scaling.py            # about five minutes on two cores
    python benchmarks/cluster_scaling.py --quick    # smaller and once, to see that it runs

1. The constants of the cost model are measured and fitted by least squares (`cluster_rates`), and written where
   `craftrl estimate` finds them.
2. Strong and weak scaling: the same fit on Ray clusters of one and of two one-core workers, beside the model.
3. A simulation of the tree reduction, task by task, beside the model's closed form.
4. What 10^9 trajectories of H = 30 and M = 128 would take on 10, 100 and 1000 nodes.

Other work on the machine makes the clock's times longer, and the model knows nothing of it. So each time is the best of
several, and what depends less on other work stands beside it: the processor time of the workers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster_picture import draw
from cluster_rates import FAN_IN, asked, learner, messages, one_core, workers_seconds, write
from measuring import RESULTS, machine, write_rows

import craftrl.distributed
from craftrl.data.files import write_json
from craftrl.distributed.cost import estimate, round_seconds, where_reduction_dominates
from craftrl.distributed.fitting import fit_on_shards
from craftrl.distributed.job import Cluster, Job
from craftrl.distributed.rates import Rates
from craftrl.distributed.ray_executor import RayExecutor
from craftrl.distributed.simulation import Stragglers, simulated_round

H, M, SHARDS = 12, 128, 8
LARGE = Job(10**9, shard_bytes=2**31)
NODES = (1, 10, 100, 1000)
SHIPPED = Path(craftrl.distributed.__file__).parent / "rates.json"


def measured_rates(folder: Path, repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """All constants but the start, and the rows that they were fitted to."""
    constants: dict[str, Any] = {"residuals": {}}
    rows = {}
    parts: dict[str, Callable[[], Any]] = {
        "asked": lambda: asked(folder),
        "one core": lambda: one_core(folder, repeats),
        "Ray": lambda: messages(folder, repeats),
    }
    for name, measure in parts.items():
        found, rows[name] = measure()
        constants["residuals"] |= found.pop("residuals")
        constants |= found
        print(f"measured: {name}", flush=True)
    return constants, rows


def fit_on(path: Path, workers: int, repeats: int) -> dict[str, float]:
    """Seconds of a first fit with the start of Ray, and of the best of the next ones."""
    begin = time.perf_counter()
    with RayExecutor(workers=workers, store_bytes=10**9, fan_in=FAN_IN) as executor:
        fit_on_shards(learner("markov"), path, executor)
        first = time.perf_counter() - begin
        times = []
        for _ in range(repeats):
            clock, worked = time.perf_counter(), workers_seconds()
            fit_on_shards(learner("markov"), path, executor)
            times.append((time.perf_counter() - clock, workers_seconds() - worked))
    seconds, worked = (min(each) for each in zip(*times))
    return {"seconds": seconds, "at work": worked / workers, "start": first - seconds}


def scaling(folder: Path, n: int, repeats: int) -> list[dict[str, Any]]:
    half, whole = (write(folder / f"scaling{k}", k, H, M, SHARDS) for k in (n // 2, n))
    cases = [("strong", whole, n, 1), ("strong", whole, n, 2), ("weak", half, n // 2, 1), ("weak", whole, n, 2)]
    found: dict[tuple[Path, int], dict[str, float]] = {}
    rows = []
    for kind, path, size, workers in cases:
        if (path, workers) not in found:
            found[path, workers] = fit_on(path, workers, repeats)
        rows.append({"kind": kind, "trajectories": size, "workers": workers, **found[path, workers]})
        print(f"measured: {kind} scaling, {workers} workers", flush=True)
    return rows


def predicted(row: dict[str, Any], rates: Rates) -> dict[str, float]:
    """The model's seconds for one of the measured fits, without the start; and how long a worker is at work."""
    size = row["trajectories"] * H * M
    job = Job(row["trajectories"], H, M, bounds_given=True, shard_bytes=-(-size // SHARDS))
    in_cache = Cluster(1, row["workers"], bandwidth=1e11, fan_in=FAN_IN)  # the files were written a moment ago
    found = estimate(job, in_cache, replace(rates, start=0.0))
    tasks = rates.rounds_of("markov", H, True) * SHARDS * (1 + 1 / (FAN_IN - 1))
    beside = tasks * rates.task + found.moved_bytes / rates.add
    return {"model": found.seconds, "model at work": found.shared + beside / row["workers"]}


def simulated(rates: Rates) -> list[dict[str, Any]]:
    """Rounds of the large job on many nodes: closed form, simulation, and simulation with stragglers."""
    rows = []
    for nodes in (2, 10, 100, 1000):
        cluster = Cluster(nodes, fan_in=FAN_IN)
        S = LARGE.tasks(cluster.cores)
        for n_bytes in (10**3, 10**5, 5 * 10**6):
            closed = round_seconds(S, min(S, cluster.cores), n_bytes, cluster, rates)
            found = simulated_round(S, n_bytes, cluster, rates)
            slow = simulated_round(S, n_bytes, cluster, rates, stragglers=Stragglers(0.01, 20.0))
            rows.append(
                {
                    "nodes": nodes,
                    "shards": S,
                    "bytes": n_bytes,
                    "closed": closed,
                    "simulated": found,
                    "stragglers": slow,
                }
            )
    return rows


def large_table(rates: Rates) -> list[dict[str, Any]]:
    rows = []
    for nodes in NODES:
        found = estimate(LARGE, Cluster(nodes, fan_in=FAN_IN), rates, local=nodes == 1)
        rows.append({"nodes": nodes, "seconds": found.seconds, **vars(found)})
    return rows


def tables(results: dict[str, Any]) -> str:
    """What is printed, as Markdown."""
    lines = [
        "",
        "| scaling | trajectories | workers | a worker's processor time, s | model | by the clock, s | model, idle |",
        "|" + "---|" * 7,
    ]
    for r in results["rows"]:
        times = " | ".join(f"{r[name]:.2f}" for name in ("at work", "model at work", "seconds", "model"))
        lines.append(f"| {r['kind']} | {r['trajectories']:,} | {r['workers']} | {times} |")
    lines += [
        "",
        "| one round: nodes, shards, bytes | closed form, s | simulated | with 1% of tasks 20 times as long |",
    ]
    lines += ["|" + "---|" * 4]
    for r in results["simulation"]:
        what = f"{r['nodes']}, {r['shards']:,}, {r['bytes']:,}"
        lines.append(f"| {what} | {r['closed']:.3f} | {r['simulated']:.3f} | {r['stragglers']:.3f} |")
    lines += ["", "| 10^9 trajectories on nodes of 16 cores | read | count | ask | reduce | decide | all | money |"]
    lines += ["|" + "---|" * 8]
    for r in results["large"]:
        phases = " | ".join(f"{r[name]:,.0f} s" for name in ("read", "count", "ask", "reduce", "decide", "seconds"))
        lines.append(f"| {r['nodes']:,} | {phases} | {r['money']:,.2f} |")
    where = results["reduction dominates from nodes"]
    lines += ["", f"Asking and reducing take longer than reading and counting from {where} nodes on."]
    left = ", ".join(f"{name} {100 * value:.0f}%" for name, value in results["residuals"].items())
    return "\n".join([*lines, f"Residuals of the fits (root mean square, relative): {left}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller, once, and nothing is written")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    n, repeats = (40_000, 1) if quick else (240_000, 2)
    with tempfile.TemporaryDirectory() as folder:
        constants, fitted_to = measured_rates(Path(folder), repeats)
        rows = scaling(Path(folder), n, repeats)
    residuals = constants.pop("residuals")
    rates = Rates(**constants, start=min(row["start"] for row in rows))
    rows = [{**row, **predicted(row, rates)} for row in rows]
    results = {
        "command": "python benchmarks/cluster_scaling.py",
        "large job": vars(LARGE),
        "rates": rates.plain(),
        "residuals": residuals,
        "simulation": simulated(rates),
        "large": large_table(rates),
        "reduction dominates from nodes": where_reduction_dominates(LARGE, Cluster(fan_in=FAN_IN), rates),
        "rows": rows,
    }
    print(tables(results))
    if not quick:
        write_json(SHIPPED, {"machine": machine(), "command": results["command"], **rates.plain()})
        also = {name: value for name, value in results.items() if name != "rows"}
        print("written:", write_rows("cluster_scaling", rows, **also, **{"fitted to": fitted_to}), SHIPPED)
        draw(results, RESULTS / "cluster_scaling.png")


if __name__ == "__main__":
    main()
