"""What all benchmarks share: the machine in words, times, and rows on disk."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.data.files import write_json

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """The processor, its cores and the versions that the times depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in _lines(cpuinfo) if line.startswith("model name")]
    flags = next((line.split() for line in _lines(cpuinfo) if line.startswith("flags")), [])
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load at the end": round(os.getloadavg()[0], 1),
        "avx512_vpopcntdq": "avx512_vpopcntdq" in flags,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": _version("numba"),
        "blas": _blas(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _blas() -> str | None:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return None
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return f"{pools[0]['internal_api']} {pools[0]['version']} ({pools[0].get('architecture')})" if pools else None


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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


def write_rows(name: str, rows: list[dict[str, Any]], **also: Any) -> Path:
    """Rows, and the machine that made them, as benchmarks/results/<name>.json."""
    path = RESULTS / f"{name}.json"
    write_json(path, {"machine": machine(), **also, "rows": rows})
    return path
