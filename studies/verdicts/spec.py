"""Which models say how far the verdict on networks can be trusted."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from craftrl.errors import require
from studies.study import Study

CLEAN = "none"
TOO_FEW = 50  # trajectories per agent
# Cells a side and trajectories per agent, and how these are cut.
DATA_SIZES = {3: (TOO_FEW, 400, 1000), 4: (600, 1200)}
CUTS = {3: ("whole", "clips", "unequal"), 4: ("whole", "clips")}
# What is broken in 400 trajectories of 3x3 cells, and by how much: agents recorded under other light, or one of
# `studies.worlds.violations`.
BROKEN = {
    "light": (15, 60),
    "mislabelled": (0.1, 0.35),
    "slips": (0.2,),
    "leaks": (0.3, 1.0),
    "agreement": (0.5,),
    "alike": (0.5, 1.0),
    "noise": (0.5,),
    "corrupted": (0.2,),
}


@dataclass(frozen=True)
class Run:
    """One fit, and its verdict.

    size       cells a side
    n          trajectories per agent
    violation  what is broken in the data, and by how much (`extent`)
    planted    the number of the first of two faults that are planted in the model, where it is right; -1 for none
    """

    size: int
    n: int
    cut: str
    violation: str
    extent: float
    planted: int
    seed: int
    device: str


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto (default: %(default)s)")


def runs(args: argparse.Namespace) -> list[Run]:
    """Seed by seed, so that an unfinished sweep has seen all kinds; faults take turns, data is broken at even seeds."""
    require("torch", "neural")
    clean = [(size, n, cut) for size, sizes in DATA_SIZES.items() for cut in CUTS[size] for n in sizes]
    broken = [(violation, extent) for violation, extents in BROKEN.items() for extent in extents]
    found = []
    for seed in range(args.seeds):
        for i, (size, n, cut) in enumerate(clean):
            planted = -1 if n == TOO_FEW else 2 * (seed + i)
            found.append(Run(size, n, cut, CLEAN, 0.0, planted, seed, args.device))
        if seed % 2 == 0:
            found += [Run(3, 400, "whole", *what, -1, seed, args.device) for what in broken]
    return found


STUDY = Study(
    "verdicts",
    "which models of videos are trusted, right ones and wrong ones",
    runs,
    8,
    options=options,
    examples=("--seeds 1 --workers 2", "--device cuda --workers 12"),
)
