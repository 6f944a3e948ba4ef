"""Rows to a table: accuracy, states and losses of each technique in each world; and the tables of the README.

    python -m studies.games.report

writes the tables of the README anew from the committed rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.cells import cells, fill_in, markdown, read_rows
from studies.games.spec import NAMES
from studies.statistics import grouped

__all__ = ["HERE", "QUESTIONS", "SETTINGS", "format_table", "report", "tables"]

HERE = Path(__file__).parent
SETTINGS = ("world", "cut", "technique")
QUESTIONS = {"rows.jsonl": ("world",), "cuts.jsonl": ("world", "cut")}  # file of rows, and what its columns are


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; the table as Markdown, and what each technique lost."""
    write_json(out / "table.json", {"cells": cells(rows, SETTINGS)})
    return format_table(rows)


def format_table(rows: Sequence[Row]) -> str:
    """A column for each world; then losses in nats beside that of the true states, for each world."""
    cut = len({row["cut"] for row in rows}) > 1
    blocks = [markdown(rows, ("world", "cut") if cut else ("world",), NAMES)]
    for (world, _), mine in grouped(rows, ("world", "cut")).items():
        table = cells(mine, SETTINGS)
        losses = "; ".join(f"{NAMES[c['technique']]} {c['loss']:.3f}" for c in table)
        steps = ", ".join(map(str, mine[0]["n_states_true"]))
        blocks.append(f"{world}: true states {steps}; loss of their table {table[0]['table_loss']:.3f} nats; {losses}")
    return "\n\n".join(blocks)


def tables() -> dict[str, str]:
    """The tables of the committed rows, by the name of their file."""
    return {name: markdown(read_rows(HERE / name), axes, NAMES) for name, axes in QUESTIONS.items()}


if __name__ == "__main__":
    (HERE / "README.md").write_text(fill_in((HERE / "README.md").read_text(), tables()))
