"""Rows to table: accuracy for each number of agents at each total."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Estimate, Row, estimate
from craftrl.paper.table1 import CHANCE, toy_chance
from studies.agents.spec import COUPLINGS, KINDS
from studies.statistics import estimate_of, grouped, percent, plus_minus

__all__ = ["Cell", "cells", "cells_json", "format_cells", "report", "worst_rows"]

FACTORS: dict[float | str, str] = {1.0: "", 0.5: ", alpha x 0.5", "auto": ", auto"}
STATES = "Single states at h = 2..H, in percent: mean over states and steps / worst state of a run; means over seeds"
SETTINGS = ("kind", "n_agents", "total", "coupling", "factor")


@dataclass(frozen=True)
class Cell:
    """Means over seeds of one kind and number of agents, total, coupling and factor of alpha.

    state_mean   accuracy of single states, averaged over states and h = 2..H; None in rows of older versions
    state_worst  accuracy in the worst state at the worst step of a run
    """

    kind: str
    n_agents: int
    total: int
    coupling: str
    factor: float | str
    accuracy: Estimate
    state_mean: Estimate | None
    state_worst: Estimate | None
    right_counts: float
    assigned: float


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy for each number of agents."""
    table, chance = cells(rows), toy_chance(rows)
    write_json(out / "table.json", cells_json(table, chance))
    title = f"Accuracy in percent, 95% interval over {args.seeds} seeds, toy world"
    text = f"{title}\n\n{format_cells(table)}\n\n{CHANCE}: {100 * chance:.2f}"
    return f"{text}\n\n{STATES}\n\n{format_cells(table, _states)}" if table[0].state_mean else text


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell for each combination of settings but the seed, in the order of the rows."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, SETTINGS).items()]


def _cell(settings: dict[str, Any], rows: Sequence[Row]) -> Cell:
    accuracy, counts, assigned = (
        estimate([row[name] for row in rows]) for name in ("accuracy", "right_counts", "assigned")
    )
    return Cell(
        **settings,
        accuracy=accuracy,
        state_mean=estimate_of(rows, "state_mean"),
        state_worst=estimate_of(rows, "state_worst"),
        right_counts=counts.mean,
        assigned=assigned.mean,
    )


def cells_json(table: Sequence[Cell], chance: float) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, not percent."""
    plain = [{name: value for name, value in asdict(cell).items() if value is not None} for cell in table]
    return {"chance": chance, "cells": plain}


def worst_rows(table: Sequence[Cell]) -> list[str]:
    """The lines of the page's table of worst states: for each total and coupling one column per number of agents."""
    lines = []
    for (kind, total, coupling), mine in _by_line([c for c in table if c.factor == 1 and c.state_worst]).items():
        cells_of = " | ".join(percent(c.state_worst.mean) for c in mine if c.state_worst)
        lines.append(f"| {KINDS[kind]} | {total} | {coupling} | {cells_of} |")
    return lines


def _by_line(table: Sequence[Cell]) -> dict[tuple[str, int, str], list[Cell]]:
    found: dict[tuple[str, int, str], list[Cell]] = {}
    for cell in sorted(table, key=lambda c: c.n_agents):
        found.setdefault((cell.kind, cell.total, cell.coupling), []).append(cell)
    return found


def _accuracy(cell: Cell) -> str:
    return plus_minus(cell.accuracy)


def _states(cell: Cell) -> str:
    if cell.state_mean is None or cell.state_worst is None:
        return ""
    return f"{100 * cell.state_mean.mean:.1f} / {100 * cell.state_worst.mean:.1f}"


def format_cells(table: Sequence[Cell], text: Callable[[Cell], str] = _accuracy) -> str:
    """One block per kind of agents, one line per total and coupling, one column per number of agents."""
    numbers = sorted({cell.n_agents for cell in table})
    by_key = {(c.kind, c.total, c.coupling, c.factor, c.n_agents): c for c in table}
    blocks = []
    for kind, title in KINDS.items():
        lines = [" ".join([title.ljust(46), *(f"{k} agents".center(13) for k in numbers)]).rstrip()]
        for factor, total in sorted(
            {(c.factor, c.total) for c in table}, key=lambda pair: (list(FACTORS).index(pair[0]), pair[1])
        ):
            for coupling in COUPLINGS:
                some = [by_key.get((kind, total, coupling, factor, k)) for k in numbers]
                name = f"  {total:,} in all, {coupling}{FACTORS[factor]}"
                lines.append(
                    " ".join([name.ljust(46), *(text(cell).center(13) if cell else " " * 13 for cell in some)]).rstrip()
                )
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
