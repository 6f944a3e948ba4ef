"""Which runs show what the bounds are worth: known, off by a factor of 2 either way, or chosen from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from studies.study import Study

# Pr(a = s) of agents A and B. The paper's have nearly the bounds that are tried first; the others do not.
AGENTS = {"paper": (0.5, 0.75), "subtle": (0.5, 0.64), "rare": (0.8, 0.95)}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
FACTORS = (0.5, 1.0, 2.0)
GRID = tuple((alpha, eta, nu) for alpha in FACTORS for eta in FACTORS for nu in FACTORS)
SIZES = (1000, 5000)


@dataclass(frozen=True)
class Run:
    """All choices of bounds, by both couplings, on one dataset."""

    agents: str
    size: int
    seed: int
    horizon: int = 30
    n_features: int = 128


def sweep(n_seeds: int) -> list[Run]:
    """All agents at all sizes, seed by seed; a quarter of the seeds for agents other than the paper's."""
    return [
        Run(agents, size, seed)
        for seed in range(n_seeds)
        for agents in AGENTS
        for size in SIZES
        if agents == "paper" or 4 * seed < n_seeds
    ]


STUDY = Study(
    name="bounds",
    summary="alpha, eta, nu: true, chosen from the data, or off by a factor of 2",
    module="studies.bounds.run",
    runs=lambda args: sweep(args.seeds),
    seeds=2,
    full_seeds=20,
    examples=("--workers 2", "--full --workers 2 --out results/bounds-full"),
)
