"""Which runs show how many trajectories the structured worlds need."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

from studies.study import Study

SIZES = {
    "lock": (500, 1000, 2000, 4000, 8000, 16_000),
    "multimaze": (5000, 10_000, 20_000, 40_000),
}
HORIZON = {"lock": 10, "multimaze": 8}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")


@dataclass(frozen=True)
class Run:
    """One fit of exact CRAFT in one world, on `size` trajectories per agent, at the agents' population bounds."""

    world: str
    coupling: Literal["independent", "chain"]
    size: int
    seed: int
    horizon: int
    alpha: float = 1.0


def runs(args: argparse.Namespace) -> list[Run]:
    """Both couplings at all sizes of each world, seed by seed."""
    return [
        Run(world, coupling, size, seed, HORIZON[world])
        for seed in range(args.seeds)
        for world, sizes in SIZES.items()
        for size in sizes
        for coupling in COUPLINGS
    ]


STUDY = Study("worlds", "trajectories needed in the combination lock and the multi-maze", runs, 3, 10)
