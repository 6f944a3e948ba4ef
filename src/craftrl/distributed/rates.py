"""The constants of the cost model: what one core and one message take, and how often each coupling asks.

`rates.json` beside this file was written by `benchmarks/cluster_scaling.py`. Times are those of the machine that it ran
on; how often something is asked is a property of the algorithm and the same everywhere.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

__all__ = ["COUPLINGS", "Rates", "count_rate", "read_rate"]

COUPLINGS = ("independent", "chain", "posterior", "markov", "tied")


@dataclass(frozen=True)
class Rates:
    """One core, one message, one coupling.

    read              bytes of observations that one core reads and packs in a second
    count             bits of pairs of planes that one core counts in a second
    label             seconds of one core for the states of one trajectory at one step
    answer            seconds of one core for an answer about a shard, however small
    add               bytes a second that one core receives from its own machine and adds
    task              seconds of a worker for a task, beyond its work
    dispatch          seconds of the driver for a task
    hop               seconds from the end of a task to the beginning of one that waits for it
    start             seconds until a cluster has answered
    decide_round, decide_byte     seconds of the driver for a round, and for a byte of sums
    print_trajectory, print_byte, print_shard     seconds of the task that makes the data's fingerprint
    rounds            by coupling: (all together, and for each pair of steps)
    search            rounds that the search for bounds adds: (all together, and for each pair of steps)
    passes            by coupling: how often all pairs of planes are counted
    matrices          by coupling: of 4 K planes^2 bytes for each pair of steps
    lines             by coupling: of 8 planes bytes for each pair of steps
    """

    read: float
    count: float
    label: float
    answer: float
    add: float
    task: float
    dispatch: float
    hop: float
    start: float
    decide_round: float
    decide_byte: float
    print_trajectory: float
    print_byte: float
    print_shard: float
    rounds: dict[str, list[float]]
    search: list[float]
    passes: dict[str, float]
    matrices: dict[str, float]
    lines: dict[str, float]

    @classmethod
    def shipped(cls) -> Rates:
        """Those that come with the package."""
        content = json.loads((files("craftrl.distributed") / "rates.json").read_text())
        return cls(**{field.name: content[field.name] for field in fields(cls)})

    def calibrated(self) -> Rates:
        """The same with what one core of this machine reads and counts; takes some seconds."""
        return replace(self, read=read_rate(), count=count_rate())

    def plain(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def rounds_of(self, coupling: str, horizon: int, bounds_given: bool) -> float:
        """How many questions are asked of all shards."""
        base, each = self.rounds[coupling]
        more, more_each = (0.0, 0.0) if bounds_given else self.search
        return base + more + (each + more_each) * (horizon - 1)

    def reduced_bytes(self, coupling: str, agents: int, planes: int, horizon: int) -> float:
        """The bytes of all sums together."""
        matrix, line = 4 * agents * planes**2, 8 * planes
        return (horizon - 1) * (self.matrices[coupling] * matrix + self.lines[coupling] * line)


def count_rate(n: int = 200_000, planes: int = 128) -> float:
    """Bits of pairs of planes that one core of this machine counts in a second; takes about a second."""
    import numpy as np

    from craftrl.engine.counting import count_planes

    words = np.random.default_rng(0).integers(0, 2**63, size=(1, planes, n // 512 * 8), dtype=np.uint64)
    segments = np.array([0, words.shape[-1]])
    best = _best(lambda: count_planes(words, words, segments), 5)
    return planes**2 * words.shape[-1] * 64 / best


def read_rate(n: int = 50_000, horizon: int = 8, features: int = 128) -> float:
    """Bytes that one core of this machine reads from a shard and packs in a second; takes some seconds."""
    import numpy as np

    from craftrl.data.shards import ShardWriter
    from craftrl.distributed.dataset import parts_of
    from craftrl.distributed.executor import LocalExecutor
    from craftrl.distributed.parts import packed
    from craftrl.oracles.coordinates import CoordinateOracle

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shards"
        x = np.random.default_rng(0).integers(0, 2, size=(n, horizon, features), dtype=np.uint8)
        with ShardWriter(path, horizon, (features,), np.uint8) as out:
            out.append(0, x)
            out.append(1, x[:2])
        part = parts_of(path, LocalExecutor())[0][0]
        best = _best(lambda: packed([part], CoordinateOracle(n_threads=1)), 3)
    return part.shard.n * horizon * features / best


def _best(function: Callable[[], Any], times: int) -> float:
    """Processor seconds of the quickest of several calls, after one that loads machine code."""
    function()
    found = []
    for _ in range(times):
        start = time.thread_time()
        function()
        found.append(time.thread_time() - start)
    return min(found)
