"""What `craftrl estimate` prints: a job on one machine and on clusters, and where machines stop to help."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from craftrl.arguments import check_kind, check_number, check_whole
from craftrl.core.limits import too_many_for
from craftrl.distributed.cost import Estimate, estimate, where_reduction_dominates
from craftrl.distributed.job import Cluster, Job, check_price
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
MOST_NODES = 4096  # up to which the cluster that is large enough is looked for
ALONE = "1 machine"
LOG_ODDS_SHARE = 0.4  # of a network's fit; the rest is separation, encoding and reading states (docs/network.md)


def job_of(path: str | os.PathLike[str], **but: Any) -> Job:
    """The sizes of a dataset on disk, a folder of shards or a file; `but` says what to take otherwise."""
    from craftrl.data.dataset import TrajectoryDataset

    tau = TrajectoryDataset.open(path)
    found: dict[str, Any] = {
        "trajectories": tau.n,
        "horizon": tau.H,
        "features": int(np.prod(tau.obs_shape, dtype=np.int64)),
        "agents": tau.K,
        "item_bytes": tau.dtype.itemsize,
    }
    if not but.keys() & {*found, "shard_bytes"}:
        found["files"] = _files(path)
    return Job(**{**found, **but})


def _files(path: str | os.PathLike[str]) -> int | None:
    """How many shards there are; None if the data is in another format, of which shards are yet to be made."""
    from craftrl.data.places import source
    from craftrl.data.shards import MANIFEST, read_manifest

    folder = source("DATA", path)
    return len(read_manifest(folder).shards) if (folder / MANIFEST).is_file() else None


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
        found = {ALONE: estimate(self.job, alone, self.rates, local=True)}
        for nodes in self.nodes:
            found[_nodes(nodes)] = estimate(self.job, replace(self.machine, nodes=nodes), self.rates)
        return found

    @property
    def enough(self) -> tuple[int, Estimate]:
        """The fewest nodes, of powers of 2, that take at most a tenth longer than any number of them."""
        tried = [2**i for i in range(MOST_NODES.bit_length())]
        times = {nodes: estimate(self.job, replace(self.machine, nodes=nodes), self.rates) for nodes in tried}
        least = min(found.seconds for found in times.values())
        return next((nodes, found) for nodes, found in times.items() if found.seconds <= 1.1 * least)

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
        shards = f"shards of {in_bytes(job.shard_bytes)}" if job.files is None else f"{job.files:,} shards"
        chosen = job.coupling == "auto" and job.taken != "markov"
        why = f", since {too_many_for('markov', job.seen_pairs).rstrip('.')}" if chosen else ""
        return (
            f"{job.trajectories:,} trajectories of {job.agents} agents, H = {job.horizon}, {job.features:,} features "
            f"of {job.values} values: {in_bytes(job.data_bytes)}\n"
            f"coupling {job.taken}{why}\n"
            f"bounds {bounds}; {shards}; nodes of {node.cores_per_node} cores at {node.price:g} an hour, "
            f"{in_bytes(node.bandwidth)} a second each"
        )

    def _advice(self) -> list[str]:
        where = where_reduction_dominates(self.job, self.machine, self.rates)
        best, found = self.enough
        lines = []
        if where is None:
            lines.append("Reading and counting take longer than asking and reducing on any cluster.")
        else:
            since = "Even on one node" if where == 1 else f"From {where:,} nodes on"
            lines.append(f"{since}, asking and reducing take longer than reading and counting.")
        takes = f"{in_time(found.seconds)}, cost {found.money:,.2f}"
        lines.append(f"More than about {_nodes(best)} would hardly be quicker: {takes}.")
        if self.columns[ALONE].seconds <= found.seconds:
            lines.append("One machine without a cluster is quicker than that: leave out --backend ray.")
        if self.job.files is not None and self.job.files < self.machine.cores_per_node * max(self.nodes):
            lines.append(
                f"At most {self.job.files:,} cores work at once, one for each shard: more cores need smaller shards."
            )
        return lines


def _nodes(n: int) -> str:
    return f"{n:,} node{'s' * (n > 1)}"


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
            check_number(name, getattr(self, name), "a number from 1e-6 to 1e12", lambda v: 1e-6 <= v <= 1e12)

    def seconds(self, ranks: int) -> float:
        """A whole fit: the epochs of the log-odds, and what comes after them."""
        check_whole("ranks", ranks, 1)
        speed = self.frames_per_second * ranks * (self.efficiency if ranks > 1 else 1.0)
        return self.frames * self.epochs / speed / LOG_ODDS_SHARE

    def text(self, ranks: Sequence[int], price: float) -> str:
        """The same for each of these numbers of ranks, and for one; `price` is that of a rank for an hour."""
        _check_sizes("ranks", ranks)
        check_price(price)
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
