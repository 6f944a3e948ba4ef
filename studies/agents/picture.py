"""Accuracy against the number of agents, the total number of trajectories fixed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from craftrl.figures import COLOURS, INK, chance_line, picture
from craftrl.paper.sweep import Row
from craftrl.paper.table1 import CHANCE, toy_chance
from studies.agents.report import Cell, cells
from studies.agents.spec import KINDS
from studies.statistics import half_of

__all__ = ["draw", "draw_cells"]


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    draw_cells(cells(rows), toy_chance(rows), out / "agents.png")


def draw_cells(table: Sequence[Cell], chance: float, path: Path) -> None:
    """One panel per kind of agents, one colour per total; chained ERM solid, independent dotted."""
    totals = sorted({cell.total for cell in table})
    with picture(path, 10.5, 3.7) as figure:
        panels = figure.subplots(1, len(KINDS), sharey=True)
        for axes, (kind, title) in zip(panels, KINDS.items()):
            for total, colour in zip(totals, COLOURS):
                for coupling, line in (("chain", "-"), ("independent", ":")):
                    mine = [c for c in table if (c.kind, c.total, c.coupling, c.factor) == (kind, total, coupling, 1)]
                    mean = [100 * cell.accuracy.mean for cell in mine]
                    half = [100 * half_of(cell.accuracy) for cell in mine]
                    x = [cell.n_agents + 0.05 * (totals.index(total) - len(totals) / 2) for cell in mine]
                    axes.errorbar(x, mean, yerr=half, ls=line, marker="o", ms=3, lw=1.4, capsize=2, color=colour)
            chance_line(axes, chance, CHANCE if axes is panels[0] else None)
            axes.set_title(title, loc="left", fontsize=9)
            axes.set_xticks(sorted({cell.n_agents for cell in table}))
            axes.set_xlabel("number of agents")
            axes.grid(alpha=0.25)
            axes.set_ylim(top=101)
        panels[0].set_ylabel("encoder accuracy, mean over h (%)")
        for total, colour in zip(totals, COLOURS):
            panels[0].plot([], [], color=colour, label=f"{total:,} trajectories in all")
        panels[0].plot([], [], color=INK, label="chain")
        panels[0].plot([], [], color=INK, ls=":", label="independent")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
