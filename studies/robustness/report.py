"""Rows to tables: what each violation costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.data.files import write_json
from craftrl.paper.sweep import Estimate, Row, estimate
from studies.robustness import distractor
from studies.robustness.notice import (
    format_noticed,
    format_predictions,
    format_verdicts,
    is_right,
    noticed,
    predictions,
    verdicts,
)
from studies.statistics import grouped, half_of

__all__ = ["Cell", "cells", "format_cells", "report"]

SETTINGS = ("world", "violation", "size", "n", "learner")
MEANS = ("chance", "state_mean", "state_worst", "warned")


@dataclass(frozen=True)
class Cell:
    """One learner on one kind of dataset: estimates over seeds.

    chance       accuracy of an encoder drawn at random (bits), or of naming the commonest state (lock)
    state_mean   accuracy with every state of a step weighing the same
    state_worst  accuracy of the worst state of all steps
    right        share of the models with a worst state of at least GOOD
    warned       share of the models of which `fit` warned
    """

    world: str
    violation: str
    size: float
    n: int
    learner: str
    accuracy: Estimate
    chance: float
    state_mean: float
    state_worst: float
    right: float
    warned: float


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write tables.json; what violations cost, what diagnostics foretell, and what the residual test sees."""
    table, foretold, judged, seen = cells(rows), predictions(rows), verdicts(rows), noticed(rows)
    planted = distractor.planted_distractors(distractor.SIZES, args.seeds)
    tables = {"cells": [asdict(cell) for cell in table], "predictions": [asdict(p) for p in foretold]}
    write_json(out / "tables.json", {**tables, "verdicts": judged, "noticed": seen, "planted": planted})
    parts = [
        f"Encoder accuracy in percent, mean over h = 2..H, 95% interval over {args.seeds} seeds (worst state, mean)",
        format_cells(table),
        "Who notices: models of the default learner whose states are wrong, and right",
        format_noticed(seen),
        f"What the diagnostics foretell, over {sum('score' in row for row in rows):,} models",
        format_predictions(foretold),
        format_verdicts(judged),
        "States that follow the frozen distractor, planted: can the residual test see them?",
        distractor.format_planted(planted),
    ]
    return "\n\n".join(parts)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell per dataset kind and learner, in the order of the rows."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, SETTINGS).items()]


def _cell(settings: dict[str, Any], rows: Sequence[Row]) -> Cell:
    means: dict[str, Any] = {name: float(np.mean([row[name] for row in rows])) for name in MEANS}
    right = float(np.mean([is_right(row) for row in rows]))
    return Cell(**settings, accuracy=estimate([row["accuracy"] for row in rows]), right=right, **means)


def format_cells(table: Sequence[Cell]) -> str:
    """Accuracy in percent, one line per dataset kind, one column per learner."""
    learners = list(dict.fromkeys(cell.learner for cell in table))
    lines: dict[tuple[Any, ...], dict[str, str]] = {}
    for cell in table:
        a = cell.accuracy
        text = f"{100 * a.mean:5.1f} ± {100 * half_of(a):4.1f} ({100 * cell.state_worst:3.0f})"
        lines.setdefault((cell.world, cell.violation, cell.size, cell.n, cell.chance), {})[cell.learner] = text
    head = f"{'world':8} {'violation':13} {'size':>5} {'n':>6} {'chance':>7}  "
    body = [
        f"{world:8} {violation:13} {size:5g} {n:6,} {100 * chance:7.1f}  "
        + "  ".join(f"{texts.get(name, ''):^18}" for name in learners)
        for (world, violation, size, n, chance), texts in lines.items()
    ]
    return "\n".join(line.rstrip() for line in [head + "  ".join(f"{name:^18}" for name in learners), *body])
