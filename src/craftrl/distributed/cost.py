"""What an exact fit on shards takes: time by phase, memory, bytes moved and money, before anything is run.

The work is simple enough to be written down. With n trajectories of H steps, M features of N_s values (v = N_s - 1 bit
planes each) and K agents, on W cores and in S parts, each a shard or some neighbouring ones:

read    every shard is read once and packed into bit planes: n H M bytes for entries of one byte, shared by all cores,
        and never faster than disk or network deliver
count   n (H - 1) (M v)^2 bits of pairs of planes are ANDed and counted, times the `passes` that a coupling makes over
        all pairs; and for every trajectory and step its state is read a few times. Shared by all cores
ask     everything is asked in rounds: a question goes to every part, and the answers are added in a tree of fan-in f.
        A round costs the driver a dispatch for each task, a worker a task for each part of its own, and a hop for each
        level of the tree. How many `rounds` a fit takes depends on H and the coupling, not on the data
reduce  counts of pairs of planes, 4 K (M v)^2 bytes for each pair of steps, times the `matrices` that a coupling asks
        for, and 8 M v bytes times some `lines` for what follows. On every level of the tree, f such arrays arrive at
        one core and are added
decide  the driver turns sums into losses and chooses; it does so for every round and byte that it receives
alone   one task makes the fingerprint of the data, for which it looks at all lengths and reads some shards, beside all
        other work; it only matters where it takes longer than that

More machines shorten `read` and `count`, not `ask` and `reduce`. Where these exceed the shared work, machines
are better spent otherwise (`where_reduction_dominates`).

All functions here are pure. `craftrl.distributed.rates` has the constants, which a benchmark measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from craftrl.arguments import check_flag, check_kind, check_number, check_whole
from craftrl.distributed.job import MOST_NODES, Cluster, Job
from craftrl.distributed.rates import Rates
from craftrl.engine.counting import TILE_BYTES

__all__ = ["Estimate", "estimate", "round_seconds", "tree_levels", "where_reduction_dominates"]

BLOCK = 64 * 2**20  # bytes of observations that a worker reads at a time
LOOKED_AT = 16  # places from which a fingerprint takes some observations; each means to read a shard
TOGETHER = 32  # pairs of steps whose questions travel in one round


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
    check_kind("job", job, Job, "a Job")
    _check_kinds(cluster, rates)
    check_flag("local", local)
    S, f = job.tasks(cluster.cores), cluster.fan_in
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


def _check_kinds(cluster: Cluster, rates: Rates) -> None:
    check_kind("cluster", cluster, Cluster, "a Cluster")
    check_kind("rates", rates, Rates, "the Rates of a machine, such as Rates.shipped()")


def _fingerprint_seconds(job: Job, shards: int, rates: Rates) -> float:
    looked_at = LOOKED_AT * job.data_bytes / shards
    return job.trajectories * rates.print_trajectory + looked_at * rates.print_byte + shards * rates.print_shard


def round_seconds(shards: int, cores: int, n_bytes: float, cluster: Cluster, rates: Rates) -> float:
    """One question to all shards and the sum of their answers of `n_bytes` each, beyond the counting itself.

    The driver hands out tasks one after the other while workers begin with the first; whoever is slower counts. Then
    the tree, level by level: a core adds what is its share of the sums of that level, and a node receives what its
    cores add, but for what is there already.
    """
    check_whole("shards", shards, 1)
    check_whole("cores", cores, 1)
    check_number("n_bytes", n_bytes, "a number of at least 0", lambda v: v >= 0)
    _check_kinds(cluster, rates)
    levels = tree_levels(shards, cluster.fan_in)
    tasks = shards * (1 + 1 / (cluster.fan_in - 1))
    seconds = max(tasks * rates.dispatch, tasks / cores * rates.task)
    foreign = (1 - 1 / cluster.nodes) / cluster.bandwidth
    for parts, sums in levels:
        group = -(-parts // sums) * n_bytes
        here = -(-sums // cores) * group / rates.add
        seconds += rates.hop + here + -(-sums // cluster.nodes) * group * foreign
    return seconds


def tree_levels(leaves: int, fan_in: int) -> list[tuple[int, int]]:
    """Of each level of a tree that adds so many arrays, `fan_in` at a time: how many there are, and how many sums."""
    check_whole("leaves", leaves, 1)
    check_whole("fan_in", fan_in, 2)
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
    check_kind("job", job, Job, "a Job")
    _check_kinds(cluster, rates)
    check_whole("most", most, 1, MOST_NODES // 2)
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
