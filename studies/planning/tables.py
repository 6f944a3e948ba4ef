"""The tables of docs/planning-study.md: one file of rows for each command.

    python -m studies.planning.tables

prints them as Markdown, writes table.json and draws planning.png beside this file, and the picture of the larger worlds
for the docs.
"""

from __future__ import annotations

import json
from pathlib import Path

from craftrl.reproduce.folder import Row, write_json
from studies.planning.report import cells, format_report

__all__ = ["FILES", "main", "rows_of", "tables"]

HERE = Path(__file__).parent
FILES = {"the small default, and PPO": ("rows.jsonl", "ppo.jsonl"), "larger worlds": ("full.jsonl", "dqn.jsonl")}


def main() -> None:
    """Print every table and draw both pictures; table.json is that of the small default."""
    from studies.planning.picture import draw_curves

    for what, text in tables().items():
        print(f"{what}\n\n{text}\n")
    first = rows_of("rows.jsonl")
    write_json(HERE / "table.json", {"cells": cells(first)})
    draw_curves(first, HERE / "planning.png")
    draw_curves(rows_of("full.jsonl"), HERE.parents[1] / "docs" / "img" / "planning_study_full.png")


def tables() -> dict[str, str]:
    """The tables of each group of files."""
    return {what: format_report([row for name in names for row in rows_of(name)]) for what, names in FILES.items()}


def rows_of(name: str) -> list[Row]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


if __name__ == "__main__":
    main()
