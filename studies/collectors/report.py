"""Rows to table: every collector beside its Markov twin."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.data.files import write_json
from craftrl.paper.sweep import Estimate, Row, estimate
from studies.statistics import grouped, plus_minus

__all__ = ["Cell", "cells", "format_cells", "report"]


SETTINGS = ("kind", "twin", "size", "coupling")


@dataclass(frozen=True)
class Cell:
    """Means over seeds.

    alpha        how far the agents differ in the data, in the worst state of all steps
    state_worst  accuracy of the worst state of all steps
    warned       share of the fits that warned
    """

    kind: str
    twin: bool
    size: int
    coupling: str
    accuracy: Estimate
    alpha: float
    state_worst: float
    warned: float


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy of every collector and its twin."""
    table = cells(rows)
    write_json(out / "table.json", {"cells": [asdict(cell) for cell in table]})
    return f"Accuracy in percent over h = 2..H, 95% interval over {args.seeds} seeds\n\n{format_cells(table)}"


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell for each combination of settings but the seed, in the order of the rows."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, SETTINGS).items()]


def _cell(settings: dict[str, Any], rows: Sequence[Row]) -> Cell:
    accuracy = estimate([row["accuracy"] for row in rows])
    alpha, worst, warned = (_mean(rows, name) for name in ("alpha", "state_worst", "warned"))
    return Cell(**settings, accuracy=accuracy, alpha=alpha, state_worst=worst, warned=warned)


def _mean(rows: Sequence[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def format_cells(table: Sequence[Cell]) -> str:
    """One line per collector, size and coupling: itself, then its twin."""
    twins = {(cell.kind, cell.size, cell.coupling): cell for cell in table if cell.twin}
    head = f"{'collector':10} {'n':>5} {'coupling':12} {'alpha':>6} {'accuracy':>14} {'worst':>6} {'warned':>7}"
    lines = [f"{head} {'twin':>14}"]
    for cell in (cell for cell in table if not cell.twin):
        twin = twins.get((cell.kind, cell.size, cell.coupling))
        lines.append(
            f"{cell.kind:10} {cell.size:5,} {cell.coupling:12} {cell.alpha:6.2f} {plus_minus(cell.accuracy):>14} "
            f"{100 * cell.state_worst:6.1f} {cell.warned:7.0%} {plus_minus(twin.accuracy) if twin else '':>14}".rstrip()
        )
    return "\n".join(lines)
