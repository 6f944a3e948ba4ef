"""Which runs show what the bounds are worth: known, off by a factor of 2 either way, or chosen from the data."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from typing import Literal

from studies.study import Study

# Pr(a = s) of agents A and B. The paper's have nearly the bounds that are tried first; the others do not.
AGENTS = {"paper": (0.5, 0.75), "subtle": (0.5, 0.64), "rare": (0.8, 0.95)}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
GRID = tuple(product((0.5, 1.0, 2.0), repeat=3))  # what alpha, eta and nu are multiplied by
SIZES = (1000, 5000)


@dataclass(frozen=True)
class Run:
    """All choices of bounds, by both couplings, on one dataset."""

    agents: str
    size: int
    seed: int
    horizon: int = 30
    n_features: int = 128


def runs(args: argparse.Namespace) -> list[Run]:
    """All agents at all sizes, seed by seed; a quarter of the seeds for agents other than the paper's."""
    return [
        Run(agents, size, seed)
        for seed in range(args.seeds)
        for agents in AGENTS
        for size in SIZES
        if agents == "paper" or 4 * seed < args.seeds
    ]


STUDY = Study("bounds", "alpha, eta, nu: true, chosen from the data, or off by a factor of 2", runs, 2, 20)
