"""The pixel study as a picture: accuracy against walkers, and against trajectories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from craftrl.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, picture
from craftrl.paper.sweep import Row
from studies.cells import ONE_STATE, cells
from studies.pixels.report import SETTINGS
from studies.pixels.spec import NAMES, Run

__all__ = ["draw", "draw_study"]

COLOURS = {
    "craft": BLUE,
    "ac-state": INK,
    "paired": GREEN,
    "single": SKY,
    "autoencoder": ORANGE,
    "contrastive": PURPLE,
    "forward": RED,
    "latent-action": GREY,
}


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    """The study, and if asked for one trajectory, saliency and the recovered grid of the first "craft" run."""
    draw_study(rows, out / "pixels.png")
    if args.example:
        from studies.pixels.example import draw_example

        first = next(row for row in rows if row["technique"] == "craft")
        settings = {field.name: first[field.name] for field in fields(Run)}
        draw_example(Run(**{**settings, "rates": tuple(settings["rates"])}), out / "example.png")


def draw_study(rows: Sequence[Row], path: Path) -> None:
    """One panel per axis along which the rows vary."""
    table = cells(rows, SETTINGS)
    axes_shown = [axis for axis in ("walkers", "n") if len({c[axis] for c in table}) > 1] or ["walkers"]
    with picture(path, 4.6 * len(axes_shown) + 1.6, 3.4) as figure:
        panels = figure.subplots(1, len(axes_shown), squeeze=False)[0]
        for axis, panel in zip(axes_shown, panels):
            _draw(panel, table, axis)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", fontsize=8)


def _draw(panel: Any, table: Sequence[dict[str, Any]], axis: str) -> None:
    other = "n" if axis == "walkers" else "walkers"
    fixed = max({c[other] for c in table}, key=lambda v: sum(c[other] == v for c in table))
    for technique, colour in COLOURS.items():
        mine = sorted((c[axis], c["accuracy"]) for c in table if c["technique"] == technique and c[other] == fixed)
        if mine:
            x, y = zip(*mine)
            style = "--" if technique == "ac-state" else "-"
            panel.plot(x, [100 * v for v in y], style, marker="o", ms=4, color=colour, label=NAMES[technique])
    chance = sorted({c[axis]: 100 * c["one_state"] for c in table if c[other] == fixed}.items())
    panel.plot(*zip(*chance), ":", color=INK, lw=1, label=ONE_STATE)
    if axis == "n":
        panel.set_xscale("log")
    panel.set_xlabel("walkers" if axis == "walkers" else "trajectories per agent")
    panel.set_ylabel("held-out accuracy, %")
    panel.set_ylim(0, 103)
    panel.set_title(f"{fixed} walkers" if axis == "n" else f"{fixed} trajectories per agent")
