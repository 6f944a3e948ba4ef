"""Which runs show what the bounds are worth: known, off by a factor of 2 either way, or chosen from the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from studies.study import Later, Study

__all__ = [
    "AGENTS",
    "COUPLINGS",
    "FACTORS",
    "FULL_SEEDS",
    "GRID",
    "SEEDS",
    "SIZES",
    "STUDY",
    "Run",
    "grid_name",
    "sweep",
]

# Pr(a = s) of agents A and B. The paper's have nearly the bounds that are tried first; the others do not.
AGENTS = {
    "paper": (0.5, 0.75),
    "subtle": (0.5, 0.64),
    "rare": (0.8, 0.95),
}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
FACTORS = (0.5, 1.0, 2.0)
GRID = tuple((alpha, eta, nu) for alpha in FACTORS for eta in FACTORS for nu in FACTORS)
SIZES = (1000, 5000)
SEEDS, FULL_SEEDS = 2, 20


@dataclass(frozen=True)
class Run:
    """All choices of bounds, by both couplings, on one dataset."""

    agents: str
    size: int
    seed: int
    horizon: int = 30
    n_features: int = 128


def grid_name(factors: tuple[float, float, float]) -> str:
    """A cell of the grid in words; the true bounds are "true"."""
    if factors == (1.0, 1.0, 1.0):
        return "true"
    return " ".join(f"{name} x {factor:g}" for name, factor in zip(("alpha", "eta", "nu"), factors) if factor != 1)


def sweep(sizes: Iterable[int], n_seeds: int, horizon: int = 30, n_features: int = 128) -> list[Run]:
    """All agents at all sizes, seed by seed; a quarter of the seeds for agents other than the paper's."""
    return [
        Run(agents, size, seed, horizon, n_features)
        for seed in range(n_seeds)
        for agents in AGENTS
        for size in dict.fromkeys(sizes)
        if agents == "paper" or 4 * seed < n_seeds
    ]


STUDY = Study(
    name="bounds",
    summary="alpha, eta, nu: true, chosen from the data, or off by a factor of 2",
    seeds=SEEDS,
    runs=lambda args: sweep(SIZES, args.seeds),
    run_one=Later("studies.bounds.run", "run_one"),
    report=Later("studies.bounds.report", "report"),
    draw=Later("studies.bounds.picture", "draw"),
    writes=("table.json", "bounds.png"),
    full_seeds=FULL_SEEDS,
    examples=("--workers 2", "--full --workers 2 --out results/bounds-full"),
)
