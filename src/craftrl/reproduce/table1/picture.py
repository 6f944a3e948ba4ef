"""Table 1 as a picture: our means with intervals, the paper's numbers as open diamonds."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from craftrl.plots.style import BLUE, GREEN, INK, RED, chance_line, picture
from craftrl.reproduce.chance import CHANCE, toy_chance
from craftrl.reproduce.folder import Row
from craftrl.reproduce.table1.report import Cell, cells
from craftrl.reproduce.table1.spec import NAMES

__all__ = ["draw", "draw_table"]

COLOUR = {"craft": BLUE, "single": GREEN, "paired": RED}
MARKER = {"craft": "o", "single": "s", "paired": "^"}


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    draw_table(cells(rows), toy_chance(rows), out / "table1.png")


def draw_table(table: Sequence[Cell], chance: float, path: Path) -> None:
    """One column per size, one colour and marker per technique, the paper's number beside it; and chance."""
    sizes = list(dict.fromkeys(cell.size for cell in table))
    with picture(path, 6.4, 3.6) as figure:
        axes = figure.subplots()
        for cell in table:
            x = sizes.index(cell.size) + 0.22 * (list(NAMES).index(cell.technique) - 1)
            ours, colour = cell.ours, COLOUR[cell.technique]
            error = [[100 * (ours.mean - ours.low)], [100 * (ours.high - ours.mean)]]
            axes.errorbar(
                x,
                100 * ours.mean,
                yerr=error,
                fmt=MARKER[cell.technique],
                color=colour,
                capsize=3,
                label=NAMES[cell.technique] if cell.size == sizes[0] else None,
            )
            if cell.paper is not None:
                axes.plot(x + 0.07, 100 * cell.paper.accuracy, "D", mfc="white", mec=INK, ms=4.5, zorder=3)
        chance_line(axes, chance, CHANCE)
        axes.plot([], [], "D", mfc="white", mec=INK, ms=4.5, label="paper")
        axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_xlabel("trajectories per agent")
        axes.set_ylabel("encoder accuracy, mean over h (%)")
        axes.set_title(f"Table 1: mean and 95% interval over {table[0].ours.n} seeds", loc="left")
        axes.grid(axis="y", alpha=0.25)
        figure.legend(loc="outside right center")
