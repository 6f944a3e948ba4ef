"""The tables and pictures of docs/pixels.md: one file of rows for each question.

    python -m studies.pixels.tables

prints the tables as Markdown and draws `walkers.png` and `trajectories.png`, from whatever files of rows are there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.reproduce.folder import Row
from studies.pixels.report import cells, label

__all__ = ["QUESTIONS", "main", "markdown", "rates_won", "read_rows"]

HERE = Path(__file__).parent
# The file of rows, what its columns vary in, and the picture that is drawn of it.
QUESTIONS: dict[str, tuple[str, str | None]] = {
    "rows.jsonl": ("walkers", "walkers.png"),
    "n.jsonl": ("n", "trajectories.png"),
    "rooms.jsonl": ("size", None),
    "small.jsonl": ("size", None),
}
HEADS = {"walkers": "{} walkers", "n": "{:,} per agent", "size": "{0}x{0} cells"}


def main() -> None:
    """Print every table, draw every picture."""
    for name, (axis, drawn) in QUESTIONS.items():
        path = HERE / name
        if not path.exists():
            print(f"{name} is not there: it has not been run.\n")
            continue
        rows = read_rows(path)
        print(f"{name}\n\n{markdown(rows, axis)}\n\n{rates_won(rows)}\n")
        if drawn is not None:
            from studies.pixels.picture import draw_study

            draw_study(rows, HERE / drawn)


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def markdown(rows: Sequence[Row], axis: str) -> str:
    """Accuracy in percent of each technique against `axis`, the linear probe's in brackets; seeds side by side."""
    table = cells(rows)
    values = sorted({c[axis] for c in table})
    found = {(c["technique"], c["bounds"], c[axis]): c for c in table}
    head = ["held-out accuracy, % (linear probe, %)", *(HEADS[axis].format(v) for v in values)]
    lines = [head, ["---"] * len(head)]
    for technique, bounds in dict.fromkeys((c["technique"], c["bounds"]) for c in table):
        mine = [found.get((technique, bounds, v)) for v in values]
        lines.append([label(technique, bounds), *map(_text, mine)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return f"{', '.join(f'{100 * a:.1f}' for a in cell['accuracies'])} ({100 * cell['probe']:.0f})"


def rates_won(rows: Sequence[Row]) -> str:
    """Which learning rate each rival was best with, by its own held-out loss, in the order of the rows."""
    won: dict[str, list[str]] = {}
    for row in rows:
        if "lr" in row:
            won.setdefault(label(row["technique"], ""), []).append(f"{row['lr']:g}")
    return "Learning rates that won: " + "; ".join(f"{name} {', '.join(rates)}" for name, rates in won.items()) + "."


if __name__ == "__main__":
    main()
