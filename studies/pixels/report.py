"""Rows to tables: one line per technique, one column per number of walkers or of trajectories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import estimate, grouped
from studies.pixels.spec import NAMES

__all__ = ["cells", "format_table", "report", "states_right", "table_json"]

SETTINGS = ("technique", "walkers", "n")


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy, probe and states of each technique."""
    write_json(out / "table.json", table_json(rows))
    return format_table(rows)


def states_right(row: Row) -> int:
    """At how many of the steps 2..H the number of states found is the true one."""
    return sum(a == b for a, b in zip(row["n_states"][1:], row["n_states_true"][1:]))


def cells(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Mean over seeds for each technique, number of walkers and size."""
    table = []
    for key, mine in grouped(rows, SETTINGS).items():
        e = estimate([r["accuracy"] for r in mine])
        table.append(
            {
                **dict(zip(SETTINGS, key)),
                "seeds": e.n,
                "accuracy": e.mean,
                "interval": [e.low, e.high],
                "probe": sum(r["probe"] for r in mine) / e.n,
                "steps_with_right_number_of_states": sum(map(states_right, mine)) / e.n,
                "seconds": sum(r["seconds"] for r in mine) / e.n,
            }
        )
    return table


def table_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, averaged over h = 2..H."""
    return {"steps": len(rows[0]["n_states"]) - 1, "cells": cells(rows)}


def format_table(rows: Sequence[Row]) -> str:
    """Accuracy in percent, then the linear probe's, then the steps with the right number of states."""
    table = cells(rows)
    columns = sorted({(c["walkers"], c["n"]) for c in table})
    steps = len(rows[0]["n_states"]) - 1
    found = {(c["technique"], c["walkers"], c["n"]): c for c in table}
    width = max(len(NAMES[c["technique"]]) for c in table)
    head = " ".join([" " * width, *(f"{w} walkers, n={n}".rjust(20) for w, n in columns)])
    lines = [head]
    for technique in dict.fromkeys(c["technique"] for c in table):
        cells_ = [found.get((technique, w, n)) for w, n in columns]
        lines.append(" ".join([NAMES[technique].ljust(width), *(_text(c, steps).rjust(20) for c in cells_)]))
    return "\n".join([*lines, "", "accuracy in percent / linear probe / steps h >= 2 with the right number of states"])


def _text(cell: dict[str, Any] | None, steps: int) -> str:
    if cell is None:
        return ""
    right = f"{cell['steps_with_right_number_of_states']:g}/{steps}"
    return f"{100 * cell['accuracy']:.2f} / {100 * cell['probe']:.1f} / {right}"
