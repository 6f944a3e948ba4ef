"""What an exact fit on shards takes: time by phase, memory, bytes moved and money, before anything is run.

The work is simple enough to be written down. With n trajectories of H steps, M features of N_s values (v = N_s - 1 bit
planes each) and K agents, on W cores and S shards:

read    every shard is read once and packed into bit planes: n H M bytes (more for wider numbers), shared by all cores,
        and never faster than the disks or the network of the nodes deliver
count   pairs of planes: n (H - 1) (M v)^2 AND-and-popcounts of single bits, times what the coupling counts
        beyond one pass over all pairs (`Rates.passes`), shared by all cores
ask     everything is asked in rounds: a question goes to every shard, and answers are added in a tree of fan-in f. A
        round costs the driver one dispatch per task, a worker one task per shard of its own, and a hop per level of
        the tree. CRAFT needs a few rounds for every step (`Rates.rounds`), whatever the data
reduce  4 K (M v)^2 bytes of counts for each pair of steps, times what the coupling asks for (`Rates.matrices`). On
        every level of the tree f such arrays arrive at one core and are added
decide  the driver turns sums into losses and chooses; this does not grow with n

More machines shorten `read` and `count` and nothing else. `Estimate.reduction` is the rest that grows with them; where
it exceeds the work that is shared, more machines are of no use (`where_reduction_dominates`).

All functions here are pure. `Rates` are constants of a machine, fitted by `benchmarks/cluster_scaling.py`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from typing import Any

from craftrl.arguments import check_number, check_whole
from craftrl.errors import InvalidParameterError

__all__ = [
    "Cluster",
    "Estimate",
    "Job",
    "Rates",
    "estimate",
    "network_hours",
    "tree_levels",
    "where_reduction_dominates",
]

BLOCK = 64 * 2**20  # bytes of observations that a worker reads at a time
QUESTIONS = 32  # that travel together in one round
COUPLINGS = ("independent", "chain", "posterior", "markov", "tied")


@dataclass(frozen=True)
class Job:
    """A fit of coordinates, the class of the paper.

    trajectories  of all agents together
    features      entries of an observation, each of which is an encoder
    values        N_s, the most values that an entry takes
    item_bytes    of one entry on disk
    shard_bytes   how much one file holds; with more cores than files, cores have nothing to do
    """

    trajectories: int
    horizon: int = 30
    features: int = 128
    values: int = 2
    agents: int = 2
    coupling: str = "markov"
    item_bytes: int = 1
    shard_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        for name, least in (("trajectories", 2), ("horizon", 2), ("features", 1), ("values", 2), ("agents", 2)):
            check_whole(name, getattr(self, name), least)
        check_whole("item_bytes", self.item_bytes, 1, 16)
        check_whole("shard_bytes", self.shard_bytes, 2**10)
        if self.coupling not in COUPLINGS:
            raise InvalidParameterError(
                f"coupling must be one of {', '.join(COUPLINGS)}; {self.coupling!r} was given; a fit on auto takes "
                "markov."
            )

    @property
    def data_bytes(self) -> int:
        return self.trajectories * self.horizon * self.features * self.item_bytes

    @property
    def shards(self) -> int:
        """At least one for each agent."""
        return max(self.agents, math.ceil(self.data_bytes / self.shard_bytes))

    @property
    def planes_bytes(self) -> float:
        """What is kept of the data: one bit for each entry and value above 0."""
        return self.horizon * self.features * (self.values - 1) * self.trajectories / 8

    @property
    def pairs(self) -> int:
        """Pairs of bit planes of two neighbouring steps, over all steps."""
        return (self.horizon - 1) * (self.features * (self.values - 1)) ** 2


@dataclass(frozen=True)
class Cluster:
    """Equal machines.

    bandwidth   bytes a second that a node can send or receive; data that is not on its own disk comes through it too
    price       of a node for an hour, in whatever money
    fan_in      how many sums are added in one task
    """

    nodes: int = 1
    cores_per_node: int = 16
    bandwidth: float = 1.25e9
    price: float = 1.0
    fan_in: int = 8

    def __post_init__(self) -> None:
        check_whole("nodes", self.nodes, 1)
        check_whole("cores_per_node", self.cores_per_node, 1)
        check_whole("fan_in", self.fan_in, 2)
        check_number("bandwidth", self.bandwidth, "a positive number of bytes a second", lambda v: v > 0)
        check_number("price", self.price, "a number of at least 0", lambda v: v >= 0)

    @property
    def cores(self) -> int:
        return self.nodes * self.cores_per_node


@dataclass(frozen=True)
class Rates:
    """Constants of a machine and of the algorithm; all measured, none given by a vendor.

    read        bytes a second that one core reads and packs
    count       bits of pairs of planes that one core ANDs and counts in a second
    add         bytes a second that one core adds
    decide      seconds of the driver for each pair of planes of two steps
    task        seconds of a worker for a task, beyond its work
    dispatch    seconds of the driver for a task
    hop         seconds from one task to the next that waits for it
    start       seconds until a cluster answers
    rounds      questions to all shards: so many, and so many more for each pair of steps
    passes      by coupling: how often all pairs of planes are counted
    matrices    by coupling: how many such matrices of counts are reduced for each pair of steps
    """

    read: float
    count: float
    add: float
    decide: float
    task: float
    dispatch: float
    hop: float
    start: float
    rounds: tuple[float, float]
    passes: dict[str, float]
    matrices: dict[str, float]

    @classmethod
    def shipped(cls) -> Rates:
        """Those of the machine that the benchmark ran on."""
        return cls.from_json(json.loads((files("craftrl.distributed") / "rates.json").read_text()))

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Rates:
        known = {field.name: content[field.name] for field in fields(cls)}
        return cls(**{**known, "rounds": tuple(known["rounds"])})

    def but(self, **measured: Any) -> Rates:
        return replace(self, **measured)


@dataclass(frozen=True)
class Estimate:
    """Seconds by phase, bytes and money of one job on one cluster."""

    start: float
    read: float
    count: float
    ask: float
    reduce: float
    decide: float
    moved_bytes: float
    worker_bytes: float
    driver_bytes: float
    money: float

    @property
    def seconds(self) -> float:
        return self.start + self.read + self.count + self.ask + self.reduce + self.decide

    @property
    def shared(self) -> float:
        """What more cores shorten."""
        return self.read + self.count

    @property
    def reduction(self) -> float:
        """What more cores do not shorten: questions, and sums of their answers."""
        return self.ask + self.reduce


def estimate(job: Job, cluster: Cluster, rates: Rates) -> Estimate:
    """What the job takes on the cluster; on one node the data is on its disk and nothing is reduced over a network."""
    S = max(job.shards, min(cluster.cores, job.trajectories))  # written so that every core has something to do
    busy = min(cluster.cores, S)
    rounds = rates.rounds[0] + rates.rounds[1] * (job.horizon - 1)
    answer = 4 * job.agents * job.pairs * rates.matrices[job.coupling]
    levels = tree_levels(S, cluster.fan_in)
    tasks = S + S / (cluster.fan_in - 1)
    arriving = job.data_bytes / (cluster.bandwidth * cluster.nodes) if cluster.nodes > 1 else 0.0
    times = {
        "start": rates.start,
        "read": max(job.data_bytes / (rates.read * busy), arriving),
        "count": job.trajectories * job.pairs * rates.passes[job.coupling] / (rates.count * busy),
        "ask": rounds * (max(tasks * rates.dispatch, tasks / busy * rates.task) + levels * rates.hop),
        "reduce": answer * levels * cluster.fan_in * (1 / rates.add + (cluster.nodes > 1) / cluster.bandwidth),
        "decide": job.pairs * rates.passes[job.coupling] * rates.decide,
    }
    held = job.planes_bytes / busy
    block = min(BLOCK, job.data_bytes / S) + job.shard_bytes / job.horizon
    tile = min(QUESTIONS, job.horizon - 1) * answer / (job.horizon - 1)
    return Estimate(
        **times,
        moved_bytes=answer * S * (1 + 1 / (cluster.fan_in - 1)),
        worker_bytes=held + block + (cluster.fan_in + 1) * tile,
        driver_bytes=2 * tile,
        money=cluster.nodes * cluster.price * sum(times.values()) / 3600,
    )


def tree_levels(leaves: int, fan_in: int) -> int:
    """Levels of a tree that adds so many arrays, `fan_in` at a time; whole numbers only, since 8^3 is 512."""
    levels = 0
    while leaves > 1:
        leaves, levels = -(-leaves // fan_in), levels + 1
    return levels


def where_reduction_dominates(job: Job, cluster: Cluster, rates: Rates, most: int = 10**6) -> int | None:
    """The least number of nodes at which reduction takes longer than the work that is shared; None: not up to `most`.

    Shared work falls and reduction grows with every node, so there is one such point.
    """
    low, high = 0, 1
    while not _dominated(job, replace(cluster, nodes=high), rates):
        low, high = high, 2 * high
        if low >= most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _dominated(job, replace(cluster, nodes=middle), rates) else (middle, high)
    return high


def _dominated(job: Job, cluster: Cluster, rates: Rates) -> bool:
    found = estimate(job, cluster, rates)
    return found.reduction > found.shared


def network_hours(frames: int, epochs: float, frames_per_second: float, ranks: int, efficiency: float = 0.9) -> float:
    """Hours that networks train: `epochs` passes over all frames at the measured speed of one rank.

    efficiency  what is left of each rank's speed when gradients are averaged; measure it, as networks differ
    """
    check_whole("frames", frames, 1)
    check_whole("ranks", ranks, 1)
    check_number("epochs", epochs, "a positive number", lambda v: v > 0)
    check_number("frames_per_second", frames_per_second, "a positive number", lambda v: v > 0)
    check_number("efficiency", efficiency, "a number in (0, 1]", lambda v: 0 < v <= 1)
    speed = frames_per_second * ranks * (efficiency if ranks > 1 else 1.0)
    return frames * epochs / speed / 3600
