"""alpha, eta, nu: true, chosen from the data, or off by a factor of 2."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from craftrl import CRAFT, CoordinateOracle
from craftrl.core.craft import Bounds, craft
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import population_summary
from craftrl.paper.sweep import Row, seed_of
from craftrl.paper.table1 import toy_chance
from studies.exact import true_bounds
from studies.study import Study
from studies.tables import grouped, mean, percent, pick, right, table, unfolded, worst

# Pr(a = s) of agents A and B. The paper's have nearly the bounds that are tried first; the others do not.
AGENTS = {"paper": (0.5, 0.75), "subtle": (0.5, 0.64), "rare": (0.8, 0.95)}
COUPLINGS: tuple[Literal["independent", "chain"], ...] = ("independent", "chain")
GRID = tuple(product((0.5, 1.0, 2.0), repeat=3))  # what alpha, eta and nu are multiplied by
SIZES = (1000, 5000)


@dataclass(frozen=True)
class Run:
    """All choices of bounds, by both couplings, on one dataset."""

    agents: str
    size: int
    seed: int
    horizon: int = 30
    n_features: int = 128


def runs(args: argparse.Namespace) -> list[Run]:
    """All agents at all sizes, seed by seed; a quarter of the seeds for agents other than the paper's."""
    return [
        Run(agents, size, seed)
        for seed in range(args.seeds)
        for agents in AGENTS
        for size in SIZES
        if agents == "paper" or 4 * seed < args.seeds
    ]


MEASURES = ("accuracy", "state_mean", "state_worst")


def run_one(run: Run) -> dict[str, Any]:
    """Accuracy, overall and of single states, and the `chosen` bounds, by coupling and choice of bounds.

    An eta or nu that doubling would push beyond what it can be (1/2 and 1) is cut off there.
    """
    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    agents = [world.persistence_policy(stay) for stay in AGENTS[run.agents]]
    true = Bounds(**true_bounds(world, agents))
    # The paper's agents make the data of Table 1.
    study = "table1" if run.agents == "paper" else f"bounds, {run.agents}"
    seed = seed_of(study, run.horizon, run.n_features, run.size, run.seed)
    tau = collect(world, agents, run.size, seed=np.random.default_rng(seed)).tau
    oracle = CoordinateOracle().prepare(tau)
    grid = {
        grid_name(factors): Bounds(
            min(true.alpha * factors[0], 1.0),  # Line 1 cuts alpha off at 1
            min(true.eta * factors[1], 0.5),
            min(true.nu * factors[2], 1.0),
        )
        for factors in GRID
    }
    scores: dict[str, dict[str, Any]] = {measure: {} for measure in (*MEASURES, "chosen")}
    for coupling in COUPLINGS:
        auto = CRAFT(CoordinateOracle(), coupling=coupling, relabel=False).fit(tau).bounds_
        tried = {**grid, "auto": auto}
        of: dict[Bounds, dict[str, float]] = {}
        for bounds in dict.fromkeys(tried.values()):
            encoders = craft(oracle, bounds, coupling=coupling).encoders
            of[bounds] = population_summary(lambda h, of=encoders: [of[h - 1]], world)  # type: ignore[misc]
        for measure in MEASURES:
            scores[measure][coupling] = {name: of[bounds][measure] for name, bounds in tried.items()}
        scores["chosen"][coupling] = {"true": vars(true), "auto": vars(auto)}
    return scores


def grid_name(factors: tuple[float, ...]) -> str:
    """A cell of the grid in words; the true bounds are "true"."""
    off = [f"{name} x {factor:g}" for name, factor in zip(("alpha", "eta", "nu"), factors) if factor != 1]
    return " ".join(off) or "true"


def report(rows: list[Row]) -> str:
    """True and chosen bounds beside the worst of the grid; then the whole grid."""
    cells = unfolded(unfolded(rows, "coupling", *MEASURES), "choice", *MEASURES)
    names = {grid_name(factors): dict(zip(("alpha", "eta", "nu"), map("x {:g}".format, factors))) for factors in GRID}
    grid = [{**row, **names[row["choice"]]} for row in cells if row["choice"] in names]
    chance = ", ".join(f"{percent(toy_chance(mine))} ({agents})" for (agents,), mine in grouped(rows, "agents").items())
    return "\n\n".join(
        [
            f"Accuracy / worst state (its mean over seeds), %. A random feature scores {chance}%.",
            table(
                cells, "agents size coupling", "", known_and_chosen, ("true bounds", "chosen", "off by two", "seeds")
            ),
            "Accuracy with bounds off by a factor, %.",
            table(grid, "agents size coupling alpha eta", "nu", right),
        ]
    )


def known_and_chosen(rows: Sequence[Row]) -> str:
    """With true and with chosen bounds; the worst choice that is off by two; seeds."""
    off = [mean(pick(rows, choice=of), "accuracy") for of in dict.fromkeys(r["choice"] for r in rows) if " x " in of]
    true, auto = (pick(rows, choice=of) for of in ("true", "auto"))
    return " | ".join([worst(true), worst(auto), percent(min(off)), str(len(true))])


STUDY = Study("bounds", runs, run_one, report, 2, 20)
