"""Accuracy against the size of each violation, and trust against accuracy."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from craftrl.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, picture
from craftrl.paper.sweep import Row
from studies.robustness.notice import DIAGNOSTICS, Prediction, predictions
from studies.robustness.report import Cell, cells
from studies.robustness.spec import CLEAN
from studies.statistics import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "draw_robustness", "draw_trust"]

LEARNER_STYLE = {
    "paper": (RED, "^", "the paper's, true bounds"),
    "markov": (BLUE, "o", "Markov coupling, true bounds"),
    "default": (GREEN, "s", "library's default, bounds from the data"),
}
PANELS = {
    ("toy", CLEAN): "no violation",
    ("toy", "slips"): "slips: moves at random",
    ("toy", "leaks"): "leaks: actions told by noise",
    ("toy", "mislabelled"): "mislabelled: another's name",
    ("toy", "corrupted"): "corrupted: another's frame",
    ("toy", "hidden"): "hidden: no state bit",
    ("toy", "agreement"): "agreement: alike in some states",
    ("toy", "alike"): "alike at whole steps, at random",
    ("toy", "alike, sticky"): "alike at whole steps, sticky",
    ("toy", "starts"): "starts: in another state",
    ("toy", "noise"): "noise: slower for agent B",
    ("control", "alike"): "control: alike, at random",
    ("control", "alike, sticky"): "control: alike, sticky",
    ("control", "starts"): "control: starts",
    ("control", "noise"): "control: noise",
    ("lock", "slips"): "lock: slips",
    ("lock", "starts"): "lock: starts",
    ("lock", "noise"): "lock: noise",
}
COLUMNS = 5
KIND_COLOUR = {
    CLEAN: INK,
    "slips": ORANGE,
    "leaks": RED,
    "agreement": PURPLE,
    "mislabelled": BLUE,
    "corrupted": SKY,
    "hidden": GREEN,
    "starts": "#8c564b",
    "noise": "#bcbd22",
    "alike": "#e377c2",
    "alike, sticky": GREY,
}
WORLD_MARKER = {"toy": "o", "control": "D", "lock": "s"}


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    draw_robustness(cells(rows), out / "robustness.png")
    draw_trust([row for row in rows if "score" in row], predictions(rows), out / "trust.png")


def draw_robustness(table: Sequence[Cell], path: Path) -> None:
    """One panel per world and violation: means with 95% intervals over seeds, and what chance scores."""
    shown = [key for key in PANELS if any((cell.world, cell.violation) == key for cell in table)]
    n_columns = min(COLUMNS, len(shown))
    n_rows = -(-len(shown) // n_columns)
    with picture(path, 12, 2.3 * n_rows + 0.6) as figure:
        panels = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
        for axes, key in zip(panels, shown):
            _draw_panel(axes, table, *key)
            axes.set_title(PANELS[key], loc="left", fontsize=8.5)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        for axes in panels[::n_columns]:
            axes.set_ylabel("encoder accuracy (%)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)


def _draw_panel(axes: Axes, table: Sequence[Cell], world: str, violation: str) -> None:
    """One line per learner; sizes stand side by side, whatever their distance."""
    for learner, (colour, marker, label) in LEARNER_STYLE.items():
        mine = _line(table, world, violation, learner)
        x, accuracy = range(len(mine)), [cell.accuracy for cell in mine]
        axes.plot(x, [100 * a.mean for a in accuracy], marker=marker, ms=3.5, lw=1.4, color=colour, label=label)
        intervals = [a.interval for a in accuracy if a.interval is not None]
        if len(intervals) == len(mine):
            low, high = ([100 * end for end in ends] for ends in zip(*intervals))
            axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    axes.plot(x, [100 * cell.chance for cell in mine], color=GREY, ls="--", lw=1, label="chance")
    axes.set_xticks(x, [f"{c.n:,}" if violation == CLEAN else f"{100 * c.size:g}" for c in mine], fontsize=8)
    axes.set_xlabel("trajectories per agent" if violation == CLEAN else "size of the violation (%)", fontsize=8)
    axes.set_ylim(42, 102)
    axes.grid(alpha=0.25)


def _line(table: Sequence[Cell], world: str, violation: str, learner: str) -> list[Cell]:
    """One learner's cells in the order of the axis; a violation's begin with the unbroken world."""
    mine = [cell for cell in table if cell.world == world and cell.learner == learner]
    broken = [cell for cell in mine if cell.violation == violation]
    if violation == CLEAN:
        return sorted(broken, key=lambda cell: cell.n)
    unbroken = [cell for cell in mine if cell.violation == CLEAN and cell.n == broken[0].n]
    return unbroken + sorted(broken, key=lambda cell: cell.size)


def draw_trust(rows: Sequence[Row], table: Sequence[Prediction], path: Path) -> None:
    """Left: true accuracy of every model against its score. Right: what each diagnostic foretells."""
    with picture(path, 12, 5.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_models(left, rows)
        _draw_calibration(left, rows)
        left.set_xlabel("score of the diagnosis (no ground truth)")
        left.set_ylabel("true encoder accuracy")
        left.set_title(f"{len(rows):,} models", loc="left")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=8, fontsize=7.5)
        left.grid(alpha=0.2)
        _draw_table(right, table)


def _draw_models(axes: Axes, rows: Sequence[Row]) -> None:
    """Every model: its violation by colour, its world by marker."""
    style: dict[str, Any] = {"ls": "", "ms": 3.5, "mfc": "none", "mew": 0.8}
    for (world, kind), mine in grouped(rows, ("world", "violation")).items():
        x, y = [row["score"] for row in mine], [row["accuracy"] for row in mine]
        axes.plot(x, y, WORLD_MARKER[world], mec=KIND_COLOUR[kind], alpha=0.7, **style)
    for kind, colour in KIND_COLOUR.items():
        if any(row["violation"] == kind for row in rows):
            axes.plot([], [], "o", mec=colour, label="data size" if kind == CLEAN else kind, **style)
    for world, marker in WORLD_MARKER.items():
        if any(row["world"] == world for row in rows):
            axes.plot([], [], marker, mec=INK, label=f"{world} world", **style)


def _draw_calibration(axes: Axes, rows: Sequence[Row]) -> None:
    """The mean accuracy of models with about the same score."""
    score = np.array([row["score"] for row in rows])
    accuracy = np.array([row["accuracy"] for row in rows])
    bins = np.minimum((score * 10).astype(int), 9)
    at = [b for b in range(10) if (bins == b).sum() >= 5]
    mean = [accuracy[bins == b].mean() for b in at]
    axes.plot([score[bins == b].mean() for b in at], mean, color=GREY, lw=2.5, alpha=0.8, label="mean", zorder=3)


def _draw_table(axes: Axes, table: Sequence[Prediction]) -> None:
    """Rank correlations as a coloured table: a line for each group, a column for each diagnostic."""
    groups = list(dict.fromkeys(p.group for p in table))
    names = list(DIAGNOSTICS)
    value = {(p.group, p.diagnostic): p.rank_correlation for p in table}
    matrix = np.array([[value.get((group, name), np.nan) for name in names] for group in groups])
    axes.imshow(matrix, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    for (i, j), v in np.ndenumerate(matrix):
        if np.isfinite(v):
            axes.text(j, i, f"{v:.2f}", ha="center", va="center", fontsize=7, color="white" if abs(v) > 0.7 else INK)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(len(groups)), groups, fontsize=8)
    axes.set_title("Rank correlation with true accuracy", loc="left")
    axes.tick_params(length=0)
