"""Which runs show what imperfect worlds do to CRAFT, and whether its diagnostics notice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from studies.study import Later, Study

__all__ = [
    "CLEAN",
    "DATA_SIZES",
    "FULL_SEEDS",
    "LEARNERS",
    "SEEDS",
    "STUDY",
    "VIOLATION_SIZES",
    "WORLD_SIZE",
    "Learner",
    "Run",
    "sweep",
]

SEEDS, FULL_SEEDS = 2, 10
CLEAN = "none"


@dataclass(frozen=True)
class Learner:
    """How CRAFT is built.

    coupling, relabel  as CRAFT takes them
    chosen             whether bounds are chosen from the data; else they are those of the unbroken world
    n_resamples        refits for its diagnosis; 0 for no diagnosis at all
    """

    coupling: Literal["auto", "independent", "markov"]
    relabel: bool | Literal["auto"]
    chosen: bool
    n_resamples: int


LEARNERS: Mapping[str, Learner] = {
    "paper": Learner("independent", relabel=False, chosen=False, n_resamples=5),
    "markov": Learner("markov", relabel=True, chosen=False, n_resamples=0),
    "default": Learner("auto", relabel="auto", chosen=True, n_resamples=5),
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

# Horizon, and bits per observation.
WORLD_SIZE: Mapping[str, tuple[int, int]] = {"toy": (15, 64), "control": (15, 64), "lock": (6, 10)}


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


def sweep(
    n_seeds: int,
    data_sizes: Mapping[str, tuple[int, ...]] = DATA_SIZES,
    violation_sizes: Mapping[str, Mapping[str, tuple[float, ...]]] = VIOLATION_SIZES,
    world_size: Mapping[str, tuple[int, int]] = WORLD_SIZE,
) -> list[Run]:
    """All learners on every dataset, seed by seed, so that an unfinished sweep has seen every cell."""
    return [
        Run(world, violation, size, name, n, seed, *world_size[world], learner.n_resamples)
        for seed in range(n_seeds)
        for world, violation, size, n in _datasets(data_sizes, violation_sizes)
        for name, learner in LEARNERS.items()
    ]


def _datasets(
    data_sizes: Mapping[str, tuple[int, ...]], violation_sizes: Mapping[str, Mapping[str, tuple[float, ...]]]
) -> Iterator[tuple[str, str, float, int]]:
    for world, counts in data_sizes.items():
        for n in counts:
            yield world, CLEAN, 0.0, n
        for violation, sizes in violation_sizes.get(world, {}).items():
            for size in sizes:
                yield world, violation, size, counts[0]


STUDY = Study(
    name="robustness",
    summary="broken assumptions, and whether label-free diagnostics notice",
    seeds=SEEDS,
    runs=lambda args: sweep(args.seeds, DATA_SIZES, VIOLATION_SIZES, WORLD_SIZE),
    run_one=Later("studies.robustness.run", "run_one"),
    report=Later("studies.robustness.report", "report"),
    draw=Later("studies.robustness.picture", "draw"),
    writes=("tables.json", "robustness.png", "trust.png"),
    full_seeds=FULL_SEEDS,
    examples=("--workers 2", "--full --workers 2 --out results/robustness-full"),
)
