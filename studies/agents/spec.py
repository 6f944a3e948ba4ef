"""Which runs show what more agents are worth at the same total number of trajectories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from studies.study import Later, Study

__all__ = [
    "AGENTS",
    "AUTO_AGENTS",
    "COUPLINGS",
    "FEATURES",
    "FINE_TOTALS",
    "FULL_SEEDS",
    "FULL_TOTALS",
    "HORIZON",
    "KINDS",
    "SEEDS",
    "STUDY",
    "TOTALS",
    "Run",
    "sweep",
]

KINDS = {
    "turns": "agents that take turns",
    "extreme": "persistent agents, the least one as reference",
    "middle": "the same, the middle one as reference",
}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
AGENTS = (2, 3, 4, 6)
TOTALS, FULL_TOTALS = (1200, 4800), (600, 1200, 2400, 4800)
FINE_TOTALS = (1200, 4800)  # where alpha/2 is tried as well, and "auto" for AUTO_AGENTS
AUTO_AGENTS = 3
HORIZON, FEATURES = 12, 16
SEEDS, FULL_SEEDS = 3, 20


@dataclass(frozen=True)
class Run:
    """One fit: which agents, how many, how many trajectories they have together.

    factor  what the true alpha is multiplied by before CRAFT gets it; "auto": all bounds are chosen from the data
    """

    kind: str
    n_agents: int
    total: int
    coupling: Literal["independent", "chain"]
    factor: float | Literal["auto"]
    seed: int
    horizon: int
    n_features: int


def sweep(
    totals: Iterable[int],
    n_seeds: int,
    agents: Iterable[int] = AGENTS,
    horizon: int = HORIZON,
    features: int = FEATURES,
) -> list[Run]:
    """All kinds and numbers of agents with all totals, at some of them with other bounds as well."""
    return [
        Run(kind, n_agents, total, coupling, factor, seed, horizon, features)
        for seed in range(n_seeds)
        for kind in KINDS
        for n_agents in agents
        for total in totals
        for coupling in COUPLINGS
        for factor in _factors(n_agents, total)
    ]


def _factors(n_agents: int, total: int) -> tuple[float | Literal["auto"], ...]:
    if total not in FINE_TOTALS:
        return (1.0,)
    return (1.0, 0.5, "auto") if n_agents == AUTO_AGENTS else (1.0, 0.5)


STUDY = Study(
    name="agents",
    summary="two to six agents at a fixed total number of trajectories",
    seeds=SEEDS,
    runs=lambda args: sweep(FULL_TOTALS if args.full else TOTALS, args.seeds),
    run_one=Later("studies.agents.run", "run_one"),
    report=Later("studies.agents.report", "report"),
    draw=Later("studies.agents.picture", "draw"),
    writes=("table.json", "agents.png"),
    full_seeds=FULL_SEEDS,
    full_adds=" and all totals",
    examples=("--workers 2", "--full --workers 2 --out results/agents-full"),
)
