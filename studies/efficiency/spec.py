"""Which runs show how much data each way of choosing encoders needs, and which methods are compared."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from studies.study import Study

# What CRAFT is given in each, beside the true alpha, eta and nu.
LEARNERS: Mapping[str, dict[str, Any]] = {
    f"{coupling}{', relabelled' if relabel else ''}": {"coupling": coupling, "relabel": relabel}
    for coupling in ("independent", "chain", "markov")
    for relabel in (False, True)
}
WORLDS = {
    "paper": "the paper's world",
    "control": "control: noise bits not XORed with the state",
    "sticky": "control, agents that part at the first step and then hardly move",
}
FRESH = {f"{name}, fresh seeds": name for name in WORLDS}  # seeds that no method was chosen on
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
FULL_SEEDS = 20


@dataclass(frozen=True)
class Run:
    """All methods on one dataset: which world, how many trajectories per agent, which seed."""

    world: str
    size: int
    seed: int
    horizon: int
    n_features: int


def runs(args: argparse.Namespace) -> list[Run]:
    """Every world at every size, seed by seed; fresh seeds begin where those that anything was chosen on end."""
    sizes = FULL_SIZES if args.full else SIZES
    return [
        Run(world, size, seed + (FULL_SEEDS if world in FRESH else 0), *SHAPES[world])
        for seed in range(args.seeds)
        for world in sizes
        for size in sizes[world]
    ]


SUMMARY = "accuracy against data: the paper's ERM, the chain, their limits"
STUDY = Study("efficiency", SUMMARY, runs, 4, FULL_SEEDS, " and all sizes")
