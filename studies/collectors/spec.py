"""Which runs ask whether CRAFT minds collectors that are neither Markovian nor i.i.d."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

from studies.study import Study

KINDS = ("markov", "memory", "switching", "adaptive", "two back")
COUPLINGS: tuple[Literal["independent", "markov"], ...] = ("independent", "markov")
SIZES = (200, 1000)


@dataclass(frozen=True)
class Run:
    """One fit: which collector, itself or the Markov policy that makes the same moves, how many trajectories."""

    kind: str
    twin: bool
    size: int
    coupling: Literal["independent", "markov"]
    seed: int
    horizon: int = 15
    n_features: int = 64


def runs(args: argparse.Namespace) -> list[Run]:
    """Every collector beside its twin; the Markov one is its own."""
    return [
        Run(kind, twin, size, coupling, seed)
        for seed in range(args.seeds)
        for size in SIZES
        for kind in KINDS
        for twin in ((False,) if kind == "markov" else (False, True))
        for coupling in COUPLINGS
    ]


STUDY = Study("collectors", "agents with memory, that switch habits, that adapt", runs, 2, 10)
