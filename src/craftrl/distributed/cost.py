"""What an exact fit on shards takes: time by phase, memory, bytes moved and money, before anything is run.

The work is simple enough to be written down. With n trajectories of H steps, M features of N_s values (v = N_s - 1 bit
planes each) and K agents, on W cores and S shards:

read    every shard is read once and packed into bit planes: n H M bytes for entries of one byte, shared by all cores,
        and never faster than disk or network deliver
count   n (H - 1) (M v)^2 bits of pairs of planes are ANDed and counted, times the `passes` that a coupling makes over
        all pairs; and for every trajectory and step its state is read a few times. Shared by all cores
ask     everything is asked in rounds: a question goes to every shard, and the answers are added in a tree of fan-in f.
        A round costs the driver a dispatch for each task, a worker a task for each shard of its own, and a hop for each
        level of the tree. How many `rounds` a fit takes depends on H and the coupling, not on the data
reduce  counts of pairs of planes, 4 K (M v)^2 bytes for each pair of steps, times the `matrices` that a coupling asks
        for, and 8 M v bytes times some `lines` for what follows. On every level of the tree, f such arrays arrive at
        one core and are added
decide  the driver turns sums into losses and chooses; it does so for every round and byte that it receives
alone   one task makes the fingerprint of the data, for which it looks at all lengths and reads some shards, beside all
        other work; it only matters where it takes longer than that

More machines shorten `read` and `count`, and lengthen `ask` and `reduce`. Where these exceed the shared work, machines
are better spent otherwise (`where_reduction_dominates`).

All functions here are pure. `craftrl.distributed.rates` has the constants, which a benchmark measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from craftrl.arguments import check_number, check_whole
from craftrl.core.seam import Coupling
from craftrl.distributed.limits import check_counts, check_sums, widest_coupling
from craftrl.distributed.rates import COUPLINGS, Rates
from craftrl.engine.counting import TILE_BYTES
from craftrl.errors import InvalidParameterError

__all__ = ["Cluster", "Estimate", "Job", "estimate", "round_seconds", "tree_levels", "where_reduction_dominates"]

BLOCK = 64 * 2**20  # bytes of observations that a worker reads at a time
LOOKED_AT = 16  # places from which a fingerprint takes some observations; each means to read a shard
TOGETHER = 32  # pairs of steps whose questions travel in one round


@dataclass(frozen=True)
class Job:
    """A fit of coordinates, the class of the paper.

    trajectories  of all agents together
    features      entries of an observation, each of which is an encoder
    values        N_s, the most values that an entry takes
    coupling      "auto": "markov", or what comes closest to it and can add up the losses of so many trajectories
    bounds_given  whether alpha, eta and nu are given; to search for them takes more rounds, and counts nothing again
    item_bytes    of one entry on disk
    shard_bytes   how much one file holds
    files         shards that there are; None: as many as such files fill, and at least one for each core
    """

    trajectories: int
    horizon: int = 30
    features: int = 128
    values: int = 2
    agents: int = 2
    coupling: Coupling | Literal["auto"] = "auto"
    bounds_given: bool = False
    item_bytes: int = 1
    shard_bytes: int = 64 * 2**20  # as `ShardWriter` writes them
    files: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("trajectories", 2), ("features", 1), ("values", 2), ("agents", 2)):
            check_whole(name, getattr(self, name), least)
        check_whole("horizon", self.horizon, 2, 10**6)
        check_whole("item_bytes", self.item_bytes, 1, 16)
        check_whole("shard_bytes", self.shard_bytes, 2**10)
        if self.files is not None:
            check_whole("files", self.files, 1)
        if self.coupling not in ("auto", *COUPLINGS):
            raise InvalidParameterError(
                f"coupling must be auto or one of {', '.join(COUPLINGS)}; {self.coupling!r} was given."
            )
        check_counts(math.ceil(self.trajectories / self.agents))
        check_sums(self.taken, self.seen_pairs, self.agents, self.values)

    @property
    def taken(self) -> Coupling:
        """The coupling of the fit: the one given, or the widest that can add up all losses."""
        if self.coupling != "auto":
            return self.coupling
        return widest_coupling("markov", self.seen_pairs, self.agents, self.values)

    @property
    def seen_pairs(self) -> list[int]:
        """Pairs of observations at each of the steps, where no trajectory is over before the last."""
        return [self.trajectories] * (self.horizon - 1)

    @property
    def data_bytes(self) -> int:
        return self.trajectories * self.horizon * self.features * self.item_bytes

    @property
    def planes(self) -> int:
        """Bit planes of one step: one for every entry and value above 0."""
        return self.features * (self.values - 1)

    @property
    def packed_bytes(self) -> float:
        """What is kept of the data: one bit for each plane, step and trajectory."""
        return self.trajectories * self.horizon * self.planes / 8

    @property
    def pairs(self) -> int:
        """Pairs of bit planes of two neighbouring steps, over all steps."""
        return (self.horizon - 1) * self.planes**2

    def shards(self, cores: int) -> int:
        """Those that there are; else as many as the data fills, and at least one for every agent and every core."""
        if self.files is not None:
            return self.files
        wanted = max(self.agents, cores, math.ceil(self.data_bytes / self.shard_bytes))
        return min(wanted, self.trajectories)


@dataclass(frozen=True)
class Cluster:
    """Equal machines.

    bandwidth   bytes a second that a node receives, from its disk or a store as well as from other nodes
    price       of a node for an hour, in whatever money
    fan_in      how many sums are added in one task
    """

    nodes: int = 1
    cores_per_node: int = 16
    bandwidth: float = 1.25e9
    price: float = 1.0
    fan_in: int = 8

    def __post_init__(self) -> None:
        check_whole("nodes", self.nodes, 1, 10**7)
        check_whole("cores_per_node", self.cores_per_node, 1, 10**4)
        check_whole("fan_in", self.fan_in, 2)
        check_number("bandwidth", self.bandwidth, "a positive number of bytes a second", lambda v: v > 0)
        check_number("price", self.price, "a number of at least 0", lambda v: v >= 0)

    @property
    def cores(self) -> int:
        return self.nodes * self.cores_per_node


@dataclass(frozen=True)
class Estimate:
    """Seconds by phase, bytes and money of one job on one cluster.

    moved_bytes   by all messages of the tree together
    worker_bytes  of one core: the planes of its shards, a block that is read, and what is added in the largest round
    driver_bytes  the sum of the largest round, and as much to work with
    """

    start: float
    read: float
    count: float
    ask: float
    reduce: float
    decide: float
    alone: float
    moved_bytes: float
    worker_bytes: float
    driver_bytes: float
    money: float

    @property
    def seconds(self) -> float:
        return self.start + max(self.shared + self.reduction + self.decide, self.alone)

    @property
    def shared(self) -> float:
        """What more cores shorten."""
        return self.read + self.count

    @property
    def reduction(self) -> float:
        """What more cores lengthen: questions, and the sums of their answers."""
        return self.ask + self.reduce


def estimate(job: Job, cluster: Cluster, rates: Rates, local: bool = False) -> Estimate:
    """What the job takes on the cluster; `local`: on one machine without Ray, where nothing is asked nor reduced."""
    S, f = job.shards(cluster.cores), cluster.fan_in
    busy = cluster.cores if local else min(cluster.cores, S)
    rounds = rates.rounds_of(job.taken, job.horizon, job.bounds_given)
    sums = rates.reduced_bytes(job.taken, job.agents, job.planes, job.horizon)
    arriving = job.data_bytes / (cluster.bandwidth * cluster.nodes)
    states, answers = job.trajectories * (job.horizon - 1) * rates.label, rounds * S * rates.answer
    empty, loaded = (round_seconds(S, busy, b, cluster, rates) for b in (0.0, sums / rounds))
    at_once = min(4 * job.agents * job.planes**2, TILE_BYTES) * min(TOGETHER, job.horizon - 1)
    found = Estimate(
        start=0.0 if local else rates.start,
        read=max(job.data_bytes / (rates.read * busy), arriving),
        count=(job.trajectories * job.pairs * rates.passes[job.taken] / rates.count + states + answers) / busy,
        ask=0.0 if local else rounds * empty,
        reduce=0.0 if local else rounds * (loaded - empty),
        decide=rounds * rates.decide_round + sums * rates.decide_byte,
        alone=_fingerprint_seconds(job, S, rates),
        moved_bytes=0.0 if local else sums * S * f / (f - 1),
        worker_bytes=job.packed_bytes / busy + min(BLOCK, job.data_bytes / S) + (0 if local else f + 1) * at_once,
        driver_bytes=2 * at_once,
        money=0.0,
    )
    return replace(found, money=cluster.nodes * cluster.price * found.seconds / 3600)


def _fingerprint_seconds(job: Job, shards: int, rates: Rates) -> float:
    looked_at = LOOKED_AT * job.data_bytes / shards
    return job.trajectories * rates.print_trajectory + looked_at * rates.print_byte + shards * rates.print_shard


def round_seconds(shards: int, cores: int, n_bytes: float, cluster: Cluster, rates: Rates) -> float:
    """One question to all shards and the sum of their answers of `n_bytes` each, beyond the counting itself.

    The driver hands out tasks one after the other while workers begin with the first; whoever is slower counts. Then
    the tree, level by level: a core adds what is its share of the sums of that level, and a node receives what its
    cores add, but for what is there already.
    """
    tasks = shards * (1 + 1 / (cluster.fan_in - 1))
    seconds = max(tasks * rates.dispatch, tasks / cores * rates.task)
    foreign = (1 - 1 / cluster.nodes) / cluster.bandwidth
    for parts, sums in tree_levels(shards, cluster.fan_in):
        group = -(-parts // sums) * n_bytes
        here = -(-sums // cores) * group / rates.add
        seconds += rates.hop + here + -(-sums // cluster.nodes) * group * foreign
    return seconds


def tree_levels(leaves: int, fan_in: int) -> list[tuple[int, int]]:
    """Of each level of a tree that adds so many arrays, `fan_in` at a time: how many there are, and how many sums."""
    levels = []
    while leaves > 1:
        sums = -(-leaves // fan_in)
        levels.append((leaves, sums))
        leaves = sums
    return levels


def where_reduction_dominates(job: Job, cluster: Cluster, rates: Rates, most: int = 10**6) -> int | None:
    """The least number of nodes at which reduction takes longer than the work that is shared; None: not up to `most`.

    Shared work falls with every node and reduction does not, so there is one such point.
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
