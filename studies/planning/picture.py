"""Success against labels: one panel for each world and source of labels, one curve for each technique."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, chance_line, picture
from craftrl.paper.sweep import Row
from studies.planning.report import CHANCE, cells, curves_of

__all__ = ["draw", "draw_curves"]

COLOURS = {
    "craft": BLUE,
    "true": INK,
    "ac-state": GREEN,
    "paired": PURPLE,
    "single": SKY,
    "autoencoder": ORANGE,
    "contrastive": GREY,
    "forward": GREY,
    "latent-action": GREY,
    "cloning": RED,
}
TITLES = {"offline": "random labels of the videos", "online": "environment steps chosen by exploring"}
BESIDE = 0.03  # by which curves are moved sideways, so that equal ones can be told apart
APART = 6.5  # percent between two labels at the right end of the curves


def draw(rows: list[Row], out: Path) -> None:
    draw_curves(rows, out / "planning.png")


def draw_curves(rows: Sequence[Row], path: Path) -> None:
    """One row of panels for each world, one column for each source of labels."""
    table = cells(rows)
    worlds = list(dict.fromkeys((c["world"], c["walkers"]) for c in table if "offline" in c))
    with picture(path, 11, 3.6 * max(1, len(worlds))) as figure:
        panels = figure.subplots(max(1, len(worlds)), 2, squeeze=False, sharey=True)
        for line, (world, walkers) in zip(panels, worlds):
            mine = [c for c in table if (c["world"], c["walkers"]) == (world, walkers)]
            for panel, source in zip(line, TITLES):
                _draw(panel, mine, source)
                panel.set_title(f"{world}, {walkers} distractors: {TITLES[source]}", loc="left", fontsize=9)
            line[0].set_ylabel("goals reached, %")


def _draw(panel: Any, table: Sequence[dict[str, Any]], source: str) -> None:
    """Curves with their intervals; labels stand at the right end in the colour of their curve."""
    ends, curves = [], curves_of(table, source)
    for i, (name, c, kind) in enumerate(reversed(curves)):  # CRAFT comes first, and is drawn last, on top
        mean, low, high = (np.array([100 * e[part] for e in c[kind]]) for part in ("mean", "low", "high"))
        x = _places(c["labels"]) + BESIDE * (i - len(curves) / 2)
        colour, style = COLOURS[c["technique"]], "--" if kind.endswith("_latent") else "-"
        wide = {"lw": 5, "alpha": 0.3} if c["technique"] == "true" else {"lw": 1.5, "marker": "o", "ms": 3}
        panel.plot(x, mean, style, color=colour, **wide)
        panel.fill_between(x, low, np.minimum(high, 100), color=colour, alpha=0.12, lw=0)
        ends.append((float(mean[-1]), float(mean.mean()), name, colour))
    labels = table[0]["labels"]
    chance_line(panel, table[0]["chance"]["mean"], None)
    ends.append((100 * table[0]["chance"]["mean"], 0.0, CHANCE, GREY))
    right, ends = _places(labels)[-1], sorted(ends)
    for y, (_, _, name, colour) in zip(_spread([end[0] for end in ends]), ends):
        panel.annotate(name, (right, y), (8, 0), textcoords="offset points", color=colour, fontsize=8, va="center")
    panel.set_xticks(_places(labels), [str(k) for k in labels])
    panel.set_xlim(right=len(labels) - 1 + 0.02)
    panel.set_xlabel("labelled transitions" if source == "offline" else "environment steps")
    panel.set_ylim(0, 104)
    panel.grid(alpha=0.25)


def _places(labels: Sequence[int]) -> Any:
    """Numbers of labels side by side: 0 has no logarithm, and the others nearly double."""
    return np.arange(len(labels))


def _spread(heights: Sequence[float]) -> list[float]:
    """Heights in ascending order, moved apart as far as text needs, the topmost no higher than 102."""
    places = list(heights)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + APART)
    top = 102.0
    for i in reversed(range(len(places))):
        places[i] = min(places[i], top)
        top = places[i] - APART
    return places
