"""Rows to tables: accuracy with true, automatic and mis-specified bounds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Estimate, Row, estimate
from craftrl.paper.table1 import CHANCE, toy_chance
from studies.bounds.spec import AGENTS, COUPLINGS, FACTORS, grid_name
from studies.statistics import grouped, percent, plus_minus

__all__ = [
    "Cell",
    "cells",
    "cells_json",
    "chance_of_agents",
    "format_chance",
    "format_grid",
    "format_summary",
    "report",
    "worst_rows",
]


@dataclass(frozen=True)
class Cell:
    """One choice of bounds, with one coupling, for some agents and size.

    less_true    accuracy less that with the true bounds on the same data, paired seed by seed
    state_mean   accuracy of single states, averaged over states and h = 2..H; None in rows of older versions
    state_worst  accuracy in the worst state at the worst step of a run
    """

    agents: str
    size: int
    coupling: str
    choice: str
    accuracy: Estimate
    less_true: Estimate
    state_mean: Estimate | None
    state_worst: Estimate | None


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; a summary, and for each size the grid of the independent ERM."""
    table, chance = cells(rows), chance_of_agents(rows)
    write_json(out / "table.json", cells_json(table, chance))
    grids = (format_grid(table, size, "independent") for size in dict.fromkeys(cell.size for cell in table))
    title = "Accuracy in percent with 95% intervals over seeds"
    return "\n\n".join([title, format_summary(table), format_chance(chance), *grids])


def cells(rows: Sequence[Row]) -> list[Cell]:
    """All choices, in the order of the rows."""
    found = []
    for (agents, size), mine in grouped(rows, ("agents", "size")).items():
        for coupling in COUPLINGS:
            by_seed = [row["accuracy"][coupling] for row in mine]
            for choice in by_seed[0]:
                accuracy = estimate([seed[choice] for seed in by_seed])
                less_true = estimate([seed[choice] - seed["true"] for seed in by_seed], least=-1.0)
                single = (_single(mine, name, coupling, choice) for name in ("state_mean", "state_worst"))
                found.append(Cell(agents, size, coupling, choice, accuracy, less_true, *single))
    return found


def _single(rows: Sequence[Row], name: str, coupling: str, choice: str) -> Estimate | None:
    return estimate([row[name][coupling][choice] for row in rows]) if name in rows[0] else None


def chance_of_agents(rows: Sequence[Row]) -> dict[str, float]:
    """What a random feature scores in the worlds of each kind of agents: the same worlds, but not as many seeds."""
    return {agents: toy_chance(mine) for (agents,), mine in grouped(rows, ("agents",)).items()}


def format_chance(chance: dict[str, float]) -> str:
    shares = ", ".join(f"{100 * share:.2f} ({agents} agents)" for agents, share in chance.items())
    return f"{CHANCE}: {shares}"


def cells_json(table: Sequence[Cell], chance: dict[str, float]) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, not percent."""
    plain = [{name: value for name, value in asdict(cell).items() if value is not None} for cell in table]
    return {"chance": chance, "cells": plain}


def format_summary(table: Sequence[Cell]) -> str:
    """One line per agents, size and coupling: true, automatic, and the whole range of the grid."""
    head = f"{'agents':8} {'size':>5} {'coupling':12} {'true':>14} {'auto':>14} {'auto less true':>15}"
    lines = [f"{head}  grid: worst, median, best; as good as auto"]
    for agents, size, coupling in dict.fromkeys((c.agents, c.size, c.coupling) for c in table):
        mine = {c.choice: c for c in table if (c.agents, c.size, c.coupling) == (agents, size, coupling)}
        wrong = sorted(c.accuracy.mean for name, c in mine.items() if " x " in name)
        ahead = sum(mean >= mine["auto"].accuracy.mean for mean in wrong)
        true, auto, less = map(plus_minus, (mine["true"].accuracy, mine["auto"].accuracy, mine["auto"].less_true))
        worst, median, best = (f"{100 * wrong[i]:.2f}" for i in (0, len(wrong) // 2, -1))
        lines.append(
            f"{agents:8} {size:5} {coupling:12} {true:>14} {auto:>14} {less:>15}  "
            f"{worst}, {median}, {best}; {ahead} of {len(wrong)}"
        )
        lines += [f"  worst state of a run: {_worst(mine)}"] if mine["true"].state_worst else []
    return "\n".join(lines)


def _worst(cells_of: dict[str, Cell]) -> str:
    """The worst state's accuracy, for the two choices that matter most."""
    worst = {choice: cells_of[choice].state_worst for choice in ("true", "auto")}
    return ", ".join(f"{choice} {plus_minus(of).strip()}" for choice, of in worst.items() if of)


def worst_rows(table: Sequence[Cell]) -> list[str]:
    """The lines of the page's table of worst states: true bounds and chosen ones."""
    lines = []
    for agents, size, coupling in dict.fromkeys((c.agents, c.size, c.coupling) for c in table if c.state_worst):
        mine = {c.choice: c for c in table if (c.agents, c.size, c.coupling) == (agents, size, coupling)}
        of = [mine[choice].state_worst for choice in ("true", "auto")]
        shares = " | ".join(percent(worst.mean) for worst in of if worst)
        lines.append(f"| {agents} | {size} | {coupling} | {shares} |")
    return lines


def format_grid(table: Sequence[Cell], size: int, coupling: str, agents: str = next(iter(AGENTS))) -> str:
    """The whole grid at one size: a block of eta against nu for each factor of alpha."""
    mine = {c.choice: c.accuracy for c in table if (c.agents, c.size, c.coupling) == (agents, size, coupling)}
    lines = [f"{agents} agents, {size:,} per agent, {coupling}"]
    for alpha in FACTORS:
        lines.append(f"  alpha x {alpha:g}".ljust(14) + "".join(f"nu x {nu:g}".rjust(16) for nu in FACTORS))
        for eta in FACTORS:
            cells_of_row = (plus_minus(mine[grid_name((alpha, eta, nu))]).rjust(16) for nu in FACTORS)
            lines.append(f"    eta x {eta:g}".ljust(14) + "".join(cells_of_row))
    return "\n".join(lines)
