"""Every choice of bounds as a dot: how much it matters what CRAFT is told, and what "auto" makes of it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from craftrl.figures import BLUE, GREY, RED, chance_line, picture
from craftrl.paper.sweep import Row
from craftrl.paper.table1 import CHANCE, toy_chance
from studies.bounds.report import Cell, cells
from studies.bounds.spec import COUPLINGS
from studies.statistics import half_of

__all__ = ["draw", "draw_cells"]

MARKS = {"true": ("true bounds", "o", BLUE), "auto": ("auto", "D", RED)}


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    draw_cells(cells(rows), toy_chance(rows), out / "bounds.png")


def draw_cells(table: Sequence[Cell], chance: float, path: Path) -> None:
    """One panel per coupling, one column per agents and size: the grid in grey, true and automatic bounds before it."""
    columns = list(dict.fromkeys((cell.agents, cell.size) for cell in table))
    with picture(path, 9.6, 3.8) as figure:
        panels = figure.subplots(1, len(COUPLINGS), sharey=True)
        for axes, coupling in zip(panels, COUPLINGS):
            for x, column in enumerate(columns):
                mine = [c for c in table if (c.agents, c.size) == column and c.coupling == coupling]
                wrong = [100 * c.accuracy.mean for c in mine if " x " in c.choice]
                spread = np.linspace(-0.15, 0.15, len(wrong)) + x
                label = "a bound, or more, off by 2x" if x == 0 else None
                axes.plot(spread, wrong, ".", color=GREY, ms=4, alpha=0.7, label=label)
                for shift, (choice, (name, marker, colour)) in zip((-0.27, 0.27), MARKS.items()):
                    of = next(c.accuracy for c in mine if c.choice == choice)
                    half = 100 * half_of(of)
                    axes.errorbar(
                        x + shift,
                        100 * of.mean,
                        yerr=half,
                        fmt=marker,
                        ms=5,
                        capsize=2,
                        color=colour,
                        label=name if x == 0 else None,
                    )
            chance_line(axes, chance, CHANCE if axes is panels[0] else None)
            axes.set_xticks(range(len(columns)), [f"{agents}\n{size:,}" for agents, size in columns])
            axes.set_title(coupling, loc="left")
            axes.set_xlabel("agents, trajectories per agent")
            axes.set_ylim(top=101)
            axes.grid(axis="y", alpha=0.25)
        panels[0].set_ylabel("encoder accuracy, mean over h (%)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
