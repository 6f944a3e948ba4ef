"""Which runs show how many trajectories the structured worlds need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from studies.study import Study

__all__ = ["COUPLINGS", "FULL_SEEDS", "HORIZON", "SEEDS", "SIZES", "STUDY", "Run", "sweep"]

SIZES: Mapping[str, tuple[int, ...]] = {
    "lock": (500, 1000, 2000, 4000, 8000, 16_000),
    "multimaze": (5000, 10_000, 20_000, 40_000),
}
HORIZON: Mapping[str, int] = {"lock": 10, "multimaze": 8}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
SEEDS, FULL_SEEDS = 3, 10


@dataclass(frozen=True)
class Run:
    """One fit of exact CRAFT in one world, on `size` trajectories per agent, at the agents' population bounds."""

    world: str
    coupling: Literal["independent", "chain"]
    size: int
    seed: int
    horizon: int
    alpha: float = 1.0


def sweep(sizes: Mapping[str, Iterable[int]], n_seeds: int, horizon: Mapping[str, int]) -> list[Run]:
    """Both couplings at all sizes of each world, seed by seed."""
    return [
        Run(world, coupling, size, seed, horizon[world])
        for seed in range(n_seeds)
        for world in sizes
        for size in sizes[world]
        for coupling in COUPLINGS
    ]


STUDY = Study(
    name="worlds",
    summary="trajectories needed in the combination lock and the multi-maze",
    module="studies.worlds.run",
    runs=lambda args: sweep(SIZES, args.seeds, HORIZON),
    seeds=SEEDS,
    full_seeds=FULL_SEEDS,
    examples=("--workers 2", "--full --workers 2 --out results/worlds-full"),
)
