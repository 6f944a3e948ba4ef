"""Rows to table: our means with intervals, beside the paper's.

Paper: Table 1
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import Estimate, estimate, standard_errors_apart
from craftrl.reproduce.table1.spec import NAMES, PAPER_SEEDS, Published, Run, published

__all__ = ["READING", "Cell", "agreement", "cells", "format_table", "report", "table_json"]

READING = (
    "Accuracy is averaged over h = 1..H. At h = 1 there is one state: every technique is right there, as CRAFT's "
    "constant encoder is. Leaving h = 1 out lowers the baselines by about one point."
)


@dataclass(frozen=True)
class Cell:
    """One technique at one size: our estimate, the paper's number, and how far they are apart.

    standard_errors  ours minus the paper's, in standard errors of that difference; 0 where a bound holds
    """

    technique: str
    size: int
    ours: Estimate
    without_h1: Estimate
    paper: Published | None
    standard_errors: float | None


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; the table beside the paper's, and how far they agree."""
    table = cells(rows)
    world = f"--horizon {args.horizon} --features {args.features}"
    command = f"craftrl reproduce table1 --seeds {args.seeds} --sizes {' '.join(map(str, args.sizes))} {world}"
    write_json(out / "table.json", table_json(table, command))
    title = f"Average encoder accuracy in percent, H = {args.horizon}, M = {args.features}, {args.seeds} seeds"
    return f"{title}\n\n{format_table(table)}\n\n{agreement(table)}\n{READING}"


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell per technique and size, in the table's order."""
    sizes = sorted({row["size"] for row in rows})
    return [_cell(technique, size, rows) for technique in NAMES for size in sizes]


def _cell(technique: str, size: int, rows: Sequence[Row]) -> Cell:
    mine = [row for row in rows if row["technique"] == technique and row["size"] == size]
    ours = estimate([row["accuracy"] for row in mine])
    without_h1 = estimate([row["accuracy_from_2"] for row in mine])
    paper = published(Run(technique, size, 0, mine[0]["horizon"], mine[0]["n_features"]))
    return Cell(technique, size, ours, without_h1, paper, _apart(ours, paper))


def _apart(ours: Estimate, paper: Published | None) -> float | None:
    if paper is None:
        return None
    if paper.is_bound and ours.mean > paper.accuracy:
        return 0.0
    return standard_errors_apart(ours, paper.accuracy, PAPER_SEEDS)


def table_json(table: Sequence[Cell], command: str) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, not percent."""
    return {
        "command": command,
        "reading": READING,
        "cells": [
            {
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
            }
            for cell in table
        ],
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


def format_table(table: Sequence[Cell]) -> str:
    """Aligned text: one line per technique, one column per size."""
    sizes = list(dict.fromkeys(cell.size for cell in table))
    grid = {(cell.technique, cell.size): _text(cell) for cell in table}
    width = max(len(text) for text in grid.values())
    head = " ".join(["trajectories per agent".ljust(22), *(str(size).center(width) for size in sizes)])
    unit = " ".join([" " * 22, *("ours [95% interval] paper".center(width) for _ in sizes)])
    lines = [" ".join([NAMES[t].ljust(22), *(grid[t, size].ljust(width) for size in sizes)]) for t in NAMES]
    return "\n".join([head.rstrip(), unit.rstrip(), *(line.rstrip() for line in lines)])


def _text(cell: Cell) -> str:
    ours = cell.ours
    interval = f"[{100 * ours.low:6.2f}, {100 * ours.high:6.2f}]" if ours.n > 1 else " " * 16
    return f"{100 * ours.mean:6.2f} {interval} {cell.paper or ''!s:>5}  "
