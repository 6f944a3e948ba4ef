"""What `craftrl estimate` prints: a job on one machine and on clusters, and where machines stop to help."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from craftrl.arguments import check_kind, check_number, check_whole
from craftrl.distributed.cost import Cluster, Estimate, Job, estimate, where_reduction_dominates
from craftrl.distributed.rates import Rates

__all__ = ["Forecast", "NetworkJob", "in_bytes", "in_time", "job_of"]

PHASES = {
    "start": "start of the cluster",
    "read": "read and pack",
    "count": "count",
    "ask": "ask, in rounds",
    "reduce": "reduce in a tree",
    "decide": "decide",
    "seconds": "all together",
}
MOST_NODES = 4096  # up to which the quickest cluster is looked for
LOG_ODDS_SHARE = 0.4  # of a network's fit; the rest is separation, encoding and reading states (docs/network.md)


def job_of(path: str | os.PathLike[str], **but: Any) -> Job:
    """The sizes of a dataset on disk, a folder of shards or a file; `but` says what to take otherwise."""
    from craftrl.data.dataset import TrajectoryDataset

    tau = TrajectoryDataset.open(path)
    found = {
        "trajectories": tau.n,
        "horizon": tau.H,
        "features": int(np.prod(tau.obs_shape, dtype=np.int64)),
        "agents": tau.K,
        "item_bytes": tau.dtype.itemsize,
    }
    return Job(**{**found, **but})


@dataclass(frozen=True)
class Forecast:
    """One job on one machine, and on clusters of several sizes made of such machines; as text, a table."""

    job: Job
    machine: Cluster
    nodes: Sequence[int]
    rates: Rates

    def __post_init__(self) -> None:
        check_kind("job", self.job, Job, "a Job")
        check_kind("machine", self.machine, Cluster, "a Cluster")
        check_kind("rates", self.rates, Rates, "the Rates of a machine, such as Rates.shipped()")
        _check_sizes("nodes", self.nodes)

    @property
    def columns(self) -> dict[str, Estimate]:
        alone = replace(self.machine, nodes=1)
        found = {"1 machine": estimate(self.job, alone, self.rates, local=True)}
        for nodes in self.nodes:
            found[f"{nodes:,} node{'s' * (nodes > 1)}"] = estimate(
                self.job, replace(self.machine, nodes=nodes), self.rates
            )
        return found

    @property
    def quickest(self) -> tuple[int, Estimate]:
        """The number of nodes, of powers of 2, with the least time."""
        tried = [2**i for i in range(MOST_NODES.bit_length())]
        times = {nodes: estimate(self.job, replace(self.machine, nodes=nodes), self.rates) for nodes in tried}
        best = min(times, key=lambda nodes: times[nodes].seconds)
        return best, times[best]

    def __str__(self) -> str:
        columns = self.columns
        lines = [(name, [in_time(getattr(one, field)) for one in columns.values()]) for field, name in PHASES.items()]
        lines += [
            ("memory of a core", [in_bytes(one.worker_bytes) for one in columns.values()]),
            ("memory of the driver", [in_bytes(one.driver_bytes) for one in columns.values()]),
            ("moved in the tree", [in_bytes(one.moved_bytes) for one in columns.values()]),
            ("cost", [f"{one.money:,.2f}" for one in columns.values()]),
        ]
        width = max(len(text) for text in [*columns, *(cell for _, cells in lines for cell in cells)]) + 2
        head = " " * 22 + "".join(name.rjust(width) for name in columns)
        table = [name.ljust(22) + "".join(cell.rjust(width) for cell in cells) for name, cells in lines]
        return "\n".join([self._title(), "", head, *table, "", *self._advice()])

    def _title(self) -> str:
        job, node = self.job, self.machine
        bounds = "given" if job.bounds_given else "searched for"
        return (
            f"{job.trajectories:,} trajectories of {job.agents} agents, H = {job.horizon}, {job.features:,} features "
            f"of {job.values} values: {in_bytes(job.data_bytes)}\n"
            f"coupling {job.coupling}, bounds {bounds}; shards of {in_bytes(job.shard_bytes)}; nodes of "
            f"{node.cores_per_node} cores at {node.price:g} an hour, {in_bytes(node.bandwidth)} a second each"
        )

    def _advice(self) -> list[str]:
        where = where_reduction_dominates(self.job, self.machine, self.rates)
        best, found = self.quickest
        lines = []
        if where is None:
            lines.append("Reading and counting take longer than asking and reducing on any cluster.")
        else:
            lines.append(f"From {where:,} nodes on, asking and reducing take longer than reading and counting.")
        lines.append(
            f"The quickest cluster has about {best:,} nodes: {in_time(found.seconds)}, cost {found.money:,.2f}."
        )
        return lines


@dataclass(frozen=True)
class NetworkJob:
    """Networks on videos, roughly: passes over all frames at a speed that was measured.

    frames_per_second  that one rank trains on
    efficiency         what is left of a rank's speed when gradients are averaged with others
    """

    frames: int
    frame_bytes: int
    frames_per_second: float
    epochs: float = 10.0
    efficiency: float = 0.9

    def __post_init__(self) -> None:
        check_whole("frames", self.frames, 1)
        check_whole("frame_bytes", self.frame_bytes, 1)
        check_number("efficiency", self.efficiency, "a number above 0, and at most 1", lambda v: 0 < v <= 1)
        for name in ("frames_per_second", "epochs"):
            check_number(name, getattr(self, name), "a positive number", lambda v: v > 0)

    def seconds(self, ranks: int) -> float:
        """A whole fit: the epochs of the log-odds, and what comes after them."""
        check_whole("ranks", ranks, 1)
        speed = self.frames_per_second * ranks * (self.efficiency if ranks > 1 else 1.0)
        return self.frames * self.epochs / speed / LOG_ODDS_SHARE

    def text(self, ranks: Sequence[int], price: float) -> str:
        """The same for each of these numbers of ranks, and for one; `price` is that of a rank for an hour."""
        _check_sizes("ranks", ranks)
        check_number("price", price, "a number of at least 0", lambda v: v >= 0)
        rows = [
            f"{n:,} rank{'s' * (n > 1)}:".ljust(14) + f"{in_time(self.seconds(n))}, "
            f"{in_bytes(self.frames * self.frame_bytes / n)} of frames on each, cost "
            f"{n * price * self.seconds(n) / 3600:,.2f}"
            for n in (1, *ranks)
        ]
        epochs, speed = float(self.epochs), float(self.frames_per_second)
        what = f"A network instead, {epochs:g} epochs of {self.frames:,} frames at {speed:,.0f}"
        return "\n".join([f"{what} frames a second and rank:", *rows])


def _check_sizes(name: str, sizes: Sequence[int]) -> None:
    check_kind(name, sizes, (list, tuple), "a list of numbers of machines")
    for size in sizes:
        check_whole(f"Each of {name}", size, 1)


def in_time(seconds: float) -> str:
    """0.4 s, 12 s, 3.5 min, 2.1 h, 4 days."""
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 48 * 3600)):
        if seconds < most:
            return f"{seconds / size:.{0 if seconds / size >= 10 or seconds == 0 else 1}f} {unit}"
    return f"{seconds / 86400:,.1f} days"


def in_bytes(n: float) -> str:
    """512 B, 1.2 MB, 3.8 TB: thousands, as disks and networks count."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 999.5:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:,.3g} PB"
