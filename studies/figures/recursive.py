"""Recursive DRAFT, from a run: each state's trajectories are split in two, and halves that look alike are merged.

Paper: Section 3.1.1, its figure of the recursion
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from craftrl.envs import BitsExBMDP, collect
from craftrl.evaluation import count_visits
from craftrl.figures import BLUE, GREY, INK, ORANGE, picture
from craftrl.oracles import CoordinateOracle
from craftrl.paper import RecursiveDRAFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_recursion"]

WIDTH, HEIGHT = 1.75, 0.6  # of a box
COLUMNS = (0.1, 2.75, 5.4, 8.05)  # where the boxes of each stage begin
TRUE_COLOURS = (ORANGE, BLUE)  # true states 0 and 1


@dataclass(frozen=True)
class Box:
    """A set of trajectories: where it is drawn, and how many of each agent (rows) are in each true state."""

    name: str
    stage: int
    y: float
    counts: NDArray[np.int64]

    @property
    def right(self) -> tuple[float, float]:
        return COLUMNS[self.stage] + WIDTH, self.y

    @property
    def left(self) -> tuple[float, float]:
        return COLUMNS[self.stage], self.y


def draw_recursion(path: Path, n: int, seed: int) -> None:
    """Boxes are sets of trajectories, bars both agents' numbers in each true state; arrows are splits and merges."""
    world = BitsExBMDP(horizon=3, n_features=64, seed=seed)
    collection = collect(world, world.paper_policies(), n, seed)
    labels = RecursiveDRAFT(CoordinateOracle()).fit(collection.tau).labels_
    states, agent = collection.truth.states, collection.tau.agent

    def count(rows: NDArray[np.bool_], h: int) -> NDArray[np.int64]:
        return count_visits(agent[rows], states[rows, h - 1], sizes=(2, 2))

    start = Box("all trajectories", 0, 2.0, count(np.ones(len(agent), dtype=bool), 1))
    second = [Box(f"$s_2{_primes(s)}$", 1, 3 - 2 * s, count(labels[:, 1] == s, 2)) for s in range(2)]
    halves = {
        (s, t): Box(f"from $s_2{_primes(s)}$", 2, 3.5 - 2 * s - t, count((labels[:, 1] == s) & (labels[:, 2] == t), 3))
        for s in range(2)
        for t in range(2)
    }
    third = [Box(f"$s_3{_primes(t)}$", 3, 3 - 2 * t, count(labels[:, 2] == t, 3)) for t in range(2)]
    with picture(path, 10, 4.4) as figure:
        axes = figure.subplots()
        axes.set(xlim=(0, 10), ylim=(0.05, 4.9))
        axes.axis("off")
        for s in range(2):
            _arrow(axes, start, second[s])
            for t in range(2):
                _arrow(axes, second[s], halves[s, t])
                _arrow(axes, halves[s, t], third[t])
        for box in (start, *second, *halves.values(), *third):
            _draw(axes, box, n)
        _headings(axes)


def _draw(axes: Axes, box: Box, n: int) -> None:
    """A box with one bar per agent, as long as its number of trajectories, in the colours of the true states."""
    from matplotlib.patches import FancyBboxPatch

    x, y = COLUMNS[box.stage], box.y
    frame = FancyBboxPatch(
        (x, y - HEIGHT / 2), WIDTH, HEIGHT, boxstyle="round,pad=0.05", facecolor="white", edgecolor=GREY, lw=1
    )
    axes.add_patch(frame)
    axes.text(x, y + HEIGHT / 2 + 0.08, box.name, fontsize=10, va="bottom")
    scale = 0.95 / n
    colours = (GREY, GREY) if box.stage == 0 else TRUE_COLOURS
    for k, agent in enumerate("AB"):
        axes.text(x + 0.05, y + 0.15 - 0.3 * k, agent, fontsize=9, va="center")
        left = x + 0.25
        for number, colour in zip(box.counts[k], colours):
            axes.barh(y + 0.15 - 0.3 * k, number * scale, left=left, height=0.22, color=colour)
            left += number * scale
        axes.text(left + 0.06, y + 0.15 - 0.3 * k, f"{box.counts[k].sum():,}", fontsize=8, va="center")


def _arrow(axes: Axes, tail: Box, head: Box) -> None:
    style = {"arrowstyle": "-|>", "color": INK, "lw": 1, "shrinkA": 5, "shrinkB": 5, "mutation_scale": 10}
    axes.annotate("", head.left, tail.right, arrowprops=style)


def _headings(axes: Axes) -> None:
    texts = (
        "$h = 1$: one state",
        "DRAFT on $x_2$:\nwhich encoder best\ntells A from B?",
        "DRAFT on $x_3$, once for\nthe trajectories of\neach state found",
        "halves that no encoder\ncan tell apart\nare one state",
    )
    for x, text in zip(COLUMNS, texts):
        axes.text(x, 4.9, text, fontsize=8.5, va="top", linespacing=1.25)
    for k, colour in enumerate(TRUE_COLOURS):
        axes.plot(0.2, 0.75 - 0.25 * k, "s", color=colour, ms=7)
        axes.text(0.35, 0.75 - 0.25 * k, f"true state {k}", fontsize=8.5, va="center")


def _primes(s: int) -> str:
    return "'" * s
