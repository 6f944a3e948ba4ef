"""Rows to a table: one line for each part, one column for each way to cut the data.

    python -m studies.ablations.report

writes the table of the README anew from the committed rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.ablations.spec import CUTS, NAMES
from studies.cells import READING, Cell, cells, fill_in, markdown_table, read_rows, text

__all__ = ["HERE", "format_table", "report", "tables"]

HERE = Path(__file__).parent
HEADS = {"whole": "whole trajectories, one start", "clips": "clips from anywhere"}


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; the table as Markdown."""
    write_json(out / "table.json", {"cells": cells(rows, ("part", "cut"))})
    return format_table(rows)


def format_table(rows: Sequence[Row]) -> str:
    """Accuracy and states, how far the log-odds are from those of the true states, and seconds."""
    table = {(c["part"], c["cut"]): c for c in cells(rows, ("part", "cut"))}
    cuts = [cut for cut in CUTS if any(cut == key[1] for key in table)]
    head = [READING]
    for cut in cuts:
        head += [HEADS[cut], "nats above the true states' log-odds", "seconds"]
    lines = [
        [NAMES[part], *(entry for cut in cuts for entry in _entries(table.get((part, cut))))]
        for part in NAMES
        if any(part == key[0] for key in table)
    ]
    return markdown_table(head, lines)


def _entries(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None:
        return "-", "-", "-"
    return text(cell), f"{cell['loss'] - cell['table_loss']:.4f}", f"{cell['seconds']:.0f}"


def tables() -> dict[str, str]:
    """The table of the committed rows, by the name of their file."""
    return {"rows.jsonl": format_table(read_rows(HERE / "rows.jsonl"))}


if __name__ == "__main__":
    (HERE / "README.md").write_text(fill_in((HERE / "README.md").read_text(), tables()))
