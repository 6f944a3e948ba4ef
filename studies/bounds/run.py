"""One run: every choice of bounds on one dataset; and the tables of all runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from craftrl import CRAFT, CoordinateOracle
from craftrl.core.craft import Bounds, craft
from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import population_summary
from craftrl.paper.sweep import Row, seed_of
from craftrl.paper.table1 import toy_chance
from studies.bounds.spec import AGENTS, COUPLINGS, GRID, Run
from studies.exact import true_bounds
from studies.tables import grouped, markdown, mean, mean_text, percent, pivot, unfolded

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
    """True and chosen bounds beside the worst, median and best of the grid; then the whole grid of one setting."""
    cells = unfolded(unfolded(rows, "coupling", *MEASURES), "choice", *MEASURES)
    lines = []
    for (agents, size, coupling), mine in grouped(cells, "agents", "size", "coupling").items():
        of = {choice: group for (choice,), group in grouped(mine, "choice").items()}
        wrong = sorted(mean(group, "accuracy") for choice, group in of.items() if " x " in choice)
        less = [a["accuracy"] - t["accuracy"] for a, t in zip(of["auto"], of["true"])]
        lines.append(
            [
                f"{agents}, {size:,}, {coupling}",
                *(mean_text([row["accuracy"] for row in of[choice]]) for choice in ("true", "auto")),
                mean_text(less, -1.0),
                ", ".join(percent(wrong[i]) for i in (0, len(wrong) // 2, -1)),
                " / ".join(percent(mean(of[choice], "state_worst")) for choice in ("true", "auto")),
            ]
        )
    head = ["agents, n, coupling", "true bounds", "chosen", "chosen less true", "off by 2: worst, median, best"]
    summary = markdown([*head, "worst state (its mean over seeds): true / chosen"], lines)
    chance = ", ".join(f"{percent(toy_chance(mine))} ({agents})" for (agents,), mine in grouped(rows, "agents").items())
    names = {grid_name(factors): factors for factors in GRID}
    grids = [
        f"**Bounds off by a factor; paper's agents, independent, {size:,} per agent.**\n\n"
        + pivot(
            [
                r
                for r in cells
                if (r["agents"], r["coupling"], r["size"]) == ("paper", "independent", size) and r["choice"] in names
            ],
            "alpha, eta",
            lambda r: "x {:g}, x {:g}".format(*names[r["choice"]]),
            lambda r: "nu x {2:g}".format(*names[r["choice"]]),
            lambda of: mean_text([row["accuracy"] for row in of]),
        )
        for size in dict.fromkeys(row["size"] for row in rows)
    ]
    return "\n\n".join(["Accuracy, %.", summary, f"A random feature scores {chance}%.", *grids])
