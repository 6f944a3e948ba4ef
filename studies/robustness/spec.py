"""Which runs show what imperfect worlds do to CRAFT, and whether its diagnostics notice."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from studies.study import Study

CLEAN = "none"
RESAMPLES = 5  # refits for a diagnosis
# How CRAFT is built; "default" chooses its bounds from the data, the others are given those of the unbroken world.
LEARNERS: Mapping[str, dict[str, Any]] = {
    "paper": {"coupling": "independent", "relabel": False},
    "markov": {"coupling": "markov", "relabel": True},
    "default": {},
}
# The sizes of each violation, by world; 0 is in `DATA_SIZES`.
VIOLATION_SIZES: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "toy": {
        "slips": (0.1, 0.2, 0.4, 0.6),
        "leaks": (0.01, 0.02, 0.05, 0.1, 0.3, 1.0),
        "agreement": (0.05, 0.1, 0.3, 0.5),
        "mislabelled": (0.1, 0.2, 0.3, 0.4),
        "corrupted": (0.1, 0.2, 0.3, 0.5),
        "hidden": (0.1, 0.4, 0.7, 1.0),
        "starts": (0.1, 0.2, 0.3, 0.5),
        "noise": (0.1, 0.3, 0.6, 1.0),
        "alike": (0.1, 0.3, 0.5),
        "alike, sticky": (0.1, 0.3, 0.5),
    },
    "control": {
        "starts": (0.1, 0.2, 0.3, 0.5),
        "noise": (0.02, 0.05, 0.1, 0.3),
        "alike": (0.1, 0.3, 0.5),
        "alike, sticky": (0.1, 0.3, 0.5),
    },
    "lock": {"slips": (0.03, 0.1, 0.2, 0.4), "starts": (0.1, 0.3, 0.5), "noise": (0.3, 1.0)},
}
# Trajectories per agent without any violation; the first is the size at which violations are studied.
DATA_SIZES: Mapping[str, tuple[int, ...]] = {
    "toy": (1000, 100, 200, 500, 2000),
    "control": (1000,),
    "lock": (2000, 500, 1000),
}
WORLD_SIZE = {"toy": (15, 64), "control": (15, 64), "lock": (6, 10)}  # horizon, and bits per observation


@dataclass(frozen=True)
class Run:
    """One fit of one learner, with or without diagnosis.

    world, horizon, n_features  where
    violation, size             what is broken, and by how much
    n                           trajectories per agent
    n_resamples                 refits for the diagnosis; 0 for none
    """

    world: str
    violation: str
    size: float
    learner: str
    n: int
    seed: int
    horizon: int
    n_features: int
    n_resamples: int


def runs(args: argparse.Namespace) -> list[Run]:
    """All learners on every dataset, seed by seed, so that an unfinished sweep has seen every cell."""
    datasets = [
        (world, *dataset)
        for world, counts in DATA_SIZES.items()
        for dataset in (
            *((CLEAN, 0.0, n) for n in counts),
            *((kind, size, counts[0]) for kind, sizes in VIOLATION_SIZES[world].items() for size in sizes),
        )
    ]
    return [
        Run(world, violation, size, name, n, seed, *WORLD_SIZE[world], 0 if name == "markov" else RESAMPLES)
        for seed in range(args.seeds)
        for world, violation, size, n in datasets
        for name in LEARNERS
    ]


SUMMARY = "broken assumptions, and whether label-free diagnostics notice"
STUDY = Study("robustness", SUMMARY, runs, 2, 10)
