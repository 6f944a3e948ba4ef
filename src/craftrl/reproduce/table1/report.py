"""Rows to table: our means with intervals, beside the paper's.

Paper: Table 1
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from craftrl.reproduce.chance import CHANCE, toy_chance
from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import Estimate, estimate, estimate_of, standard_errors_apart
from craftrl.reproduce.table1.spec import NAMES, PAPER_SEEDS, Published, Run, published

__all__ = ["READING", "Cell", "agreement", "cells", "format_states", "format_table", "report", "table_json"]

READING = (
    "Accuracy is averaged over h = 1..H. At h = 1 there is one state: every technique is right there, as CRAFT's "
    "constant encoder is. Leaving h = 1 out lowers the baselines by about one point."
)
STATES = "Single states at h = 2..H, in percent: mean over states and steps / worst state of a run; means over seeds"
NO_STATE = "CRAFT, 50% where no state"


@dataclass(frozen=True)
class Cell:
    """One technique at one size: our estimate, the paper's number, and how far they are apart.

    standard_errors  ours minus the paper's, in standard errors of that difference; 0 where a bound holds
    state_mean       accuracy of single states, averaged over states and h = 2..H
    state_worst      accuracy in the worst state at the worst step of a run
    no_state_half    of CRAFT: the accuracy if a step at which it found no state counts as 1/2

    Rows of older versions have none of the last three.
    """

    technique: str
    size: int
    ours: Estimate
    without_h1: Estimate
    paper: Published | None
    standard_errors: float | None
    state_mean: Estimate | None
    state_worst: Estimate | None
    no_state_half: Estimate | None


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; the table beside the paper's, and how far they agree."""
    table, chance = cells(rows), toy_chance(rows)
    world = f"--horizon {args.horizon} --features {args.features}"
    command = f"craftrl reproduce table1 --seeds {args.seeds} --sizes {' '.join(map(str, args.sizes))} {world}"
    write_json(out / "table.json", table_json(table, chance, command))
    title = f"Average encoder accuracy in percent, H = {args.horizon}, M = {args.features}, {args.seeds} seeds"
    states = f"\n\n{format_states(table)}" if table[0].state_mean else ""
    return f"{title}\n\n{format_table(table, chance)}\n\n{agreement(table)}\n{READING}{states}"


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell per technique and size, in the table's order."""
    sizes = sorted({row["size"] for row in rows})
    return [_cell(technique, size, rows) for technique in NAMES for size in sizes]


def _cell(technique: str, size: int, rows: Sequence[Row]) -> Cell:
    mine = [row for row in rows if row["technique"] == technique and row["size"] == size]
    ours = estimate([row["accuracy"] for row in mine])
    without_h1 = estimate([row["accuracy_from_2"] for row in mine])
    paper = published(Run(technique, size, 0, mine[0]["horizon"], mine[0]["n_features"]))
    single = (estimate_of(mine, name) for name in ("state_mean", "state_worst", "accuracy_no_state_half"))
    return Cell(technique, size, ours, without_h1, paper, _apart(ours, paper), *single)


def _apart(ours: Estimate, paper: Published | None) -> float | None:
    if paper is None:
        return None
    if paper.is_bound and ours.mean > paper.accuracy:
        return 0.0
    return standard_errors_apart(ours, paper.accuracy, PAPER_SEEDS)


def table_json(table: Sequence[Cell], chance: float, command: str) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, not percent."""
    return {"command": command, "reading": READING, "chance": chance, "cells": [_plain(cell) for cell in table]}


def _plain(cell: Cell) -> dict[str, Any]:
    single = {name: getattr(cell, name) for name in ("state_mean", "state_worst", "no_state_half")}
    return {
        "technique": cell.technique,
        "size": cell.size,
        "seeds": cell.ours.n,
        "mean": cell.ours.mean,
        "interval": [cell.ours.low, cell.ours.high],
        "standard_error": cell.ours.standard_error,
        "published": cell.paper.accuracy if cell.paper else None,
        "published_is_lower_bound": cell.paper.is_bound if cell.paper else None,
        "difference_in_standard_errors": cell.standard_errors,
        "mean_without_h1": cell.without_h1.mean,
        **{name: of.mean for name, of in single.items() if of},
        **{f"{name}_interval": [of.low, of.high] for name, of in single.items() if of},
    }


def agreement(table: Sequence[Cell]) -> str:
    """How many cells agree with the paper, and which do not."""
    judged = [cell for cell in table if cell.standard_errors is not None]
    if not judged:
        return "The paper has no number for these cells."
    apart = [cell for cell in judged if abs(cell.standard_errors or 0) > 2]
    names = ", ".join(f"{NAMES[cell.technique]} at {cell.size} ({cell.standard_errors:+.1f})" for cell in apart)
    text = f"{len(judged) - len(apart)} of {len(judged)} cells lie within two standard errors of the paper's"
    return f"{text}; not: {names} (docs/reproduction.md says more)." if apart else f"{text}."


def format_table(table: Sequence[Cell], chance: float) -> str:
    """Aligned text: one line per technique and one of chance, one column per size."""
    grid = {(cell.technique, cell.size): _text(cell.ours, cell.paper) for cell in table}
    grid |= {(NO_STATE, cell.size): _text(cell.no_state_half) for cell in table if cell.no_state_half}
    grid |= {(CHANCE, cell.size): f"{100 * chance:6.2f}" for cell in table}
    unit = {(" ", cell.size): "ours [95% interval] paper" for cell in table}
    return _aligned(unit | grid)


def format_states(table: Sequence[Cell]) -> str:
    """The same for single states."""
    grid = {
        (cell.technique, cell.size): f"{100 * cell.state_mean.mean:6.2f} / {100 * cell.state_worst.mean:5.2f}"
        for cell in table
        if cell.state_mean and cell.state_worst
    }
    return f"{STATES}\n\n{_aligned(grid)}"


def _aligned(grid: dict[tuple[str, int], str]) -> str:
    """Lines of cells by (line, size), under the sizes."""
    sizes, names = (list(dict.fromkeys(keys)) for keys in zip(*((size, name) for name, size in grid)))
    head, width = "trajectories per agent", max(map(len, grid.values()))
    first = max(len(head), *(len(NAMES.get(name, name)) for name in names))
    lines = [[head.ljust(first), *(str(size).center(width) for size in sizes)]]
    lines += [[NAMES.get(n, n).ljust(first), *(grid[n, size].ljust(width) for size in sizes)] for n in names]
    return "\n".join(" ".join(line).rstrip() for line in lines)


def _text(ours: Estimate, paper: Published | None = None) -> str:
    interval = f"[{100 * ours.low:6.2f}, {100 * ours.high:6.2f}]" if ours.n > 1 else " " * 16
    return f"{100 * ours.mean:6.2f} {interval} {paper or ''!s:>5}  "
