"""What the benchmarks share: the machine in words, times, and rows on disk."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from craftrl.data.files import write_json
from studies.study import commit

__all__ = ["machine", "seconds", "write_rows"]

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """The processor, its cores and the versions that the times depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load at the end": round(os.getloadavg()[0], 1),
        "avx512_vpopcntdq": any("avx512_vpopcntdq" in line for line in lines if line.startswith("flags")),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "numba")},
        "blas": f"{pools[0]['internal_api']} {pools[0]['version']} ({pools[0].get('architecture')})" if pools else None,
    }


def seconds(
    function: Callable[[], Any],
    at_least: int = 3,
    budget: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The best of several runs: at least so many after one to warm up, more while the budget of seconds lasts.

    With `time.thread_time` as the clock, what one thread worked, whoever else uses the machine.
    """
    function()
    times: list[float] = []
    while len(times) < at_least or (sum(times) < budget and len(times) < 25):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def write_rows(name: str, rows: list[dict[str, Any]]) -> Path:
    """Rows with the commit that made them, and the machine, as benchmarks/results/<name>.json."""
    path, made_by = RESULTS / f"{name}.json", commit()
    write_json(path, {"machine": machine(), "rows": [{**row, "commit": made_by} for row in rows]})
    return path
