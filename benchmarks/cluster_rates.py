"""The constants of the cost model (`craftrl.distributed.rates`), measured and fitted by least squares.

What is asked how often is counted, with an executor that looks at what passes through it. What one core takes is its
own processor time, and so is what a task costs the driver and the workers beyond its work. Only what passes between
two tasks is the clock's, best of several, since waiting is part of it.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from craftrl import CRAFT, CoordinateOracle
from craftrl.data.shards import ShardWriter
from craftrl.distributed import parts
from craftrl.distributed.cost import LOOKED_AT, tree_levels
from craftrl.distributed.executor import LocalExecutor
from craftrl.distributed.fitting import fit_on_shards
from craftrl.distributed.rates import COUPLINGS, count_rate
from craftrl.distributed.ray_executor import RayExecutor
from craftrl.envs import BitsExBMDP
from craftrl.envs.collection import sample_latent_paths, sample_observations

parts.PER_WORKER = parts.MOST_TASKS = 10**6  # every shard is a task of its own, so that it shows what tasks cost

BOUNDS = {"alpha": math.log(3), "eta": 1 / 5, "nu": 5 / 32}
FAN_IN = 8


def write(path: Path, n: int, H: int, M: int, shards: int) -> Path:
    """n trajectories of the toy world's two agents in so many shards."""
    world, rng = BitsExBMDP(H, M, seed=0), np.random.default_rng(0)
    with ShardWriter(path, H, (M,), np.uint8) as out:
        out.block = n // shards
        for k, policy in enumerate(world.paper_policies()):
            for _ in range(shards // 2):
                states, _ = sample_latent_paths(world, policy, out.block, rng)
                out.append(k, np.moveaxis(sample_observations(world, states, rng), 0, 1))
    return path


def learner(coupling: str, bounds: dict[str, float] | None = None) -> CRAFT:
    return CRAFT(CoordinateOracle(n_threads=1), coupling=coupling, **(BOUNDS if bounds is None else bounds))


class Watched(LocalExecutor):
    """Counts rounds, bytes of sums, and processor seconds by function."""

    def __init__(self) -> None:
        self.__dict__.update(seconds=Counter(), rounds=0, n_bytes=0)

    def submit(self, function: Callable[..., Any], *args: Any) -> Any:
        start = time.thread_time()
        value = function(*args)
        self.seconds[function.__name__] += time.thread_time() - start
        return value

    def total(self, handles: Sequence[Any]) -> Any:
        value = super().total(handles)
        self.__dict__.update(rounds=self.rounds + 1, n_bytes=self.n_bytes + _nbytes(value))
        return value


def _nbytes(value: Any) -> int:
    return sum(map(_nbytes, value)) if isinstance(value, tuple) else np.asarray(value).nbytes


def watched(path: Path, coupling: str, bounds: dict[str, float] | None = None) -> dict[str, Any]:
    """One fit in this process: what was asked, and processor seconds of packing, answering and deciding."""
    executor = Watched()
    start = time.process_time()
    fit_on_shards(learner(coupling, bounds), path, executor)
    whole = time.process_time() - start
    seconds = dict(executor.seconds)
    own = {name: seconds.get(key, 0.0) for name, key in PARTS.items()}
    return {"rounds": executor.rounds, "bytes": executor.n_bytes, **own, "decide": whole - sum(seconds.values())}


PARTS = {"read": "packed", "count": "answered", "print": "_fingerprint"}


def least_squares(columns: Sequence[Sequence[float]], target: Sequence[float]) -> tuple[list[float], float]:
    """Coefficients of at least 0, fitted to relative errors, and the root mean square of what is left of these."""
    from scipy.optimize import nnls

    A, y = np.array(columns, dtype=float).T, np.array(target, dtype=float)
    found, _ = nnls(A / y[:, None], np.ones(len(y)))
    return found.tolist(), float(np.sqrt(np.mean((A @ found / y - 1) ** 2)))


# -- what is asked ---------------------------------------------------------------------------------------------------


def asked(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Rounds and bytes of every coupling, on small data: they do not depend on how much there is."""
    rows = []
    for H, M in ((6, 32), (12, 32), (6, 64), (12, 128)):
        path = write(folder / f"asked{H}-{M}", 2000, H, M, 2)
        rows += [{"H": H, "M": M, "coupling": c, **watched(path, c)} for c in COUPLINGS]
        rows.append({"H": H, "M": M, "coupling": "search", **watched(path, "markov", {})})
    found: dict[str, Any] = {"rounds": {}, "matrices": {}, "lines": {}, "residuals": {}}
    for coupling in COUPLINGS:
        mine = [row for row in rows if row["coupling"] == coupling]
        steps = [row["H"] - 1 for row in mine]
        rounds, left = least_squares([[1.0] * len(mine), steps], [row["rounds"] for row in mine])
        matrix = [8 * s * row["M"] ** 2 for s, row in zip(steps, mine)]
        line = [8 * s * row["M"] for s, row in zip(steps, mine)]
        (a, b), left_bytes = least_squares([matrix, line], [row["bytes"] for row in mine])
        found["rounds"][coupling], found["matrices"][coupling], found["lines"][coupling] = rounds, a, b
        found["residuals"] |= {f"rounds, {coupling}": left, f"bytes, {coupling}": left_bytes}
    searched = [row for row in rows if row["coupling"] == "search"]
    given = [row["rounds"] for row in rows if row["coupling"] == "markov"]
    more = [max(1, row["rounds"] - known) for row, known in zip(searched, given)]
    steps = [row["H"] - 1 for row in searched]
    found["search"], found["residuals"]["rounds, search"] = least_squares([[1.0] * len(more), steps], more)
    return found, rows


# -- one core --------------------------------------------------------------------------------------------------------


def one_core(folder: Path, repeats: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Reading, counting, labelling and deciding, from fits of several sizes."""
    rows = []
    for n, H, M, shards in ((40_000, 8, 32, 2), (160_000, 8, 32, 4), (40_000, 8, 128, 2), (120_000, 8, 128, 8)):
        path = write(folder / f"core{n}-{M}", n, H, M, shards)
        watched(path, "tied")  # machine code is loaded
        for coupling in COUPLINGS:
            fits = [watched(path, coupling) for _ in range(repeats)]
            best = {name: min(fit[name] for fit in fits) for name in fits[0]}
            rows.append({"n": n, "H": H, "M": M, "shards": shards, "coupling": coupling, **best})
    sizes = [r["n"] * r["H"] * r["M"] for r in rows]
    looked_at = [size * LOOKED_AT / r["shards"] for size, r in zip(sizes, rows)]
    residuals: dict[str, float] = {}
    (read,), residuals["read"] = least_squares([sizes], [r["read"] for r in rows])
    prints, residuals["print"] = least_squares(
        [[r["n"] for r in rows], looked_at, [r["shards"] for r in rows]], [r["print"] for r in rows]
    )
    decide, residuals["decide"] = least_squares(
        [[r["rounds"] for r in rows], [r["bytes"] for r in rows]], [r["decide"] for r in rows]
    )
    (label, answer, *each), residuals["count"] = _counting(rows)
    count = count_rate()
    return {
        "read": 1 / read,
        "count": count,
        "passes": {coupling: one * count for coupling, one in zip(COUPLINGS, each)},
        "label": label,
        "answer": answer,
        "print_trajectory": prints[0],
        "print_byte": prints[1],
        "print_shard": prints[2],
        "decide_round": decide[0],
        "decide_byte": decide[1],
        "residuals": residuals,
    }, rows


def _counting(rows: list[dict[str, Any]]) -> tuple[list[float], float]:
    """Seconds for a trajectory's state at one step, for answering at all, and for a bit by coupling, in one fit."""
    steps = [row["n"] * (row["H"] - 1) for row in rows]
    columns = [steps, [row["rounds"] * row["shards"] for row in rows]]
    for coupling in COUPLINGS:
        columns.append([s * row["M"] ** 2 * (row["coupling"] == coupling) for s, row in zip(steps, rows)])
    return least_squares(columns, [row["count"] for row in rows])


# -- Ray -------------------------------------------------------------------------------------------------------------


def _filled(size: int) -> Any:
    return np.zeros(size, dtype=np.int32)


def messages(folder: Path, repeats: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Rounds on two workers: of fits so small that little else is done, and of large arrays that are only added."""
    paths = {shards: write(folder / f"messages{shards}", 3200, 6, 32, shards) for shards in (2, 8, 32)}
    alone = {shards: watched(path, "markov") for shards, path in paths.items()}
    with RayExecutor(workers=2, store_bytes=400 * 2**20, fan_in=FAN_IN) as executor:
        rows = [_best_of(repeats, _small_fit, executor, path, alone[shards]) for shards, path in paths.items()]
        for shards in paths:
            rows += [_best_of(repeats, _round, executor, shards, n_bytes) for n_bytes in (10**5, 10**6)]
    tasks = [row["shards"] * (1 + 1 / (FAN_IN - 1)) for row in rows]
    levels = [tree_levels(row["shards"], FAN_IN) for row in rows]
    added = [
        row["bytes"] * sum(-(-sums // 2) * -(-parts // sums) for parts, sums in level)
        for row, level in zip(rows, levels)
    ]
    task, dispatch = (rows[2][name] / tasks[2] for name in ("workers", "driver"))  # processor time, of many tasks
    known = [count * max(task / 2, dispatch) for count in tasks]
    left_over = [max(row["seconds"] - one, 1e-4) for row, one in zip(rows, known)]
    (hop, add), left = least_squares([[len(level) for level in levels], added], left_over)
    return {"task": task, "hop": hop, "add": 1 / add, "dispatch": dispatch, "residuals": {"hops of Ray": left}}, rows


def _best_of(repeats: int, measure: Callable[..., dict[str, float]], *args: Any) -> dict[str, float]:
    """The quickest of several, after one that does not count."""
    found = [measure(*args) for _ in range(repeats + 1)][1:]
    return {name: min(each[name] for each in found) for name in found[0]}


def _small_fit(executor: RayExecutor, path: Path, alone: dict[str, Any]) -> dict[str, float]:
    """One round of a fit, on average; what the driver decides between rounds is left out."""
    clock, driver, workers = time.perf_counter(), time.process_time(), workers_seconds()
    fit_on_shards(learner("markov"), path, executor)
    clock, driver = time.perf_counter() - clock, time.process_time() - driver
    workers, rounds = workers_seconds() - workers, alone["rounds"]
    return {
        "shards": len(list(path.glob("*.npz"))),
        "bytes": alone["bytes"] / rounds,
        "seconds": (clock - alone["decide"]) / rounds,
        "driver": (driver - alone["decide"]) / rounds,
        "workers": (workers - alone["count"] - alone["read"] - alone["print"]) / rounds,
    }


def _round(executor: RayExecutor, shards: int, n_bytes: int) -> dict[str, float]:
    clock, driver = time.perf_counter(), time.process_time()
    executor.total([executor.submit(_filled, n_bytes // 4) for _ in range(shards)])
    clock, driver = time.perf_counter() - clock, time.process_time() - driver
    return {"shards": shards, "bytes": n_bytes, "seconds": clock, "driver": driver}


def workers_seconds() -> float:
    """Processor time of Ray's workers below this process so far; its servers, which are never idle, are left out."""
    total = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            times, name = child.cpu_times(), child.cmdline()[:1]
        except psutil.Error:
            continue
        total += times.user + times.system if name and name[0].startswith("ray::") else 0.0
    return total
