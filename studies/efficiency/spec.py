"""Which runs show how much data each way of choosing encoders needs, and which methods are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from studies.study import Later, Study

__all__ = [
    "EXCESS",
    "FRESH",
    "FULL_SEEDS",
    "FULL_SIZES",
    "LEARNERS",
    "NAMES",
    "OTHERS",
    "SEEDS",
    "SHAPES",
    "SIZES",
    "STUDY",
    "WORLDS",
    "Run",
    "sweep",
]

# What CRAFT is given in each, beside the true alpha, eta and nu.
LEARNERS: Mapping[str, dict[str, Any]] = {
    "independent": {"coupling": "independent", "relabel": False},
    "independent, relabelled": {"coupling": "independent", "relabel": True},
    "chain": {"coupling": "chain", "relabel": False},
    "chain, relabelled": {"coupling": "chain", "relabel": True},
    "markov": {"coupling": "markov", "relabel": False},
    "markov, relabelled": {"coupling": "markov", "relabel": True},
}
# What is only a yardstick or was tried and left: encoders read off the losses, with no clustering after them.
NAMES = {
    "independent": "CRAFT as in the paper",
    "independent, relabelled": "the same, relabelled",
    "chain": "chain",
    "chain, relabelled": "chain, relabelled",
    "markov": "Markov chain",
    "markov, relabelled": "Markov chain, relabelled",
    "genie": "genie: knows the neighbours' states",
    "hub": "hub: looks at no agent",
    "chain, raw": "chain, before clustering",
    "markov, raw": "Markov chain, before clustering",
    "conditional, raw": "conditional chain, before clustering",
}
WORLDS = {
    "paper": "the paper's world",
    "control": "control: noise bits not XORed with the state",
    "sticky": "control, agents that part at the first step and then hardly move",
}
# The same worlds once more, with seeds that nothing was chosen on.
FRESH = {f"{name}, fresh seeds": name for name in WORLDS}
# So that nothing rests on bits, two agents and assumptions that hold.
OTHERS = {
    "lock": "combination lock: three states a step",
    "three agents": "control, three agents that take turns in being different",
    "guided by noise": "control, the noise decides one move in twenty",
}
# Classes of four values, all bits and all ordered pairs of bits, at these steps (None: all); elsewhere all bits.
EXCESS: Mapping[str, int | None] = {"excess at h = 2": 2, "excess at every h": None}

SIZES: Mapping[str, tuple[int, ...]] = {
    "paper": (50, 100, 200, 500, 1000),
    "control": (50, 100, 200, 500),
    "sticky": (200, 500),
    **dict.fromkeys(EXCESS, (2000,)),
}
FULL_SIZES: Mapping[str, tuple[int, ...]] = {
    "paper": (50, 100, 200, 500, 1000, 2000, 5000),
    "control": (50, 100, 200, 500, 1000, 2000, 5000),
    "sticky": (100, 200, 500, 2000),
    **dict.fromkeys(EXCESS, (500, 2000, 8000, 20_000)),
    **dict.fromkeys(FRESH, (100, 200, 500)),
    "lock": (250, 500, 1000),
    "three agents": (50, 100, 200),
    "guided by noise": (100, 200, 1000),
}
# Horizon and features.
SHAPES = {
    **dict.fromkeys([*WORLDS, *FRESH], (30, 128)),
    **dict.fromkeys(EXCESS, (10, 8)),
    **dict.fromkeys(OTHERS, (15, 64)),
    "lock": (6, 10),
}
SEEDS, FULL_SEEDS = 4, 20


@dataclass(frozen=True)
class Run:
    """All methods on one dataset: which world, how many trajectories per agent, which seed."""

    world: str
    size: int
    seed: int
    horizon: int
    n_features: int


def sweep(sizes: Mapping[str, Iterable[int]], n_seeds: int, shapes: Mapping[str, tuple[int, int]]) -> list[Run]:
    """Every world at every size, seed by seed; fresh seeds begin where those that anything was chosen on end."""
    return [
        Run(world, size, seed + (FULL_SEEDS if world in FRESH else 0), *shapes[world])
        for seed in range(n_seeds)
        for world in sizes
        for size in sizes[world]
    ]


STUDY = Study(
    name="efficiency",
    summary="accuracy against data: the paper's ERM, the chain, their limits",
    seeds=SEEDS,
    runs=lambda args: sweep(FULL_SIZES if args.full else SIZES, args.seeds, SHAPES),
    run_one=Later("studies.efficiency.run", "run_one"),
    report=Later("studies.efficiency.report", "report"),
    draw=Later("studies.efficiency.picture", "draw"),
    writes=("curves.json", "efficiency.png", "excess.png"),
    full_seeds=FULL_SEEDS,
    full_adds=" and all sizes",
    examples=("--workers 2", "--full --workers 2 --out results/efficiency-full"),
)
