"""Rows to tables: one line per technique, one column per number of walkers or of trajectories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import estimate, grouped
from studies.pixels.spec import NAMES

__all__ = ["cells", "format_table", "label", "report", "states_right", "table_json"]

SETTINGS = ("technique", "bounds", "size", "walkers", "n")
Cell = dict[str, Any]


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy, probe and states of each technique."""
    write_json(out / "table.json", table_json(rows))
    return format_table(rows)


def states_right(row: Row) -> int:
    """At how many of the steps 2..H the number of states found is the true one."""
    return sum(a == b for a, b in zip(row["n_states"][1:], row["n_states_true"][1:]))


def label(technique: str, bounds: str) -> str:
    """What a technique is called, with the bounds where CRAFT chose them itself."""
    return NAMES[technique] + (", bounds chosen from the data" if bounds == "auto" else "")


def cells(rows: Sequence[Row]) -> list[Cell]:
    """Means over seeds for each technique, kind of bounds, size of the grid, number of walkers and of trajectories."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, SETTINGS).items()]


def _cell(settings: Cell, mine: Sequence[Row]) -> Cell:
    e = estimate([r["accuracy"] for r in mine])
    return {
        **settings,
        "seeds": e.n,
        "accuracy": e.mean,
        "interval": [e.low, e.high],
        "accuracies": [r["accuracy"] for r in mine],
        "probe": _mean(mine, "probe"),
        "steps": len(mine[0]["n_states"]) - 1,
        "steps_with_right_number_of_states": sum(map(states_right, mine)) / e.n,
        "loss": _mean(mine, "loss"),
        "table_loss": _mean(mine, "table_loss"),
        "rates": [r["lr"] for r in mine if "lr" in r],
        "seconds": _mean(mine, "seconds"),
    }


def _mean(rows: Sequence[Row], name: str) -> float:
    return sum(r[name] for r in rows) / len(rows)


def table_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, averaged over h = 2..H."""
    return {"cells": cells(rows)}


def format_table(rows: Sequence[Row]) -> str:
    """Accuracy in percent, then the linear probe's, then the steps with the right number of states."""
    table = cells(rows)
    columns = sorted({_column(c) for c in table})
    found = {(c["technique"], c["bounds"], *_column(c)): c for c in table}
    lines = dict.fromkeys((c["technique"], c["bounds"]) for c in table)
    width = max(len(label(*line)) for line in lines)
    head = [" " * width, *(f"{w} walkers, n={n}".rjust(22) for _, w, n in columns)]
    body = [[label(*line).ljust(width), *(_text(found.get((*line, *c))).rjust(22) for c in columns)] for line in lines]
    text = [" ".join(line) for line in [head, *body]]
    return "\n".join([*text, "", "accuracy in percent / linear probe / steps h >= 2 with the right number of states"])


def _column(cell: Cell) -> tuple[int, int, int]:
    return cell["size"], cell["walkers"], cell["n"]


def _text(cell: Cell | None) -> str:
    if cell is None:
        return ""
    right = f"{cell['steps_with_right_number_of_states']:g}/{cell['steps']}"
    return f"{100 * cell['accuracy']:.2f} / {100 * cell['probe']:.1f} / {right}"
