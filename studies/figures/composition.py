"""The paper's two-step example, from a run: what the datasets at h = 2 are made of, and why DRAFT works there.

Paper: Section 3.1, its figure of the two-step example
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from craftrl.envs import BitsExBMDP, Collection, collect
from craftrl.figures import BLUE, GREY, INK, ORANGE, RED, picture
from craftrl.oracles import CoordinateOracle
from craftrl.paper import DRAFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_composition"]

STATE_COLOURS = (ORANGE, BLUE)  # s_2 and s_2'


def draw_composition(path: Path, n: int, seed: int) -> None:
    """Left, the latent graph; middle, both agents' observations x_2 by state; right, DRAFT's loss of every encoder."""
    world = BitsExBMDP(horizon=2, n_features=64, seed=seed)
    policies = world.paper_policies()
    collection = collect(world, policies, n, seed)
    chosen = DRAFT(CoordinateOracle()).fit(collection.tau).encoders_[2]
    with picture(path, 9.6, 3.0) as figure:
        graph, bars, losses = figure.subplots(1, 3, width_ratios=[0.75, 1.35, 1.25])
        _graph(graph)
        _bars(bars, collection)
        _losses(losses, collection, world.feature_accuracy(2), getattr(chosen, "feature", -1))


def _graph(axes: Axes) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    axes.set_title("latent states", loc="left")
    nodes = {"$s_1$": (0.2, 0.5, GREY), "$s_2$": (0.78, 0.76, ORANGE), "$s_2'$": (0.78, 0.24, BLUE)}
    for name in ("$s_2$", "$s_2'$"):
        axes.annotate(
            "", nodes[name][:2], nodes["$s_1$"][:2], arrowprops={"arrowstyle": "->", "shrinkA": 14, "shrinkB": 14}
        )
    for name, (x, y, colour) in nodes.items():
        axes.plot(x, y, "o", ms=26, color=colour)
        axes.text(x, y, name, color="white", ha="center", va="center", fontsize=12)


def _gammas(collection: Collection) -> tuple[float, float]:
    """How often each agent visits s_2, the state that agent A likes better than B does."""
    state, agent = collection.truth.states[:, 1], collection.tau.agent
    share = [float((state[agent == k] == 1).mean()) for k in range(2)]
    return share[0], share[1]


def _bars(axes: Axes, collection: Collection) -> None:
    m = int(collection.tau.counts[0])
    for row, (agent, gamma) in enumerate(zip("AB", _gammas(collection))):
        left = 0.0
        for share, name, colour in zip((gamma, 1 - gamma), ("s_2", "s_2'"), STATE_COLOURS):
            axes.barh(row, share * m, left=left, color=colour, height=0.55, edgecolor="white")
            axes.text(left + share * m / 2, row, f"${name}$: {share * m:.0f}", color="white", ha="center", va="center")
            left += share * m
        axes.text(0.01 * m, row - 0.36, f"$\\gamma_{agent} = {gamma:.3f}$", fontsize=9, va="bottom")
    axes.set_yticks([0, 1], [r"$(\tau_A)_2$", r"$(\tau_B)_2$"], fontsize=11)
    axes.set_ylim(1.45, -0.6)
    axes.set_xlabel("observations $x_2$")
    axes.set_title("what each dataset is made of", loc="left")


def _losses(axes: Axes, collection: Collection, accuracy: np.ndarray, chosen: int) -> None:
    """Empirical loss of every coordinate against its accuracy, and the line that the population loss lies on."""
    x, agent = collection.tau.at(2), collection.tau.agent
    gamma_A, gamma_B = _gammas(collection)
    loss = x[agent == 0].mean(axis=0) + 1 - x[agent == 1].mean(axis=0)
    loss = np.minimum(loss, 2 - loss)  # the better of the two labellings
    line = np.array([0.5, 1.0])
    gap = gamma_A - gamma_B
    theory = 1 + gap - 2 * gap * line  # Equation 9: each share of errors costs gamma_A - gamma_B
    axes.plot(100 * line, theory, color=GREY, lw=1.2, label="infinite data", zorder=0)
    axes.plot(100 * accuracy, loss, "o", color=BLUE, ms=4, alpha=0.6, mew=0, label="each encoder")
    axes.plot(100 * accuracy[chosen], loss[chosen], "o", mfc="none", mec=RED, ms=11, mew=1.8, label="DRAFT's choice")
    axes.set_xlabel("accuracy as an encoder of $s_2$ (%)")
    axes.set_ylabel("DRAFT's loss", color=INK)
    axes.set_title("telling agents apart finds the state", loc="left")
    axes.legend(fontsize=8, loc="lower left")
