"""What an estimate is made for: a fit of certain sizes, and the machines that it would run on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from craftrl.arguments import check_flag, check_number, check_whole, shown
from craftrl.core.limits import check_counts, check_sums, widest_coupling
from craftrl.core.seam import Coupling
from craftrl.distributed.parts import AT_MOST, MOST_TASKS, PER_WORKER
from craftrl.distributed.rates import COUPLINGS
from craftrl.errors import InvalidParameterError

__all__ = ["MOST_NODES", "Cluster", "Job"]

MOST_NODES = 10**7


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
    files         shards that there are; None: as many as such files fill
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
        check_flag("bounds_given", self.bounds_given)
        if not isinstance(self.coupling, str) or self.coupling not in ("auto", *COUPLINGS):
            raise InvalidParameterError(
                f"coupling must be auto or one of {', '.join(COUPLINGS)}; {shown(self.coupling)} was given."
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

    def tasks(self, cores: int) -> int:
        """In how many parts shards are taken: a few for each core, no more than a thousand (`taken_together`)."""
        check_whole("cores", cores, 1)
        files = self.files or math.ceil(self.data_bytes / self.shard_bytes)
        parts = max(min(PER_WORKER * cores, MOST_TASKS), math.ceil(self.data_bytes / AT_MOST))
        return min(max(self.agents, min(files, parts)), self.trajectories)


def check_price(price: Any) -> None:
    """What a machine costs for an hour."""
    check_number("price", price, "a number from 0 to 1e9", lambda v: 0 <= v <= 1e9)


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
        check_whole("nodes", self.nodes, 1, MOST_NODES)
        check_whole("cores_per_node", self.cores_per_node, 1, 10**4)
        check_whole("fan_in", self.fan_in, 2)
        check_number(
            "bandwidth", self.bandwidth, "a number of bytes a second, from 1 to 1e15", lambda v: 1 <= v <= 1e15
        )
        check_price(self.price)

    @property
    def cores(self) -> int:
        return self.nodes * self.cores_per_node
