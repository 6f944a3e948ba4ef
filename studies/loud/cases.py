"""Which random worlds, agents, sizes and violations: one case from one number.

Calibration worlds have random tables and noises that know nothing of one another. Check worlds are of other kinds as
well: rings, whose steps are all alike; worlds in which half of the coordinates share one frozen noise; and the paper's
bits, whose agents treat both states alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl.envs import BitsExBMDP, Collection, collect
from craftrl.envs.policies import MarkovPolicy
from craftrl.envs.violations import VIOLATIONS
from studies.loud.world import TabularExBMDP, random_agents

__all__ = ["CLEAN", "Case", "draw_case"]

CLEAN = "none"
CHECKED = ("random", "ring", "chorus", "bits")
SHARE_BROKEN = 0.5  # of the cases with something broken
BROKEN = {"slips": 0.6, "leaks": 0.6, "agreement": 0.8, "mislabelled": 0.45, "corrupted": 0.5}  # the largest size


@dataclass(frozen=True)
class Case:
    """One dataset, and what is true of it.

    kind       of world
    sizes      trajectories of each agent
    violation  what is broken, by how much (`craftrl.envs.violations`)
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

    def fresh(self, n: int) -> Collection:
        """As many trajectories of each agent in the unbroken world, to measure accuracy on."""
        return collect(self.world, self.agents, n, self.seed + 1_000_003)


def draw_case(seed: int, check: bool, n: int) -> Case:
    """The case of this number; `n` is the geometric mean of the largest and the smallest agent's trajectories."""
    rng = np.random.default_rng([seed, int(check)])
    kind = str(rng.choice(CHECKED)) if check else "random"
    alpha = float(rng.choice([0.25, 0.4, 0.7, 1.0, 1.5, 2.0]))
    n_agents = 2 if kind == "bits" else int(rng.choice([2, 2, 3, 4]))
    world, agents = _drawn(kind, n_agents, alpha, rng)
    ratio = float(rng.choice([1, 1, 3, 10, 50]))
    sizes = np.geomspace(n * ratio**0.5, n / ratio**0.5, n_agents).astype(int)
    violation = str(rng.choice(list(BROKEN))) if rng.random() < SHARE_BROKEN else CLEAN
    size = float(rng.uniform(0.02, BROKEN[violation])) if violation != CLEAN else 0.0
    return Case(kind, world, agents, tuple(int(m) for m in sizes), alpha, violation, size, int(rng.integers(2**31)))


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
