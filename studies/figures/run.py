"""The paper's three figures, drawn from real runs.

Paper: Figures 1 (two-step example), 2 (recursive DRAFT) and 3 (schematic of CRAFT)
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl import CRAFT, FiniteOracle
from craftrl.arguments import check_target, natural, positive
from craftrl.core.trace import Trace
from craftrl.data.files import check_writable
from craftrl.envs import BitsExBMDP, Collection, collect
from craftrl.errors import InvalidParameterError
from craftrl.evaluation import count_visits
from craftrl.figures import BLUE, GREY, INK, ORANGE, RED, picture
from craftrl.oracles import CoordinateOracle
from craftrl.paper import DRAFT, RecursiveDRAFT, population_assumptions
from craftrl.report import draw_schematic
from craftrl.report.schematic import MAX_STATES
from studies.worlds.lock import LockExBMDP

if TYPE_CHECKING:
    from matplotlib.axes import Axes


STATES = (ORANGE, BLUE)  # colours of states 0 and 1, or s_2 and s_2'
WIDTH, HEIGHT = 1.75, 0.6  # of a box of trajectories
PRIME = "'"
COLUMNS = (0.1, 2.75, 5.4, 8.05)  # where the boxes of each stage begin
STAGES = (
    "$h = 1$: one state",
    "DRAFT on $x_2$:\nwhich encoder best\ntells A from B?",
    "DRAFT on $x_3$, once for\nthe trajectories of\neach state found",
    "halves that no encoder\ncan tell apart\nare one state",
)


def run_for_spectrum(n: int, seed: int) -> Trace:
    """What CRAFT did with n trajectories per agent of the combination lock, if that can be drawn.

    The lock has three states a step, some of whose successors are shared.
    """
    world = LockExBMDP(horizon=4, n_features=8, seed=seed)
    policies = world.policies(alpha=1.0)
    known = population_assumptions(world, policies)
    oracle = FiniteOracle(world.encoders, world.n_values)
    model = CRAFT.paper(oracle, alpha=known.alpha.value, eta=known.eta.value, nu=known.nu.value)
    step = model.fit(collect(world, policies, n, seed).tau).trace_[2]
    if (most := max(len(step.spectra), step.n_states)) > MAX_STATES:
        raise InvalidParameterError(
            f"The schematic shows at most {MAX_STATES} states a step; the run with --seed {seed} and --n {n} has "
            f"{most}; give another seed, or more trajectories."
        )
    return model.trace_


# -- the two-step example ------------------------------------------------------------------------------------------


def draw_composition(path: Path, n: int, seed: int) -> None:
    """Left, the latent graph; middle, both agents' observations x_2 by state; right, DRAFT's loss of every encoder."""
    world = BitsExBMDP(horizon=2, n_features=64, seed=seed)
    data = collect(world, world.paper_policies(), n, seed)
    chosen = DRAFT(CoordinateOracle()).fit(data.tau).encoders_[2]
    state, agent = data.truth.states[:, 1], data.tau.agent
    gammas = [float((state[agent == k] == 1).mean()) for k in range(2)]  # of s_2, which agent A likes better than B
    with picture(path, 9.6, 3.0) as figure:
        graph, bars, losses = figure.subplots(1, 3, width_ratios=[0.75, 1.35, 1.25])
        graph.set(xlim=(0, 1), ylim=(0, 1))
        graph.axis("off")
        graph.set_title("latent states", loc="left")
        nodes = {"$s_1$": (0.2, 0.5, GREY), "$s_2$": (0.78, 0.76, ORANGE), "$s_2'$": (0.78, 0.24, BLUE)}
        for name, (x, y, colour) in nodes.items():
            if name != "$s_1$":
                arrow = {"arrowstyle": "->", "shrinkA": 14, "shrinkB": 14}
                graph.annotate("", (x, y), nodes["$s_1$"][:2], arrowprops=arrow)
            graph.plot(x, y, "o", ms=26, color=colour)
            graph.text(x, y, name, color="white", ha="center", va="center", fontsize=12)
        _draw_bars(bars, gammas, n)
        _draw_losses(losses, data, gammas, world.feature_accuracy(2), getattr(chosen, "feature", -1))


def _draw_bars(axes: Axes, gammas: list[float], n: int) -> None:
    for row, (agent, gamma) in enumerate(zip("AB", gammas)):
        left = 0.0
        for share, name, colour in zip((gamma, 1 - gamma), ("s_2", "s_2'"), STATES):
            axes.barh(row, share * n, left=left, color=colour, height=0.55, edgecolor="white")
            axes.text(left + share * n / 2, row, f"${name}$: {share * n:.0f}", color="white", ha="center", va="center")
            left += share * n
        axes.text(0.01 * n, row - 0.36, f"$\\gamma_{agent} = {gamma:.3f}$", fontsize=9, va="bottom")
    axes.set_yticks([0, 1], [r"$(\tau_A)_2$", r"$(\tau_B)_2$"], fontsize=11)
    axes.set(ylim=(1.45, -0.6), xlabel="observations $x_2$")
    axes.set_title("what each dataset is made of", loc="left")


def _draw_losses(axes: Axes, data: Collection, gammas: list[float], accuracy: NDArray[Any], chosen: int) -> None:
    """Empirical loss of every coordinate against its accuracy, and the line that the population loss lies on."""
    x, agent, gap = data.tau.at(2), data.tau.agent, gammas[0] - gammas[1]
    loss = x[agent == 0].mean(axis=0) + 1 - x[agent == 1].mean(axis=0)
    loss = np.minimum(loss, 2 - loss)  # the better of the two labellings
    line = np.array([0.5, 1.0])
    theory = 1 + gap - 2 * gap * line  # Equation 9: each share of errors costs gamma_A - gamma_B
    axes.plot(100 * line, theory, color=GREY, lw=1.2, label="infinite data", zorder=0)
    axes.plot(100 * accuracy, loss, "o", color=BLUE, ms=4, alpha=0.6, mew=0, label="each encoder")
    axes.plot(100 * accuracy[chosen], loss[chosen], "o", mfc="none", mec=RED, ms=11, mew=1.8, label="DRAFT's choice")
    axes.set(xlabel="accuracy as an encoder of $s_2$ (%)", ylabel="DRAFT's loss")
    axes.set_title("telling agents apart finds the state", loc="left")
    axes.legend(fontsize=8, loc="lower left")


# -- recursive DRAFT -----------------------------------------------------------------------------------------------


def draw_recursion(path: Path, n: int, seed: int) -> None:
    """Boxes are sets of trajectories, bars both agents' numbers in each true state; arrows are splits and merges.

    Each state's trajectories are split in two, and halves that look alike are merged (Section 3.1.1).
    """
    world = BitsExBMDP(horizon=3, n_features=64, seed=seed)
    data = collect(world, world.paper_policies(), n, seed)
    labels = RecursiveDRAFT(CoordinateOracle()).fit(data.tau).labels_
    second, third = labels[:, 1], labels[:, 2]
    style = {"arrowstyle": "-|>", "color": INK, "lw": 1, "shrinkA": 5, "shrinkB": 5, "mutation_scale": 10}
    with picture(path, 10, 4.4) as figure:
        axes = figure.subplots()
        axes.set(xlim=(0, 10), ylim=(0.05, 4.9))
        axes.axis("off")

        def box(name: str, stage: int, y: float, rows: NDArray[np.bool_], *tails: tuple[float, float]) -> Any:
            """Draw a box with arrows from others to it; where its own arrows begin."""
            counts = count_visits(data.tau.agent[rows], data.truth.states[rows, min(stage, 2)], sizes=(2, 2))
            for tail in tails:
                axes.annotate("", (COLUMNS[stage], y), tail, arrowprops=style)
            _draw_box(axes, name, COLUMNS[stage], y, counts, n, STATES if stage else (GREY, GREY))
            return COLUMNS[stage] + WIDTH, y

        start = box("all trajectories", 0, 2.0, second >= -1)
        of_state = [box(f"$s_2{s * PRIME}$", 1, 3 - 2 * s, second == s, start) for s in range(2)]
        halves = {
            (s, t): box(f"from $s_2{s * PRIME}$", 2, 3.5 - 2 * s - t, (second == s) & (third == t), of_state[s])
            for s in range(2)
            for t in range(2)
        }
        for t in range(2):
            box(f"$s_3{t * PRIME}$", 3, 3 - 2 * t, third == t, halves[0, t], halves[1, t])
        for x, text in zip(COLUMNS, STAGES):
            axes.text(x, 4.9, text, fontsize=8.5, va="top", linespacing=1.25)
        for k, colour in enumerate(STATES):
            axes.plot(0.2, 0.75 - 0.25 * k, "s", color=colour, ms=7)
            axes.text(0.35, 0.75 - 0.25 * k, f"true state {k}", fontsize=8.5, va="center")


def _draw_box(
    axes: Axes, name: str, x: float, y: float, counts: NDArray[Any], n: int, colours: tuple[str, str]
) -> None:
    """A box with one bar per agent, as long as its number of trajectories, in the colours of the true states."""
    from matplotlib.patches import FancyBboxPatch

    corner, style = (x, y - HEIGHT / 2), "round,pad=0.05"
    axes.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=style, facecolor="white", edgecolor=GREY, lw=1))
    axes.text(x, y + HEIGHT / 2 + 0.08, name, fontsize=10, va="bottom")
    for k, agent in enumerate("AB"):
        left, at = x + 0.25, y + 0.15 - 0.3 * k
        axes.text(x + 0.05, at, agent, fontsize=9, va="center")
        for number, colour in zip(counts[k], colours):
            axes.barh(at, number * 0.95 / n, left=left, height=0.22, color=colour)
            left += number * 0.95 / n
        axes.text(left + 0.06, at, f"{counts[k].sum():,}", fontsize=8, va="center")


# -- the command ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """No sweep, and so a command of its own."""

    name: str = "figures"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        number = "trajectories per agent (default: %(default)s)"
        parser.add_argument("--n", type=positive, default=2000, metavar="N", help=number)
        parser.add_argument("--seed", type=natural, default=1, metavar="N", help="default: %(default)s")
        parser.add_argument("--out", default="results/figures", metavar="DIR", help="default: %(default)s")
        example = "examples:\n  craftrl reproduce figures --n 500 --seed 3 --out results/other-figures\n\n"
        parser.epilog = example + "writes composition.png, recursive_draft.png and spectrum.png to DIR"

    def main(self, args: argparse.Namespace) -> None:
        out = check_target("The folder of the figures", args.out)
        trace = run_for_spectrum(args.n, args.seed)  # before anything is written, since not every run can be drawn
        check_writable(out)
        subtitle = f"a combination lock, {args.n:,} action-free trajectories per agent"
        draw_schematic(trace, out / "spectrum.png", h=2, subtitle=subtitle)
        draw_composition(out / "composition.png", args.n, args.seed)
        draw_recursion(out / "recursive_draft.png", args.n, args.seed)
        print(f"Written to {out}: composition.png, recursive_draft.png, spectrum.png.")


STUDY = Figures()
