"""Rows to tables: whether diagnostics that need no ground truth notice what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.paper.sweep import Row
from studies.robustness.spec import CLEAN, DATA_SIZES, VIOLATION_SIZES
from studies.statistics import grouped

__all__ = [
    "DIAGNOSTICS",
    "GOOD",
    "Prediction",
    "format_noticed",
    "format_predictions",
    "format_verdicts",
    "is_right",
    "noticed",
    "predictions",
    "verdicts",
]

GOOD = 0.95  # a model is right if every state of every step is read right this often

# Each diagnostic as a number that should grow with accuracy.
DIAGNOSTICS: dict[str, Callable[[Row], float | None]] = {
    "score": lambda row: row["score"],
    "stability": lambda row: row["stability"],
    "explained so far": lambda row: row["explained_so_far"],
    "residual test": lambda row: row["least_p_value"],
    "closure test": lambda row: row["least_closure_p_value"],
    "same state count": lambda row: row["same_count"],
    "assigned at H": lambda row: row["assigned"],
}

# Among which rows a diagnostic is judged: all, one violation with its unbroken world, one world.
GROUPS = ("all", "data size", *VIOLATION_SIZES["toy"], "control", "lock")


@dataclass(frozen=True)
class Prediction:
    """How well one diagnostic foretells accuracy among the rows of one group.

    rank_correlation  Spearman's, NaN where either does not vary
    auc               chance that a right model beats a wrong one; NaN where all are alike
    """

    diagnostic: str
    group: str
    rows: int
    rank_correlation: float
    auc: float


def is_right(row: Row) -> bool:
    """Whether the encoders read every state of every step right often enough."""
    return bool(row["state_worst"] >= GOOD)


def predictions(rows: Sequence[Row]) -> list[Prediction]:
    """Every diagnostic in every group that has diagnosed models."""
    found = []
    for group in GROUPS:
        mine = [row for row in rows if "score" in row and _belongs(row, group)]
        for name, read in DIAGNOSTICS.items():
            told = [row for row in mine if read(row) is not None]
            if told:
                value = np.array([read(row) for row in told], dtype=float)
                accuracy, right = (np.array([of(row) for row in told]) for of in (lambda r: r["accuracy"], is_right))
                found.append(Prediction(name, group, len(told), _spearman(value, accuracy), _auc(value, right)))
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
    """For each learner and verdict: how many models got it, their accuracies, and the share that is right."""
    table = []
    for (learner, verdict), mine in sorted(
        grouped([r for r in rows if "verdict" in r], ("learner", "verdict")).items()
    ):
        accuracy = np.array([row["accuracy"] for row in mine])
        summary = {"mean_accuracy": accuracy.mean(), "least_accuracy": accuracy.min()}
        right = float(np.mean([is_right(row) for row in mine]))
        table.append({"learner": learner, "verdict": verdict, "models": len(mine), **summary, "right": right})
    return table


def noticed(rows: Sequence[Row], learner: str = "default") -> list[dict[str, Any]]:
    """For each world and violation: of wrong and of right models, how many `fit` warned of and how many are trusted."""
    mine = [{**row, "right": is_right(row)} for row in rows if row["learner"] == learner]
    return [
        {
            "world": world,
            "violation": violation,
            **{
                name: {
                    "models": len(those),
                    "warned": sum(row["warned"] for row in those),
                    "trusted": sum(row["verdict"] == "trust" for row in those),
                }
                for name, right in (("wrong", False), ("right", True))
                for those in [[row for row in group if row["right"] == right]]
            },
        }
        for (world, violation), group in grouped(mine, ("world", "violation")).items()
    ]


def format_noticed(table: Sequence[dict[str, Any]]) -> str:
    """One line per world and violation."""
    heads = "   ".join(f"{name:>5} {'warned':>6} {'trusted':>7}" for name in ("wrong", "right"))
    lines = [f"{'world':8} {'violation':13}  {heads}"]
    for row in table:
        counts = "   ".join(
            f"{of['models']:5} {of['warned']:6} {of['trusted']:7}" for of in (row["wrong"], row["right"])
        )
        lines.append(f"{row['world']:8} {row['violation']:13}  {counts}")
    return "\n".join(lines)


def format_predictions(table: Sequence[Prediction]) -> str:
    """Rank correlation with accuracy, one line per group and one column per diagnostic."""
    names = list(DIAGNOSTICS)
    lines = [f"{'rank correlation':16} {'models':>6} " + " ".join(f"{name:>16}" for name in names)]
    for group in dict.fromkeys(p.group for p in table):
        mine = {p.diagnostic: p for p in table if p.group == group}
        values = " ".join(f"{mine[name].rank_correlation if name in mine else np.nan:16.2f}" for name in names)
        lines.append(f"{group:16} {mine[names[0]].rows:6} {values}")
    return "\n".join(lines)


def format_verdicts(table: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'learner':8} {'verdict':14} {'models':>6} {'mean accuracy':>14} {'least':>7} {'right':>6}"]
    lines += [
        f"{v['learner']:8} {v['verdict']:14} {v['models']:6} {100 * v['mean_accuracy']:13.1f}% "
        f"{100 * v['least_accuracy']:6.1f}% {v['right']:6.0%}"
        for v in table
    ]
    return "\n".join(lines)
