"""Where what is random about a violation comes from."""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl.arguments import check_number, check_whole
from craftrl.envs.agents import check_policies
from craftrl.envs.exbmdp import check_tables

__all__ = ["STREAM", "Seed", "check_broken", "stream"]

Seed = int | np.random.SeedSequence

STREAM = 1_000_003  # the violation's child of the seed, far from those that `collect` spawns


def check_broken(world: Any, policies: Any) -> None:
    """A world whose tables can be departed from, and the agents that act in it."""
    check_tables(world)
    check_policies(policies)


def stream(size: float, seed: Seed) -> np.random.Generator:
    """The violation's own random numbers, apart from those of the collection with the same seed."""
    check_number("size", size, "a number from 0 to 1: how much is broken", lambda share: 0 <= share <= 1)
    if isinstance(seed, np.random.SeedSequence):
        root = seed
    else:
        check_whole("seed", seed, advice="the violation and the collection begin with the same")
        root = np.random.SeedSequence(seed)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, STREAM)))
