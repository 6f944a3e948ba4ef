"""Which random worlds, agents, sizes, violations and classes of encoders: one case from one number.

Worlds are of four kinds: random tables with noises that know nothing of one another; rings, whose steps are all alike;
worlds in which half of the coordinates share one frozen noise; and the paper's bits, whose agents treat both states
alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl import CoordinateOracle, FiniteOracle
from craftrl.envs import BitsExBMDP, Collection, collect
from craftrl.envs.agents import MarkovPolicy
from studies.loud.world import TabularExBMDP, random_agents
from studies.worlds.violations import VIOLATIONS

CLEAN = "none"
KINDS = ("random", "ring", "chorus", "bits")
SHARE_BROKEN = 0.5  # of the cases with something broken
MIXED = 6  # functions of either kind that a list has beside the coordinates
BROKEN = {"slips": 0.6, "leaks": 0.6, "agreement": 0.8, "mislabelled": 0.45, "corrupted": 0.5}  # the largest size


@dataclass(frozen=True)
class Case:
    """One dataset, and what is true of it.

    kind       of world
    sizes      trajectories of each agent
    violation  what is broken, by how much (`studies.worlds.violations`)
    """

    kind: str
    world: TabularExBMDP | BitsExBMDP
    agents: list[MarkovPolicy]
    sizes: tuple[int, ...]
    alpha: float
    violation: str
    size: float
    seed: int

    def data(self) -> Collection:
        """What the learner sees."""
        if self.violation == CLEAN:
            return collect(self.world, self.agents, self.sizes, self.seed)
        return VIOLATIONS[self.violation](self.world, self.agents, self.sizes, self.size, self.seed)

    @property
    def n_values(self) -> int:
        """How many values a coordinate takes."""
        return int(self.world.obs_high) + 1

    def oracle(self, kind: str) -> CoordinateOracle | FiniteOracle:
        """The coordinates, or a list of functions that has them, coarser ones and finer ones: some coordinates with two
        values read as one, and some beside a bit of another; the state is among them at every step."""
        if kind == "coordinates":
            return CoordinateOracle(self.n_values, n_threads=1)
        lists = {h: self._functions(h) for h in range(1, self.world.H + 1)}
        return FiniteOracle(lists.__getitem__, 2 * self.n_values, n_threads=1)

    def _functions(self, h: int) -> list[Any]:
        rng, M, V = np.random.default_rng([self.seed, h]), int(np.prod(self.world.obs_shape)), self.n_values
        state = self.world.controllable_feature(h) if isinstance(self.world, BitsExBMDP) else self.world.place[h - 1][0]
        found: list[Any] = [lambda x, i=i: x[:, i] for i in range(M)]
        for i in [int(state), *rng.integers(M, size=MIXED - 1).tolist()] if V > 2 else []:
            names = np.arange(V)
            first, second = rng.choice(V, 2, replace=False)
            names[second] = first
            found.append(lambda x, i=i, names=names: names[x[:, i]])
        for i in [int(state)] * 2 + rng.integers(M, size=MIXED - 2).tolist():
            j = int(rng.integers(M))
            found.append(lambda x, i=i, j=j: x[:, i].astype(int) * 2 + x[:, j] % 2)
        return [found[k] for k in rng.permutation(len(found))]

    def fresh(self, n: int) -> Collection:
        """As many trajectories of each agent in the unbroken world, to measure accuracy on."""
        return collect(self.world, self.agents, n, self.seed + 1_000_003)


def draw_case(seed: int, size: str) -> Case:
    """The case of this number. `size`: "200" trajectories of each agent; "4000:200" from the first agent to the last;
    "about 1000": the geometric mean of the largest and the smallest, which are 1:1 to 1:50."""
    rng = np.random.default_rng([seed, 1])
    kind = str(rng.choice(KINDS))
    alpha = float(rng.choice([0.25, 0.4, 0.7, 1.0, 1.5, 2.0]))
    n_agents = 2 if kind == "bits" else int(rng.choice([2, 2, 3, 4]))
    world, agents = _drawn(kind, n_agents, alpha, rng)
    ratio = float(rng.choice([1, 1, 3, 10, 50]))
    if size.startswith("about "):
        n = int(size.removeprefix("about "))
        ends = n * ratio**0.5, n / ratio**0.5
    else:
        ends = int(size.partition(":")[0]), int(size.rpartition(":")[2])
    sizes = np.geomspace(*ends, n_agents).round().astype(int)
    violation = str(rng.choice(list(BROKEN))) if rng.random() < SHARE_BROKEN else CLEAN
    extent = float(rng.uniform(0.02, BROKEN[violation])) if violation != CLEAN else 0.0
    return Case(kind, world, agents, tuple(int(m) for m in sizes), alpha, violation, extent, int(rng.integers(2**31)))


def _drawn(kind: str, n_agents: int, alpha: float, rng: np.random.Generator) -> tuple[Any, list[MarkovPolicy]]:
    states, actions, H = int(rng.integers(2, 6)), int(rng.integers(2, 4)), int(rng.integers(5, 9))
    features, seed = int(rng.integers(10, 21)), int(rng.integers(2**31))
    if kind == "bits":
        world = BitsExBMDP(H, features, seed)
        stay = 1 / (1 + np.exp([alpha / 2, -alpha / 2]))  # of two successors, log-odds that are alpha apart
        return world, [world.persistence_policy(float(p)) for p in stay]
    states = max(states, 3) if kind == "ring" else states
    chorus = features // 2 if kind == "chorus" else 0
    tabular = TabularExBMDP(H, states, min(actions, states), features, seed, ring=kind == "ring", chorus=chorus)
    return tabular, random_agents(tabular, n_agents, alpha, seed)
