"""Which runs ask whether CRAFT minds collectors that are neither Markovian nor i.i.d."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from studies.study import Later, Study

__all__ = ["COUPLINGS", "FULL_SEEDS", "KINDS", "SEEDS", "SIZES", "STUDY", "Run", "sweep"]

KINDS = {
    "markov": "repeats the state with probability 3/4",
    "memory": "0.9 if s_3 repeated s_2, else 0.3",
    "switching": "0.9 or 0.6, drawn for each episode",
    "adaptive": "0.9 in the state that was rarer so far, else 0.6",
    "two back": "repeats the state before the last",
}
COUPLINGS: tuple[Literal["independent", "markov"], ...] = ("independent", "markov")
SIZES = (200, 1000)
HORIZON, FEATURES = 15, 64
SEEDS, FULL_SEEDS = 2, 10


@dataclass(frozen=True)
class Run:
    """One fit: which collector, itself or its Markov twin, how many trajectories per agent."""

    kind: str
    twin: bool
    size: int
    coupling: Literal["independent", "markov"]
    seed: int
    horizon: int
    n_features: int


def sweep(n_seeds: int, sizes: Iterable[int] = SIZES, horizon: int = HORIZON, features: int = FEATURES) -> list[Run]:
    """Every collector beside its twin; the Markov one is its own."""
    return [
        Run(kind, twin, size, coupling, seed, horizon, features)
        for seed in range(n_seeds)
        for size in sizes
        for kind in KINDS
        for twin in ((False,) if kind == "markov" else (False, True))
        for coupling in COUPLINGS
    ]


STUDY = Study(
    name="collectors",
    summary="agents with memory, that switch habits, that adapt",
    seeds=SEEDS,
    runs=lambda args: sweep(args.seeds),
    run_one=Later("studies.collectors.run", "run_one"),
    report=Later("studies.collectors.report", "report"),
    writes=("table.json",),
    full_seeds=FULL_SEEDS,
    examples=("--workers 2", "--full --workers 2 --out results/collectors-full"),
)
