"""Wrong models that say nothing, right ones that are not trusted."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl import CRAFT, TrajectoryDataset
from craftrl.core.relabelling import best_matching
from craftrl.envs import Collection
from craftrl.evaluation import confusion
from craftrl.paper.sweep import Row
from studies.exact import fitted_aloud, true_bounds
from studies.loud.cases import CLEAN, Case, draw_case
from studies.study import Study
from studies.tables import pick, table

SIZES = ("about 1000", "200", "about 3000", "4000:200", "10000:200")
CLASSES = ("coordinates", "functions")
FIRST = {"development": 300_000, "fresh": 900_000}  # the first number of a case
LOOKED_AT = 3  # of so many seeds one is of a development world


@dataclass(frozen=True)
class Run:
    """One random world, one fit, one diagnosis.

    worlds       "development": of those on which tests and levels were chosen; "fresh": never looked at before
    encoders     the class: "coordinates", or a list of "functions"
    bounds       "chosen" from the data, or "known": those of the unbroken world
    size         trajectories of the agents (`cases.draw_case`)
    n_resamples  refits for the diagnosis
    """

    worlds: str
    encoders: str
    bounds: str
    size: str
    seed: int
    n_resamples: int = 8


def runs(args: argparse.Namespace) -> list[Run]:
    """Every third model gets the true bounds, sizes take turns, and both classes see the same data."""
    return [
        Run(worlds, encoders, "known" if i % 3 == 2 else "chosen", SIZES[i % len(SIZES)], first + i)
        for worlds, first in FIRST.items()
        for i in range(args.seeds if worlds == "fresh" else -(-args.seeds // LOOKED_AT))
        for encoders in CLASSES
    ]


GOOD = 0.95  # of every state's observations read right
GROUPS = ("wrong", "too few states", "right, broken", "right")
SEEN = ("leaks", "corrupted")  # violations of Equation 1, or of the block assumption: worth a warning by themselves

FRESH = 1500  # trajectories per agent on which states are compared with the truth
MIN_VISITS = 0.01  # of them, the share that must visit a state for it to count


def run_one(run: Run) -> dict[str, Any]:
    """What kind of world it was, how right the model is, what `fit` warned of, and what `diagnose` says.

    worst_state  of all states that are visited, the least share that the encoders read right
    worst_named  the same if only codes count that stand for a state that was found
    known_state, known_named  the same with the bounds of the unbroken world on the same data, for comparison; None
                 for lists of functions, and where bounds were known anyway or something is broken
    warned       whether `fit` warned; told: what of
    """
    case = draw_case(run.seed, run.size)
    tau, fresh = case.data().tau, case.fresh(FRESH)
    model = CRAFT(case.oracle(run.encoders), **({} if run.bounds == "chosen" else _bounds(case)))
    told = fitted_aloud(model, tau)
    found = model.diagnose(tau, n_resamples=run.n_resamples, seed=run.seed)
    return {
        "kind": case.kind,
        "agents": tau.K,
        "states": int(max(case.world.n_states(h) for h in range(1, tau.H + 1))),
        "sizes": list(case.sizes),
        "alpha": case.alpha,
        "violation": case.violation,
        "extent": case.size,
        "worst_state": worst_state(model, fresh, named=False),
        "worst_named": worst_state(model, fresh, named=True),
        **_beside_known(run, case, tau, fresh),
        **told,
        "verdict": found.verdict,
        "score": found.score,
        "n_warnings": len(found.warnings),
    }


def _beside_known(run: Run, case: Case, tau: TrajectoryDataset, fresh: Collection) -> dict[str, float | None]:
    if run.bounds == "known" or run.encoders != "coordinates" or case.violation != CLEAN:
        return {"known_state": None, "known_named": None}
    model = CRAFT(case.oracle(run.encoders), **_bounds(case))
    fitted_aloud(model, tau)
    return {"known_state": worst_state(model, fresh, named=False), "known_named": worst_state(model, fresh, named=True)}


def _bounds(case: Case) -> dict[str, Any]:
    """Those of the unbroken world, with eta for as many trajectories as each agent has."""
    known = true_bounds(case.world, case.agents)
    odds = known["eta"] / (1 - known["eta"]) * min(case.sizes) / max(case.sizes)
    return known | {"eta": odds / (1 + odds)}


def worst_state(model: CRAFT, fresh: Collection, named: bool) -> float:
    """The least share of a state's observations that are read right, over all steps and all states that are visited."""
    worst = 1.0
    for h in range(2, fresh.tau.H + 1):
        code, state = model.encode(fresh.tau.at(h), h), fresh.truth.states[:, h - 1]
        if named:
            code = np.where(code < model.n_states_[h], code, -1)
        table, visits = confusion(code, state), np.bincount(state)
        right = np.zeros(len(visits))
        for label, s in best_matching(table).items():
            right[s] = table[label, s]
        counted = visits >= MIN_VISITS * len(state)
        worst = min(worst, float((right[counted] / visits[counted]).min()))
    return worst


def group_of(row: Row) -> str:
    """wrong: the encoders misread some state. too few states: they read all, but CRAFT found fewer than they read.

    right, broken: right in a world whose policies see the noise, or whose frames are swapped.
    """
    if row["worst_state"] < GOOD:
        return "wrong"
    if row["worst_named"] < GOOD:
        return "too few states"
    return "right, broken" if row["violation"] in SEEN else "right"


def report(rows: list[Row]) -> str:
    """Of the models of each group: how many `fit` warned of, and how many `diagnose` trusts, by what varies."""
    marked = [{**row, "group": group_of(row)} for row in rows]
    marked.sort(key=lambda row: (row["worlds"], GROUPS.index(row["group"])))
    blocks = [
        table(marked, f"worlds {what}", "group", lambda of: warnings_and_trust(of).replace(" | ", ", "))
        for what in ("encoders", "kind", "bounds", "agents", "size", "violation")
    ]
    beside = [{**row, "balance": round(max(row["sizes"]) / min(row["sizes"]))} for row in pick(rows, violation=CLEAN)]
    names = {"worst_state": "chosen: read", "worst_named": "and named", "known_state": "known: read"}
    names |= {"known_named": "known: and named"}

    def good(of: Sequence[Row]) -> str:
        return " | ".join([str(len(of)), *(str(sum(row[name] >= GOOD for row in of)) for name in names)])

    both = [row for row in beside if row["known_state"] is not None]
    return "\n\n".join(
        [
            "Models: in all, warned of by `fit`, trusted by `diagnose`.",
            *blocks,
            "Unbroken worlds: models that read and name every state, with chosen and with known bounds, by how many "
            "trajectories the agent with the most has for one of that with the least.",
            table(both, "balance", "", good, ("models", *names.values())),
        ]
    )


def warnings_and_trust(rows: Sequence[Row]) -> str:
    """Models, those that `fit` warned of, those that `diagnose` trusts."""
    return f"{len(rows)} | {sum(row['warned'] for row in rows)} | {len(pick(rows, verdict='trust'))}"


STUDY = Study("loud", runs, run_one, report, 10, 150)
