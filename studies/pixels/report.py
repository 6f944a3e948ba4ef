"""Rows to a table: one line per technique, one column per world; and the tables of the README.

    python -m studies.pixels.report

writes the tables of the README anew from the committed rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.cells import cells, fill_in, markdown, read_rows
from studies.pixels.spec import NAMES

__all__ = ["HERE", "QUESTIONS", "SETTINGS", "format_table", "rates_won", "report", "tables"]

HERE = Path(__file__).parent
AXES = ("size", "walkers", "n", "cut")
SETTINGS = ("technique", *AXES)
QUESTIONS = {
    "rows.jsonl": ("walkers",),
    "few.jsonl": ("n",),
    "n.jsonl": ("n",),
    "rooms.jsonl": ("size",),
    "cuts.jsonl": ("size", "cut"),
    "small.jsonl": ("size",),
}  # file of rows, and what its columns are


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; the table as Markdown."""
    write_json(out / "table.json", {"cells": cells(rows, SETTINGS)})
    return f"{format_table(rows)}\n\n{rates_won(rows)}".strip()


def format_table(rows: Sequence[Row]) -> str:
    """A column for each world of these rows."""
    axes = [axis for axis in AXES if len({row[axis] for row in rows}) > 1]
    return markdown(rows, axes or ["walkers"], NAMES)


def rates_won(rows: Sequence[Row]) -> str:
    """Which learning rate each rival was best with, by its own held-out loss, in the order of the rows."""
    won: dict[str, list[str]] = {}
    for row in rows:
        if "lr" in row:
            won.setdefault(NAMES[row["technique"]], []).append(f"{row['lr']:g}")
    told = "; ".join(f"{name} {', '.join(rates)}" for name, rates in won.items())
    return f"Learning rates that won: {told}." if won else ""


def tables() -> dict[str, str]:
    """The tables of the committed rows, by the name of their file."""
    return {name: markdown(read_rows(HERE / name), axes, NAMES) for name, axes in QUESTIONS.items()}


if __name__ == "__main__":
    (HERE / "README.md").write_text(fill_in((HERE / "README.md").read_text(), tables()))
