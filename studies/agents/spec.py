"""Which runs show what more agents are worth at the same total number of trajectories.

Paper: Section 2.3 ("straightforwardly generalized to support more agents")
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

from studies.study import Study

KINDS = {
    "turns": "agents that take turns",
    "extreme": "persistent agents, the least one as reference",
    "middle": "the same, the middle one as reference",
}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
AGENTS = (2, 3, 4, 6)
TOTALS, FULL_TOTALS = (1200, 4800), (600, 1200, 2400, 4800)  # with TOTALS, alpha/2 and chosen bounds are tried as well


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
    horizon: int = 12
    n_features: int = 16


def runs(args: argparse.Namespace) -> list[Run]:
    """All kinds and numbers of agents with all totals; chosen bounds with three agents alone."""
    return [
        Run(kind, n_agents, total, coupling, factor, seed)
        for seed in range(args.seeds)
        for kind in KINDS
        for n_agents in AGENTS
        for total in (FULL_TOTALS if args.full else TOTALS)
        for coupling in COUPLINGS
        for factor in ((1.0,) if total not in TOTALS else (1.0, 0.5, "auto") if n_agents == 3 else (1.0, 0.5))
    ]


STUDY = Study("agents", "two to six agents at a fixed total number of trajectories", runs, 3, 20, " and all totals")
