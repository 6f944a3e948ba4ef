"""Rows to tables: one line per technique, one column per number of walkers or of trajectories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.cells import ONE_STATE, Cell, cell
from studies.pixels.spec import NAMES
from studies.statistics import grouped

__all__ = ["cells", "format_table", "label", "report", "table_json"]

READING = "accuracy in percent / worst state / linear probe / steps h >= 2 with the right number of states"
SETTINGS = ("technique", "bounds", "size", "walkers", "n")


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy, probe and states of each technique."""
    write_json(out / "table.json", table_json(rows))
    return format_table(rows)


def label(technique: str, bounds: str) -> str:
    """What a technique is called, with the bounds where CRAFT chose them itself."""
    return NAMES[technique] + (", bounds chosen from the data" if bounds == "auto" else "")


def cells(rows: Sequence[Row]) -> list[Cell]:
    """Means over seeds for each technique, kind of bounds, size of the grid, number of walkers and of trajectories."""
    return [cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, SETTINGS).items()]


def table_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, averaged over h = 2..H."""
    return {"cells": cells(rows)}


def format_table(rows: Sequence[Row]) -> str:
    """A line for each technique, one for naming one state everywhere, a column for each world."""
    table = cells(rows)
    columns = sorted({_column(c) for c in table})
    found = {(c["technique"], c["bounds"], *_column(c)): c for c in table}
    lines = dict.fromkeys((c["technique"], c["bounds"]) for c in table)
    width = max(len(ONE_STATE), *(len(label(*line)) for line in lines))
    head = [" " * width, *(f"{w} walkers, n={n}".rjust(30) for _, w, n in columns)]
    body = [[label(*line).ljust(width), *(_text(found.get((*line, *c))).rjust(30) for c in columns)] for line in lines]
    chance = [ONE_STATE.ljust(width), *(f"{_chance(table, c):.2f}".rjust(30) for c in columns)]
    text = [" ".join(line) for line in [head, *body, chance]]
    return "\n".join([*text, "", READING])


def _chance(table: Sequence[Cell], column: tuple[int, int, int]) -> float:
    mine = [c["one_state"] for c in table if _column(c) == column]
    return 100 * sum(mine) / len(mine)


def _column(cell: Cell) -> tuple[int, int, int]:
    return cell["size"], cell["walkers"], cell["n"]


def _text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    right = f"{cell['steps_with_right_number_of_states']:g}/{cell['steps']}"
    return f"{100 * cell['accuracy']:.2f} / {100 * cell['state_worst']:.1f} / {100 * cell['probe']:.1f} / {right}"
