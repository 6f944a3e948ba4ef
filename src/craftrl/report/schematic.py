"""The schematic of CRAFT, from data: spectra of f_h, clusters, successors and merges.

Paper: Section 3.2, its schematic of the algorithm
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from craftrl.arguments import check_kind, check_whole
from craftrl.core.trace import StepTrace, Trace
from craftrl.errors import InvalidParameterError
from craftrl.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOW = (BLUE, GREEN, ORANGE, GREY)  # states at h
NEXT = (RED, SKY, PURPLE, INK)  # states at h + 1
MAX_STATES = len(NOW)


def draw_schematic(trace: Trace, path: str | os.PathLike[str], h: int = 2, subtitle: str = "") -> None:
    """Iterations h-1 and h of Line 7 for two agents: from the states of h, by the values of f_h, to those of h+1.

    Left, the spectrum of f_{h-1} on the pairs of the first state; middle, that of f_h for each state of h by
    itself, before the spectrum of all of them in grey; right, which clusters were found to be one state.

    Paper: Section 3.2
    """
    check_kind("trace", trace, Trace, "the trace_ of a fitted CRAFT")
    check_whole("h", h, 2, len(trace), "the first iteration has none before it")
    check_kind("subtitle", subtitle, str, "a text")
    before, step = trace[h - 1], trace[h]
    if step.spectra.ndim != 2 or max(len(step.spectra), step.n_states) > MAX_STATES:
        raise InvalidParameterError(
            f"The schematic shows two agents and at most {MAX_STATES} states a step; h = {h} has spectra of shape "
            f"{step.spectra.shape} and {step.n_states} states; choose another h."
        )
    rows, bottom, top = len(step.spectra), 0.13, 0.82
    height, guesses = (top - bottom) / rows, "log-odds of agent A against B"
    with picture(path, 11, 1.2 + 1.15 * rows) as figure:
        figure.set_layout_engine("none")
        left = figure.add_axes((0.055, bottom + 0.1 * (top - bottom), 0.235, 0.72 * (top - bottom)))
        _spectrum(left, trace, before, 0, NOW, names=[_name(h, c.state) for c in before.clusters])
        left.set(xlabel=f"$f_{{{h - 1}}}$: {guesses}", ylabel="pairs of observations")
        for s in range(rows):
            axes = figure.add_axes((0.375, top - (s + 1) * height + 0.03, 0.255, height - 0.05))
            together = step.spectra.sum(axis=0)  # behind: what could not be read apart
            axes.bar(trace.grid.values, together, width=trace.grid.xi, color=GREY, alpha=0.25, lw=0)
            _spectrum(axes, trace, step, s, NEXT)
            axes.set_ylim(0, 1.1 * together.max())
            axes.set_ylabel(f"from {_name(h, s)}", color=NOW[s])
            if s < rows - 1:
                axes.set_xticklabels([])
        axes.set_xlabel(f"$f_{{{h}}}$: {guesses}")
        _merges(figure.add_axes((0.66, bottom, 0.33, top - bottom)), step, rows)
        x_before, x, x_next = (f"x_{{{step}}}" for step in (h - 1, h, h + 1))
        guess = f"$f_{{{h - 1}}}$ guesses the agent from $({x_before}, {x})$;\nits values cluster: one state each"
        overlap = f"the values of $f_{{{h}}}$ overlap (grey), but not\namong pairs $({x}, {x_next})$"
        same = f"if no classifier $g$ tells the observations ${x_next}$\nof two clusters apart, they are one state"
        for at, title, text in (
            (0.03, "1  Whose pair is it?", guess),
            (0.36, "2  The same, state by state", f"{overlap} that start in one state"),
            (0.69, "3  Which are the same?", same),
        ):
            figure.text(at, 0.985, title, fontsize=11, weight="bold", va="top")
            figure.text(at, 0.925, text, fontsize=8.5, va="top", linespacing=1.3)
        figure.text(0.99, 0.012, subtitle, fontsize=7.5, color=GREY, ha="right")


def _spectrum(
    axes: Axes, trace: Trace, step: StepTrace, s_pred: int, colours: Sequence[str], names: Sequence[str] = ()
) -> None:
    """|pred_succ[j]| of one predecessor as bars, its clusters shaded in the colour of the state they became."""
    values, xi = trace.grid.values, trace.grid.xi
    counts = step.spectra[s_pred]
    axes.bar(values, counts, width=0.8 * xi, color=GREY)
    mine = [(i, c) for i, c in enumerate(step.clusters) if c.s_pred == s_pred]
    for i, cluster in mine:
        first, last = cluster.bins[0]
        colour = colours[cluster.state]
        axes.axvspan(values[first] - xi / 2, values[last] + xi / 2, color=colour, alpha=0.16, lw=0)
        axes.bar(values[first : last + 1], counts[first : last + 1], width=0.8 * xi, color=colour)
        if names:
            x = values[first : last + 1] @ counts[first : last + 1] / max(counts[first : last + 1].sum(), 1)
            axes.text(x, counts.max() * 1.1, names[i], color=colour, ha="center", va="bottom", fontsize=13)
    axes.axhline(step.threshold, color=INK, lw=0.8, ls=(0, (3, 2)))
    axes.set_xlim(values[0] - xi, values[-1] + xi)
    axes.set_ylim(0, counts.max() * 1.28)
    if names:
        axes.text(values[-1] + xi, step.threshold, "heavy ", fontsize=7.5, ha="right", va="bottom")
    axes.tick_params(labelsize=8)


def _merges(axes: Axes, step: StepTrace, rows: int) -> None:
    """Clusters on the left, beside their panels; states on the right; between them the answers of Line 25."""
    axes.set(xlim=(0, 1), ylim=(rows, 0))
    axes.axis("off")
    y_state = [(s + 0.5) * rows / step.n_states for s in range(step.n_states)]
    y_cluster: dict[int, float] = {}
    for s in range(rows):  # over the height of its panel, ordered by state: fewer lines cross
        mine = sorted((i for i, c in enumerate(step.clusters) if c.s_pred == s), key=lambda i: step.clusters[i].state)
        y_cluster |= {i: s + (place + 1) / (len(mine) + 1) for place, i in enumerate(mine)}
    for i, cluster in enumerate(step.clusters):
        colour = NEXT[cluster.state]
        axes.plot([0.1, 0.78], [y_cluster[i], y_state[cluster.state]], color=colour, lw=2)
        axes.plot(0.1, y_cluster[i], "o", color=colour, ms=9)
    for test in step.comparisons:
        y0, y1 = y_cluster[test.cluster], y_state[test.state]
        if not test.merged:
            axes.plot([0.1, 0.78], [y0, y1], color=GREY, lw=0.8, ls=(0, (4, 3)), zorder=0)
        at, sides = (0.2, ("right", "bottom")) if test.merged else (0.42, ("left", "top"))
        text = f" {test.loss:.2f} {'merge' if test.merged else 'apart'} "
        x, y = 0.1 + at * 0.68, y0 + at * (y1 - y0)
        axes.text(x, y, text, fontsize=7.5, ha=sides[0], va=sides[1], color=INK if test.merged else GREY)
    for s, y in enumerate(y_state):
        size = sum(cluster.size for cluster in step.clusters if cluster.state == s)
        axes.plot(0.78, y, "o", color=NEXT[s], ms=22, mec="white", mew=2)
        axes.text(0.78, y, _name(step.h + 1, s), color="white", ha="center", va="center", fontsize=11)
        axes.text(0.85, y, f"{size:,}\ntrajectories", fontsize=8, va="center")
    for x, text in ((0.1, "clusters"), (0.44, "loss of $g$ (chance: 1)"), (0.78, f"states at {step.h + 1}")):
        axes.text(x, rows + 0.08, text, fontsize=8, ha="center", va="top", color=GREY)


def _name(h: int, s: int) -> str:
    return f"$s_{{{h}}}{chr(39) * s}$"
