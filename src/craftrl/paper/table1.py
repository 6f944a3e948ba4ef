"""The paper's Table 1, ours beside the published numbers: which runs, one run, and what is told of all of them.

Numerical packages are imported by the functions that need them, so that `craftrl reproduce table1 --help` answers at
once.

Paper: Section 4, Table 1, Appendix D
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from craftrl.arguments import positive
from craftrl.data.files import write_json
from craftrl.paper.sweep import FEWEST, Estimate, Row, Study, estimate, seed_of

__all__ = ["CHANCE", "NAMES", "PUBLISHED", "STUDY", "Cell", "Run", "cells", "run_one", "sweep", "toy_chance"]

NAMES = {"craft": "CRAFT", "single": "Single observation", "paired": "Paired observation"}
SIZES, SEEDS = (500, 1000, 5000), 20
PUBLISHED = {
    **{("craft", 500): 0.864, ("craft", 1000): 0.977, ("craft", 5000): 0.999},
    **{("single", 500): 0.678, ("single", 1000): 0.687, ("single", 5000): 0.697},
    **{("paired", 500): 0.874, ("paired", 1000): 0.861, ("paired", 5000): 0.821},
}
LOWER_BOUND = ("craft", 5000)  # "> 99.9%"
# The toy world's population values (Appendix D); population_assumptions computes them from the world.
ALPHA, ETA, NU = math.log(3), 1 / 5, 5 / 32
READING = (
    "Accuracy is averaged over h = 1..H. At h = 1 there is one state: every technique is right there, as CRAFT's "
    "constant encoder is. Leaving h = 1 out lowers the baselines by about one point."
)
STATES = "Single states at h = 2..H, in percent: mean over states and steps / worst state of a run; means over seeds"
NO_STATE = "CRAFT, 50% where no state"
CHANCE = "chance: a random feature"
MEASURES = ("accuracy", "accuracy_from_2", "state_mean", "state_worst", "accuracy_no_state_half")


@dataclass(frozen=True)
class Run:
    """One fit: which technique, on how many trajectories per agent, with which seed, in which toy world."""

    technique: str
    size: int
    seed: int
    horizon: int = 30
    n_features: int = 128


def sweep(sizes: Iterable[int], n_seeds: int, horizon: int, n_features: int) -> list[Run]:
    """All techniques at all sizes, seed by seed, so that an unfinished sweep has seen every cell."""
    return [
        Run(technique, size, seed, horizon, n_features)
        for seed in range(n_seeds)
        for size in dict.fromkeys(sizes)
        for technique in NAMES
    ]


def run_one(run: Run) -> dict[str, Any]:
    """Sample, fit, and score by the chains' analytic marginals: accuracy averaged over h = 1..H and over h = 2..H,
    that of single states, and what CRAFT met on the way.

    accuracy_no_state_half  of CRAFT: the same as `accuracy`, with 1/2 for each step at which CRAFT found no state. Line
                            46 then returns the first encoder of the class, which in this world is better than that.

    The world depends on the seed alone, the trajectories on seed and size: all techniques see the same data.

    Paper: Section 4, Appendix D
    """
    import numpy as np

    from craftrl import CRAFT, CoordinateOracle
    from craftrl.envs import BitsExBMDP, collect
    from craftrl.paper.baselines import PairedObservation, SingleObservation
    from craftrl.states.accuracy import population_accuracy, population_state_accuracies, state_summary

    world = BitsExBMDP(run.horizon, run.n_features, run.seed)
    rng = np.random.default_rng(seed_of("table1", run.horizon, run.n_features, run.size, run.seed))
    tau = collect(world, world.paper_policies(), run.size, seed=rng).tau
    model: CRAFT | SingleObservation | PairedObservation
    if run.technique == "craft":
        model = CRAFT.paper(CoordinateOracle(), alpha=ALPHA, eta=ETA, nu=NU).fit(tau)
    else:
        model = {"single": SingleObservation, "paired": PairedObservation}[run.technique](CoordinateOracle()).fit(tau)
    encoders = lambda h: model.candidates_[h] if isinstance(model, PairedObservation) else [model.encoders_[h]]  # noqa: E731
    accuracy = population_accuracy(encoders, world)
    result = {
        "accuracy": float(accuracy.mean()),
        "accuracy_from_2": float(accuracy[1:].mean()),
        **state_summary(population_state_accuracies(encoders, world)),
    }
    if isinstance(model, CRAFT):
        outcomes = model.trace_.outcomes()
        accuracy[[h - 1 for h in outcomes.get("no state", ())]] = 0.5
        result["accuracy_no_state_half"] = float(accuracy.mean())
        result |= {f"steps_with_{kind.replace(' ', '_')}": len(steps) for kind, steps in sorted(outcomes.items())}
        result["assigned_at_end"] = model.trace_.steps[-1].assigned
    return result


@dataclass(frozen=True)
class Cell:
    """One technique at one size: the paper's accuracy, where it has this cell, and means over our seeds of what
    `run_one` gives."""

    technique: str
    size: int
    published: float | None
    accuracy: Estimate
    accuracy_from_2: Estimate
    state_mean: Estimate
    state_worst: Estimate
    accuracy_no_state_half: Estimate | None = None

    @property
    def is_bound(self) -> bool:
        """Whether the paper's number is a bound from below."""
        return (self.technique, self.size) == LOWER_BOUND

    @property
    def apart(self) -> float | None:
        """Ours minus the paper's, in standard errors of that difference; 0 where a bound holds.

        The paper gives no deviation: its runs are taken to scatter as ours do. None where ours are too few for that.
        """
        ours = self.accuracy
        error = ours.deviation * math.sqrt(1 / ours.n + 1 / SEEDS)
        if self.published is None or ours.interval is None or error == 0:
            return None
        return 0.0 if self.is_bound and ours.mean > self.published else (ours.mean - self.published) / error


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell per technique and size, in the table's order."""
    found = []
    for technique in NAMES:
        for size in sorted({row["size"] for row in rows}):
            mine = [row for row in rows if (row["technique"], row["size"]) == (technique, size)]
            in_paper = (mine[0]["horizon"], mine[0]["n_features"]) == (Run.horizon, Run.n_features)
            published = PUBLISHED.get((technique, size)) if in_paper else None
            of = {name: estimate([row[name] for row in mine]) for name in MEASURES if name in mine[0]}
            found.append(Cell(technique, size, published, **of))
    return found


def toy_chance(rows: Sequence[Row]) -> float:
    """Accuracy of a feature drawn at random, averaged over h = 1..H and over the worlds of these rows.

    No run is needed for it: a world follows from `horizon`, `n_features` and `seed` of a row.
    """
    import numpy as np

    from craftrl.envs import BitsExBMDP
    from craftrl.paper.theorem import chance_accuracy

    worlds = [BitsExBMDP(*of) for of in sorted({(row["horizon"], row["n_features"], row["seed"]) for row in rows})]
    return float(np.mean([chance_accuracy(world, world.paper_policies()).mean() for world in worlds]))


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; the table beside the paper's, and how far they agree."""
    table, chance = cells(rows), toy_chance(rows)
    world = f"--horizon {args.horizon} --features {args.features}"
    command = f"craftrl reproduce table1 --seeds {args.seeds} --sizes {' '.join(map(str, args.sizes))} {world}"
    write_json(out / "table.json", table_json(table, chance, command))
    title = f"Average encoder accuracy in percent, H = {args.horizon}, M = {args.features}, {args.seeds} seeds"
    return f"{title}\n\n{format_table(table, chance)}\n\n{agreement(table)}\n{READING}\n\n{format_states(table)}"


def table_json(table: Sequence[Cell], chance: float, command: str) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, not percent."""
    plain = [{**asdict(cell), "standard_errors_apart": cell.apart} for cell in table]
    return {"command": command, "reading": READING, "chance": chance, "cells": plain}


def agreement(table: Sequence[Cell]) -> str:
    """How many cells agree with the paper, and which do not."""
    if (seeds := table[0].accuracy.n) < FEWEST:
        return f"Too few seeds for intervals, and for a comparison with the paper: {seeds} of {FEWEST}."
    judged = [(cell, cell.apart) for cell in table if cell.apart is not None]
    if not judged:
        return "The paper has no number for these cells."
    far = [f"{NAMES[cell.technique]} at {cell.size} ({apart:+.1f})" for cell, apart in judged if abs(apart) > 2]
    text = f"{len(judged) - len(far)} of {len(judged)} cells lie within two standard errors of the paper's"
    return f"{text}; not: {', '.join(far)} (docs/reproduction.md says more)." if far else f"{text}."


def format_table(table: Sequence[Cell], chance: float) -> str:
    """Aligned text: one line per technique and one of chance, one column per size."""

    def text(ours: Estimate, paper: str = "") -> str:
        interval = "" if ours.interval is None else "[{:6.2f}, {:6.2f}]".format(*(100 * x for x in ours.interval))
        return f"{100 * ours.mean:6.2f} {interval:16} {paper:>5}  "

    grid = {(" ", cell.size): "ours [95% interval] paper" for cell in table}
    for cell in table:
        paper = f"{'>' * cell.is_bound}{100 * cell.published:.1f}" if cell.published else ""
        grid[cell.technique, cell.size] = text(cell.accuracy, paper)
    halved = {(NO_STATE, c.size): text(c.accuracy_no_state_half) for c in table if c.accuracy_no_state_half}
    return _aligned(grid | halved | {(CHANCE, cell.size): f"{100 * chance:6.2f}" for cell in table})


def format_states(table: Sequence[Cell]) -> str:
    """The same for single states."""
    shares = {(c.technique, c.size): f"{100 * c.state_mean.mean:6.2f} / {100 * c.state_worst.mean:5.2f}" for c in table}
    return f"{STATES}\n\n{_aligned(shares)}"


def _aligned(grid: dict[tuple[str, int], str]) -> str:
    """Lines of cells by (line, size), under the sizes."""
    sizes, names = (list(dict.fromkeys(keys)) for keys in zip(*((size, name) for name, size in grid)))
    head, width = "trajectories per agent", max(map(len, grid.values()))
    first = max(len(head), *(len(NAMES.get(name, name)) for name in names))
    lines = [[head.ljust(first), *(str(size).center(width) for size in sizes)]]
    lines += [[NAMES.get(n, n).ljust(first), *(grid[n, size].ljust(width) for size in sizes)] for n in names]
    return "\n".join(" ".join(line).rstrip() for line in lines)


def draw(rows: list[Row], out: Path, args: argparse.Namespace) -> None:
    """One column per size, one colour and marker per technique with its interval; the paper's numbers and chance."""
    from craftrl.plots.style import BLUE, GREEN, INK, RED, chance_line, picture

    style = {"craft": ("o", BLUE), "single": ("s", GREEN), "paired": ("^", RED)}
    table = cells(rows)
    sizes = list(dict.fromkeys(cell.size for cell in table))
    with picture(out / "table1.png", 6.4, 3.6) as figure:
        axes = figure.subplots()
        for cell in table:
            x = sizes.index(cell.size) + 0.22 * (list(NAMES).index(cell.technique) - 1)
            mean = cell.accuracy.mean
            low, high = cell.accuracy.interval or (mean, mean)
            error = [[100 * (mean - low)], [100 * (high - mean)]]
            marker, colour = style[cell.technique]
            label = NAMES[cell.technique] if cell.size == sizes[0] else None
            axes.errorbar(x, 100 * mean, yerr=error, fmt=marker, color=colour, capsize=3, label=label)
            if cell.published is not None:
                axes.plot(x + 0.07, 100 * cell.published, "D", mfc="white", mec=INK, ms=4.5, zorder=3)
        chance_line(axes, toy_chance(rows), CHANCE)
        axes.plot([], [], "D", mfc="white", mec=INK, ms=4.5, label="paper")
        axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_xlabel("trajectories per agent")
        axes.set_ylabel("encoder accuracy, mean over h (%)")
        axes.set_title(f"Table 1: mean and 95% interval over {table[0].accuracy.n} seeds", loc="left")
        axes.grid(axis="y", alpha=0.25)
        figure.legend(loc="outside right center")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", type=positive, nargs="+", default=list(SIZES), metavar="N", help="trajectories per agent"
    )
    parser.add_argument("--horizon", type=positive, default=Run.horizon, metavar="H", help="default: %(default)s")
    parser.add_argument("--features", type=positive, default=Run.n_features, metavar="M", help="default: %(default)s")


STUDY = Study(
    name="table1",
    summary="the paper's Table 1 beside ours: CRAFT and its two shortcuts",
    seeds=SEEDS,
    runs=lambda args: sweep(args.sizes, args.seeds, args.horizon, args.features),
    run_one=run_one,
    report=report,
    draw=draw,
    writes=("table.json", "table1.png"),
    options=_options,
    examples=("--seeds 12 --workers 2", "--seeds 20 --sizes 500 1000 5000 --workers 2 --out results/table1"),
)
