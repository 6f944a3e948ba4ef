"""Wrong labels against h, one panel per scenario."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from craftrl.figures import BLUE, GREY, INK, RED, picture
from craftrl.paper.sweep import Row
from studies.error_growth.report import Curve, curves
from studies.error_growth.spec import GROWTH, LEARNERS, SCENARIOS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "draw_curves"]

COLOUR = {"craft": BLUE, "draft": RED}
FLOOR = 1e-4  # what the logarithmic axis still shows


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    draw_curves(curves(rows), out / "error_growth.png")


def draw_curves(found: Sequence[Curve], path: Path) -> None:
    """Means on a logarithmic axis, every seed as a thin line behind them."""
    with picture(path, 9.6, 3.5) as figure:
        panels = figure.subplots(1, len(SCENARIOS), sharey=True)
        for axes, (scenario, spec) in zip(panels, SCENARIOS.items()):
            for curve in (curve for curve in found if curve.scenario == scenario):
                _draw(axes, curve)
            axes.set_title(spec.title, loc="left", fontsize=9.5)
            axes.set_xlabel("step h")
            axes.set_yscale("log")
            axes.set_ylim(FLOOR, 1)
            axes.set_xticks(range(5, len(found[0].wrong) + 1, 5))
            axes.grid(alpha=0.2)
            axes.axhline(0.5, color=GREY, lw=0.8, ls="--")
        panels[0].text(1, 0.55, "chance", color=GREY, fontsize=8)
        panels[0].set_ylabel("trajectories labelled wrongly")
        panels[0].set_yticks([1e-4, 1e-3, 1e-2, 1e-1, 1], ["0.01%", "0.1%", "1%", "10%", "100%"])
        _draw_slope(panels[-1], len(found[0].wrong))
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _draw(axes: Axes, curve: Curve) -> None:
    h = np.arange(1, len(curve.wrong) + 1)
    colour = COLOUR[curve.learner]
    for seed in curve.seeds:
        axes.plot(h, np.maximum(seed, FLOOR), color=colour, lw=0.6, alpha=0.3)
    mean = np.maximum([step.mean for step in curve.wrong], FLOOR)
    axes.plot(h, mean, color=colour, lw=2.2, label=f"{LEARNERS[curve.learner]}, mean of {len(curve.seeds)} seeds")


def _draw_slope(axes: Axes, H: int) -> None:
    """What one factor of GROWTH per step looks like."""
    h = np.array([0.3 * H, 0.75 * H])
    y = 0.05 * GROWTH ** (h - h[0])
    axes.plot(h, np.minimum(y, 0.45), color=INK, lw=0.9, ls=(0, (4, 3)))
    axes.text(h[0] - 0.4, y[0], f"× {GROWTH:g} per step", fontsize=8, ha="right", va="bottom", color=INK)
