"""One round on a cluster that is not there, task by task: a check of the closed form in `craftrl.distributed.cost`.

The driver hands out tasks one after the other. A core takes its tasks in turn. Sums wait for their parts; a part from
another node arrives over that node's one connection, one part after the other. A straggler is a task that takes several
times as long as it should.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.distributed.job import Cluster
from craftrl.distributed.rates import Rates

__all__ = ["Stragglers", "simulated_round"]


@dataclass(frozen=True)
class Stragglers:
    """A share of all tasks takes `times` as long."""

    share: float = 0.0
    times: float = 10.0


def simulated_round(
    shards: int,
    n_bytes: float,
    cluster: Cluster,
    rates: Rates,
    work: float = 0.0,
    stragglers: Stragglers = Stragglers(),
    seed: int = 0,
) -> float:
    """Seconds until the driver has the sum of all shards' answers of `n_bytes`.

    work  seconds of counting for each shard
    """
    rng = np.random.default_rng(seed)
    world = _World(cluster, rates, n_bytes)
    slow = np.where(rng.random(shards) < stragglers.share, stragglers.times, 1.0)
    core = rng.permutation(np.arange(shards) % cluster.cores)  # whoever was free has read a shard
    ready = np.array([world.run(core[i], 0.0, (rates.task + work) * slow[i]) for i in range(shards)])
    while len(ready) > 1:
        ready, core = world.add_level(ready, core)
    return float(ready[0])


class _World:
    """When the driver, every core and every node's connection is free again."""

    def __init__(self, cluster: Cluster, rates: Rates, n_bytes: float) -> None:
        self.cluster, self.rates, self.n_bytes = cluster, rates, n_bytes
        self.driver = 0.0
        self.core = np.zeros(cluster.cores)
        self.line = np.zeros(cluster.nodes)

    def run(self, core: int, ready: float, seconds: float) -> float:
        """Hand a task to a core; it begins when its parts are there and the core is free."""
        self.driver += self.rates.dispatch
        begin = max(self.driver, ready, self.core[core])
        self.core[core] = begin + seconds
        return float(self.core[core])

    def add_level(
        self, ready: NDArray[np.float64], core: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Groups of fan_in become one each, on the node of their first part."""
        f = self.cluster.fan_in
        firsts = range(0, len(ready), f)
        order = sorted(firsts, key=lambda i: ready[i : i + f].max())
        done = {i: self._sum(ready[i : i + f], core[i : i + f]) for i in order}
        return np.array([done[i][0] for i in firsts]), np.array([done[i][1] for i in firsts])

    def _sum(self, ready: NDArray[np.float64], core: NDArray[np.intp]) -> tuple[float, int]:
        """When the sum is there, and which core has made it: of the node's cores the one that is free first."""
        each = self.cluster.cores_per_node
        here = core[0] // each
        there = ready[0]
        for when, whose in sorted(zip(ready, core)):
            if whose // each != here:
                self.line[here] = max(self.line[here], when) + self.n_bytes / self.cluster.bandwidth
                when = self.line[here]
            there = max(there, when)
        if len(ready) == 1:
            return float(there), int(core[0])
        free = int(here * each + self.core[here * each : (here + 1) * each].argmin())
        seconds = self.rates.task + len(ready) * self.n_bytes / self.rates.add
        return self.run(free, there + self.rates.hop, seconds), free
