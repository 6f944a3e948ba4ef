"""The paper's three figures, drawn from real runs.

Paper: Figures 1 (two-step example), 2 (recursive DRAFT) and 3 (schematic of CRAFT)
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx
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


def draw_composition(path: Path, n: int, seed: int) -> None:
    """Left, the latent graph; middle, both agents' observations x_2 by state; right, DRAFT's loss of every encoder."""
    world = BitsExBMDP(horizon=2, n_features=64, seed=seed)
    data = collect(world, world.paper_policies(), n, seed)
    chosen = DRAFT(CoordinateOracle()).fit(data.tau).encoders_[2]
    counts = count_visits(data.tau.agent, data.truth.states[:, 1])[:, ::-1]  # s_2 is what agent A likes better than B
    gammas = counts[:, 0] / n
    with picture(path, 9.6, 3.0) as figure:
        graph, bars, losses = figure.subplots(1, 3, width_ratios=[0.75, 1.35, 1.25])
        places = {"$s_1$": (0, 0), "$s_2$": (1, 1), "$s_2'$": (1, -1)}
        latent = networkx.DiGraph([("$s_1$", "$s_2$"), ("$s_1$", "$s_2'$")])
        looks = {"node_color": (GREY, *STATES), "node_size": 700, "font_color": "white"}
        networkx.draw_networkx(latent, places, ax=graph, **looks)
        graph.axis("off")
        graph.set_title("latent states", loc="left")
        graph.margins(0.3)
        _draw_bars(bars, counts, STATES, n)
        bars.set_yticks([0, 1], [rf"$(\tau_{agent})_2$, $\gamma = {g:.3f}$" for agent, g in zip("AB", gammas)])
        bars.set(xlabel="observations $x_2$")
        bars.set_title("what each dataset is made of", loc="left")
        _draw_losses(losses, data, gammas, world.feature_accuracy(2), getattr(chosen, "feature", -1))


def _draw_bars(axes: Axes, counts: NDArray[Any], colours: tuple[str, str], n: int) -> None:
    """Both agents' numbers of trajectories, of n in all, in each of two states."""
    for state, (number, left, colour) in enumerate(zip(counts.T, (0 * counts[:, 0], counts[:, 0]), colours)):
        bars = axes.barh((0, 1), number, left=left, color=colour, height=0.6, label=f"true state {state}")
        shown = [f"{m:,}" if m > 0.1 * n else "" for m in number]
        axes.bar_label(bars, shown, label_type="center", color="white", fontsize=8)
    axes.set_yticks((0, 1), ("A", "B"))
    axes.invert_yaxis()


def _draw_losses(axes: Axes, data: Collection, gammas: NDArray[Any], accuracy: NDArray[Any], chosen: int) -> None:
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


def draw_recursion(path: Path, n: int, seed: int) -> None:
    """Boxes are sets of trajectories, bars both agents' numbers in each true state; arrows are splits and merges.

    Each state's trajectories are split in two, and halves that look alike are merged (Section 3.1.1).
    """
    from matplotlib.patches import ConnectionPatch

    world = BitsExBMDP(horizon=3, n_features=64, seed=seed)
    data = collect(world, world.paper_policies(), n, seed)
    second, third = RecursiveDRAFT(CoordinateOracle()).fit(data.tau).labels_[:, 1:].T
    prime = ("", "'")
    with picture(path, 10, 4.4) as figure:
        figure.set_layout_engine("constrained", wspace=0.3)  # room for the arrows
        grid = figure.add_gridspec(4, 4)

        def box(name: str, stage: int, rows: slice, inside: NDArray[np.bool_], *tails: Axes) -> Axes:
            """Draw a set of trajectories, with arrows from others to it."""
            axes = figure.add_subplot(grid[rows, stage])
            counts = count_visits(data.tau.agent[inside], data.truth.states[inside, min(stage, 2)], sizes=(2, 2))
            _draw_bars(axes, counts, STATES if stage else (GREY, GREY), n)
            axes.set(xticks=[], xlim=(0, n))
            axes.set_title(name, loc="left", fontsize=9)
            for tail in tails:
                a, b = tail.transAxes, axes.transAxes
                figure.add_artist(ConnectionPatch((1.02, 0.5), (-0.12, 0.5), a, b, arrowstyle="-|>", color=INK))
            return axes

        start = box(f"{STAGES[0]}\nall trajectories", 0, slice(1, 3), second >= -1)
        merged = []
        for s in (0, 1):
            top = [f"{stage}\n" if s == 0 else "" for stage in STAGES]
            state = box(f"{top[1]}$s_2{prime[s]}$", 1, slice(2 * s, 2 * s + 2), second == s, start)
            for t in (0, 1):
                name, half = f"{top[2] if t == 0 else ''}from $s_2{prime[s]}$", (second == s) & (third == t)
                merged.append((t, box(name, 2, slice(2 * s + t, 2 * s + t + 1), half, state)))
        for t in (0, 1):
            name, halves = f"{STAGES[3]}\n" * (t == 0) + f"$s_3{prime[t]}$", (axes for i, axes in merged if i == t)
            last = box(name, 3, slice(2 * t, 2 * t + 2), third == t, *halves)
        figure.legend(*last.get_legend_handles_labels(), loc="lower left")


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
