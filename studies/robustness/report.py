"""Rows to tables: what each violation costs, and how well each diagnostic foretells it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import Estimate, estimate, grouped
from studies.robustness import distractor
from studies.robustness.spec import CLEAN, DATA_SIZES, VIOLATION_SIZES

__all__ = [
    "DIAGNOSTICS",
    "GOOD",
    "Cell",
    "Prediction",
    "cells",
    "format_cells",
    "format_predictions",
    "format_verdicts",
    "predictions",
    "report",
    "verdicts",
]

GOOD = 0.95  # the accuracy from which a model counts as good

# Each diagnostic as a number that should grow with accuracy.
DIAGNOSTICS: dict[str, Callable[[Row], float]] = {
    "score": lambda row: row["score"],
    "stability": lambda row: row["stability"],
    "explained so far": lambda row: row["explained_so_far"],
    "least p-value": lambda row: row["least_p_value"],
    "eta test": lambda row: row["least_share_p_value"],
    "same state count": lambda row: row["same_count"],
    "assigned at H": lambda row: row["assigned"],
    "cluster gap": lambda row: row["gap"],
    "held-out gain": lambda row: row["gain"],
    "gain over best f": lambda row: row["gain"] - row["best_gain"],
}

# Among which rows a diagnostic is judged: all, one violation with its unbroken world, one world.
GROUPS = ("all", "data size", *VIOLATION_SIZES["toy"], "lock", "multimaze")


@dataclass(frozen=True)
class Cell:
    """One learner on one kind of dataset: estimates over seeds."""

    world: str
    violation: str
    size: float
    n: int
    learner: str
    accuracy: Estimate
    label_accuracy: Estimate


@dataclass(frozen=True)
class Prediction:
    """How well one diagnostic foretells accuracy among the rows of one group.

    rank_correlation  Spearman's, NaN where either does not vary
    auc               chance that a good model (accuracy of GOOD or more) beats a bad one; NaN where all are alike
    """

    diagnostic: str
    group: str
    rows: int
    rank_correlation: float
    auc: float


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write tables.json; what violations cost, what diagnostics foretell, and what the residual test sees."""
    table, foretold, judged = cells(rows), predictions(rows), verdicts(rows)
    planted = distractor.planted_distractors(distractor.SIZES, args.seeds)
    tables = {"cells": [asdict(cell) for cell in table], "predictions": [asdict(p) for p in foretold]}
    write_json(out / "tables.json", {**tables, "verdicts": judged, "planted": planted})
    parts = [
        f"Encoder accuracy in percent, mean over h = 2..H, 95% interval over {args.seeds} seeds",
        format_cells(table),
        f"What the diagnostics foretell, over {sum('score' in row for row in rows):,} models",
        format_predictions(foretold),
        format_verdicts(judged),
        "States that follow the frozen distractor, planted: can the residual test see them?",
        distractor.format_planted(planted),
    ]
    return "\n\n".join(parts)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell per dataset kind and learner, in the order of the rows."""
    return [
        Cell(*key, *(estimate([row[m] for row in mine]) for m in ("accuracy", "label_accuracy")))
        for key, mine in grouped(rows, ("world", "violation", "size", "n", "learner")).items()
    ]


def predictions(rows: Sequence[Row]) -> list[Prediction]:
    """Every diagnostic in every group that has diagnosed models."""
    found = []
    for group in GROUPS:
        mine = [row for row in rows if "score" in row and _belongs(row, group)]
        accuracy = np.array([row["accuracy"] for row in mine])
        for name, read in DIAGNOSTICS.items() if mine else ():
            value = np.array([read(row) for row in mine])
            found.append(Prediction(name, group, len(mine), _spearman(value, accuracy), _auc(value, accuracy >= GOOD)))
    return found


def _belongs(row: Row, group: str) -> bool:
    if group == "all":
        return True
    if group in DATA_SIZES:
        return bool(row["world"] == group)
    if row["world"] != "toy":
        return False
    if group == "data size":
        return bool(row["violation"] == CLEAN)
    return row["violation"] == group or (row["violation"] == CLEAN and row["n"] == DATA_SIZES["toy"][0])


def _spearman(x: NDArray[Any], y: NDArray[Any]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic) if len(set(x)) > 1 and len(set(y)) > 1 else float("nan")


def _auc(value: NDArray[Any], good: NDArray[np.bool_]) -> float:
    if good.all() or not good.any():
        return float("nan")
    above = value[good][:, None] - value[~good]
    return float(((above > 0) + 0.5 * (above == 0)).mean())


def verdicts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """For each verdict: how many models got it, their mean and least accuracy, and the share that is good."""
    table = []
    for verdict in ("trust", "check", "do not trust"):
        accuracy = np.array([row["accuracy"] for row in rows if row.get("verdict") == verdict])
        if len(accuracy):
            summary = {"mean_accuracy": accuracy.mean(), "least_accuracy": accuracy.min()}
            table.append({"verdict": verdict, "models": len(accuracy), **summary, "good": (accuracy >= GOOD).mean()})
    return table


def format_cells(table: Sequence[Cell]) -> str:
    """Accuracy in percent, one line per dataset kind, one column per learner."""
    learners = list(dict.fromkeys(cell.learner for cell in table))
    lines: dict[tuple[Any, ...], dict[str, str]] = {}
    for cell in table:
        a = cell.accuracy
        text = f"{100 * a.mean:5.1f} ± {50 * (a.high - a.low):4.1f}"
        lines.setdefault((cell.world, cell.violation, cell.size, cell.n), {})[cell.learner] = text
    head = f"{'world':10} {'violation':12} {'size':>5} {'n':>6}  " + "  ".join(f"{name:^12}" for name in learners)
    body = [
        f"{world:10} {violation:12} {size:5g} {n:6,}  " + "  ".join(f"{texts.get(name, ''):^12}" for name in learners)
        for (world, violation, size, n), texts in lines.items()
    ]
    return "\n".join(line.rstrip() for line in [head, *body])


def format_predictions(table: Sequence[Prediction]) -> str:
    """Rank correlation with accuracy, one line per group and one column per diagnostic."""
    names = list(DIAGNOSTICS)
    lines = [f"{'rank correlation':16} {'models':>6} " + " ".join(f"{name:>16}" for name in names)]
    for group in dict.fromkeys(p.group for p in table):
        mine = {p.diagnostic: p for p in table if p.group == group}
        values = " ".join(f"{mine[name].rank_correlation:16.2f}" for name in names)
        lines.append(f"{group:16} {mine[names[0]].rows:6} {values}")
    return "\n".join(lines)


def format_verdicts(table: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'verdict':14} {'models':>6} {'mean accuracy':>14} {'least':>7} {'good':>6}"]
    lines += [
        f"{v['verdict']:14} {v['models']:6} {100 * v['mean_accuracy']:13.1f}% {100 * v['least_accuracy']:6.1f}% "
        f"{v['good']:6.0%}"
        for v in table
    ]
    return "\n".join(lines)
