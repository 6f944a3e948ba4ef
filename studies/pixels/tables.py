"""The tables of docs/pixels.md: one file of rows for each question.

    python -m studies.pixels.tables

prints them as Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from craftrl.paper.sweep import Row
from studies.cells import HEAD, ONE_STATE, markdown_table, one_state, text
from studies.pixels.report import cells, label

__all__ = ["QUESTIONS", "main", "markdown", "rates_won", "read_rows"]

HERE = Path(__file__).parent
QUESTIONS = {"rows.jsonl": "walkers", "n.jsonl": "n", "rooms.jsonl": "size", "small.jsonl": "size"}  # file, columns
HEADS = {"walkers": "{} walkers", "n": "{:,} per agent", "size": "{0}x{0} cells"}


def main() -> None:
    """Print every table."""
    for name, axis in QUESTIONS.items():
        rows = read_rows(HERE / name)
        print(f"{name}\n\n{markdown(rows, axis)}\n\n{rates_won(rows)}\n")


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def markdown(rows: Sequence[Row], axis: str) -> str:
    """One line for each technique against `axis`; the last line says what knowing nothing scores."""
    table = cells(rows)
    values = sorted({c[axis] for c in table})
    found = {(c["technique"], c["bounds"], c[axis]): c for c in table}
    kinds = dict.fromkeys((c["technique"], c["bounds"]) for c in table)
    lines = [[label(*kind), *(text(found.get((*kind, v))) for v in values)] for kind in kinds]
    lines.append([ONE_STATE, *(one_state([c for c in table if c[axis] == v]) for v in values)])
    return markdown_table([HEAD, *(HEADS[axis].format(v) for v in values)], lines)


def rates_won(rows: Sequence[Row]) -> str:
    """Which learning rate each rival was best with, by its own held-out loss, in the order of the rows."""
    won: dict[str, list[str]] = {}
    for row in rows:
        if "lr" in row:
            won.setdefault(label(row["technique"], ""), []).append(f"{row['lr']:g}")
    return "Learning rates that won: " + "; ".join(f"{name} {', '.join(rates)}" for name, rates in won.items()) + "."


if __name__ == "__main__":
    main()
