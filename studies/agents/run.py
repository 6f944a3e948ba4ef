"""Two to six agents at a fixed total number of trajectories.

Paper: Section 2.3 ("straightforwardly generalized to support more agents")
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from craftrl import CRAFT, CoordinateOracle
from craftrl.envs import BitsExBMDP, MarkovPolicy, collect
from craftrl.evaluation import population_summary
from craftrl.paper.sweep import Row, seed_of
from craftrl.paper.table1 import toy_chance
from studies.exact import true_bounds
from studies.study import Study
from studies.tables import draw_curves, percent, table, worst
from studies.worlds.turn_taking import turn_taking_policies

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


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, that of single states, what was found on the way, and the bounds that CRAFT was given.

    The bounds are the population values of these very agents, unless they are left to CRAFT. Two agents that take
    turns have alpha = 0, which CRAFT cannot be given: they get the bounds of three.
    """
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    agents, bounds = agents_of(run.kind, world, run.n_agents), {}
    if run.factor != "auto":
        n_agents = max(run.n_agents, 3) if run.kind == "turns" else run.n_agents
        bounds = true_bounds(world, agents_of(run.kind, world, n_agents))
        bounds["alpha"] *= run.factor
    seed = seed_of("agents", run.kind, run.n_agents, run.total, run.horizon, run.n_features, run.seed)
    tau = collect(world, agents, run.total // run.n_agents, seed=seed).tau
    model = CRAFT(CoordinateOracle(), **bounds, coupling=run.coupling, relabel=False).fit(tau)
    return {
        **population_summary(lambda h: [model.encoders_[h]], world),
        "right_counts": float(np.mean([step.n_states == 2 for step in model.trace_.steps])),
        "assigned": model.trace_.steps[-1].assigned,
        **vars(model.bounds_),
    }


def agents_of(kind: str, world: BitsExBMDP, n_agents: int) -> Sequence[MarkovPolicy]:
    """Agents that take turns, or that repeat the state with log-odds spread evenly from 0 to ln 3.

    Log-odds are against agent 0. If it is the least persistent, some other agent is alpha away from it; if it is in
    the middle, none may be more than alpha/2 away, although two of the others are alpha apart.
    """
    if kind == "turns":
        return turn_taking_policies(world, n_agents)
    stays = list(expit(np.linspace(0, math.log(3), n_agents)))
    if kind == "middle":
        stays.insert(0, stays.pop(n_agents // 2))
    return [world.persistence_policy(stay) for stay in stays]


def report(rows: list[Row]) -> str:
    """A line for each kind of agents, number of trajectories and way to fit."""
    head = f"Accuracy / worst state (its mean over seeds), %. A random feature scores {percent(toy_chance(rows))}%."
    return f"{head}\n\n{table(rows, 'kind total coupling factor', 'n_agents', worst)}"


def draw(rows: list[Row], out: Path) -> None:
    chance = dict.fromkeys(KINDS.values(), toy_chance(rows))
    draw_curves(
        [row for row in rows if row["factor"] == 1 and row["coupling"] == "chain"],
        out / "agents.png",
        lambda r: KINDS[r["kind"]],
        lambda r: f"{r['total']:,} trajectories in all, chain",
        "n_agents",
        "number of agents",
        chance,
    )


STUDY = Study("agents", runs, run_one, report, 3, 20, " and all totals", draw)
