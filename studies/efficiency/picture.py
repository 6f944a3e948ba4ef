"""Accuracy against the number of trajectories, as curves."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from craftrl.figures import BLUE, INK, ORANGE, PURPLE, RED, chance_line, picture
from craftrl.paper.sweep import Row
from craftrl.paper.table1 import CHANCE, PUBLISHED
from studies.efficiency.report import Curve, chance_of_worlds, curves
from studies.efficiency.spec import EXCESS, WORLDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "draw_curves", "draw_excess"]

# Method: label, colour, line
SHOWN = {
    "genie": ("genie: knows the neighbours' states", INK, "-."),
    "hub": ("hub: looks at no agent", ORANGE, ":"),
    "markov, relabelled": ("Markov chain, relabelled", PURPLE, "-"),
    "chain": ("chain", BLUE, "-"),
    "independent": ("CRAFT as in the paper", RED, "-"),
}
SHOWN_EXCESS = {
    "independent": ("independent", RED, "-"),
    "chain": ("chain", BLUE, "-"),
    "markov": ("Markov chain", PURPLE, "-"),
    "chain, raw": ("the chain's own codes", BLUE, ":"),
    "markov, raw": ("the Markov chain's own codes", PURPLE, ":"),
}

YARDSTICKS = ("genie", "hub")


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    found, chance = curves(rows), chance_of_worlds(rows)
    draw_curves(found, chance, out / "efficiency.png")
    draw_excess(found, chance, out / "excess.png")


def draw_curves(found: Sequence[Curve], chance: Mapping[str, float], path: Path) -> None:
    """One panel per world: means with 95% intervals, and the paper's published points."""
    worlds = [world for world in WORLDS if any(curve.world == world for curve in found)]
    with picture(path, 4.8 * len(worlds), 4.0) as figure:
        panels = figure.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
        for axes, world in zip(panels, worlds):
            _draw(axes, [curve for curve in found if curve.world == world], chance[world], SHOWN)
            axes.set_title(WORLDS[world], loc="left")
        sizes, published = zip(*((n, p) for (method, n), p in PUBLISHED.items() if method == "craft"))
        panels[0].plot(sizes, [100 * p for p in published], "D", mfc="white", mec=INK, ms=5, label="paper, Table 1")
        panels[0].set_ylabel("encoder accuracy, mean over h (%)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def draw_excess(found: Sequence[Curve], chance: Mapping[str, float], path: Path) -> None:
    """One panel per class: what CRAFT returns, and the codes behind it, every seed as a dot."""
    worlds = [world for world in EXCESS if any(curve.world == world for curve in found)]
    with picture(path, 4.8 * len(worlds), 3.8) as figure:
        panels = figure.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
        for axes, world in zip(panels, worlds):
            mine = [curve for curve in found if curve.world == world]
            _draw(axes, mine, chance[world], SHOWN_EXCESS)
            raw = next(curve for curve in mine if curve.method == "chain, raw")
            for size, seeds in zip(raw.sizes, raw.seeds):
                axes.plot([size * 1.04] * len(seeds), [100 * s for s in seeds], ".", color=BLUE, alpha=0.25, ms=5)
            axes.set_title(f"Four values where two states are: {world}", loc="left", fontsize=9)
        panels[0].set_ylabel("accuracy, mean over h (%)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _draw(axes: Axes, found: Sequence[Curve], chance: float, shown: dict[str, tuple[str, str, str]]) -> None:
    chance_line(axes, chance, CHANCE)
    for method, (label, colour, line) in shown.items():
        for curve in (curve for curve in found if curve.method == method):
            axes.plot(
                curve.sizes,
                [100 * a.mean for a in curve.accuracy],
                ls=line,
                marker="" if method in YARDSTICKS else "o",
                ms=3.5,
                color=colour,
                label=label,
            )
            low, high = zip(*(a.interval or (a.mean, a.mean) for a in curve.accuracy))
            axes.fill_between(
                curve.sizes, [100 * x for x in low], [100 * x for x in high], color=colour, alpha=0.15, lw=0
            )
    axes.set_xscale("log")
    axes.set_xticks(found[0].sizes, [f"{size:,}" for size in found[0].sizes], fontsize=8)
    axes.minorticks_off()
    axes.set_ylim(48, 101.5)
    axes.set_xlabel("trajectories per agent")
    axes.grid(alpha=0.25)
