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
from functools import lru_cache
from pathlib import Path
from typing import Any

from craftrl.arguments import positive
from craftrl.data.files import write_json
from craftrl.paper.sweep import FEWEST, Row, Study, estimate, seed_of

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
    """One technique at one size: means over seeds with 95% intervals, and the paper's number beside them.

    published                      the paper's accuracy, where it has this cell
    difference_in_standard_errors  ours minus the paper's, over the standard error of that difference; 0 where a bound
                                   holds, None where seeds are too few or do not differ
    state_mean, state_worst        accuracy of single states, averaged over states and h = 2..H; in the worst state at
                                   the worst step of a run
    no_state_half                  of CRAFT: the accuracy if a step at which it found no state counts as 1/2
    """

    technique: str
    size: int
    seeds: int
    mean: float
    interval: tuple[float, float] | None
    standard_error: float
    published: float | None
    published_is_lower_bound: bool
    difference_in_standard_errors: float | None
    mean_without_h1: float
    state_mean: float
    state_worst: float
    no_state_half: float | None
    no_state_half_interval: tuple[float, float] | None


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell per technique and size, in the table's order."""
    sizes = sorted({row["size"] for row in rows})
    return [_cell(technique, size, rows) for technique in NAMES for size in sizes]


def _cell(technique: str, size: int, rows: Sequence[Row]) -> Cell:
    mine = [row for row in rows if row["technique"] == technique and row["size"] == size]
    measures = ("accuracy", "accuracy_from_2", "state_mean", "state_worst", "accuracy_no_state_half")
    of = {name: estimate([row[name] for row in mine]) for name in measures if name in mine[0]}
    ours, halved = of["accuracy"], of.get("accuracy_no_state_half")
    in_paper = (mine[0]["horizon"], mine[0]["n_features"]) == (Run.horizon, Run.n_features)
    published, is_bound = PUBLISHED.get((technique, size)) if in_paper else None, (technique, size) == LOWER_BOUND
    # The paper gives no deviation: its runs are taken to scatter as ours do.
    error = ours.deviation * math.sqrt(1 / ours.n + 1 / SEEDS)
    apart = None
    if published is not None and ours.n >= FEWEST and error > 0:
        apart = 0.0 if is_bound and ours.mean > published else (ours.mean - published) / error
    return Cell(
        technique=technique,
        size=size,
        seeds=ours.n,
        mean=ours.mean,
        interval=ours.interval,
        standard_error=ours.standard_error,
        published=published,
        published_is_lower_bound=is_bound,
        difference_in_standard_errors=apart,
        mean_without_h1=of["accuracy_from_2"].mean,
        state_mean=of["state_mean"].mean,
        state_worst=of["state_worst"].mean,
        no_state_half=halved.mean if halved else None,
        no_state_half_interval=halved.interval if halved else None,
    )


def toy_chance(rows: Sequence[Row]) -> float:
    """Accuracy of a feature drawn at random, averaged over h = 1..H and over the worlds of these rows.

    No run is needed for it: a world follows from `horizon`, `n_features` and `seed` of a row.
    """
    import numpy as np

    worlds = sorted({(row["horizon"], row["n_features"], row["seed"]) for row in rows})
    return float(np.mean([_chance_of_world(*world) for world in worlds]))


@lru_cache(maxsize=1024)
def _chance_of_world(horizon: int, n_features: int, seed: int) -> float:
    from craftrl.envs import BitsExBMDP
    from craftrl.paper.theorem import chance_accuracy

    world = BitsExBMDP(horizon, n_features, seed)
    return float(chance_accuracy(world, world.paper_policies()).mean())


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
    return {"command": command, "reading": READING, "chance": chance, "cells": [asdict(cell) for cell in table]}


def agreement(table: Sequence[Cell]) -> str:
    """How many cells agree with the paper, and which do not."""
    if table[0].seeds < FEWEST:
        return f"Too few seeds for intervals, and for a comparison with the paper: {table[0].seeds} of {FEWEST}."
    judged = [(of, apart) for of in table if (apart := of.difference_in_standard_errors) is not None]
    if not judged:
        return "The paper has no number for these cells."
    far = [f"{NAMES[of.technique]} at {of.size} ({apart:+.1f})" for of, apart in judged if abs(apart) > 2]
    text = f"{len(judged) - len(far)} of {len(judged)} cells lie within two standard errors of the paper's"
    return f"{text}; not: {', '.join(far)} (docs/reproduction.md says more)." if far else f"{text}."


def format_table(table: Sequence[Cell], chance: float) -> str:
    """Aligned text: one line per technique and one of chance, one column per size."""

    def text(mean: float, interval: tuple[float, float] | None, paper: str = "") -> str:
        between = "[{:6.2f}, {:6.2f}]".format(*(100 * end for end in interval)) if interval else ""
        return f"{100 * mean:6.2f} {between:16} {paper:>5}  "

    grid = {(" ", cell.size): "ours [95% interval] paper" for cell in table}
    for cell in table:
        paper = f"{'>' * cell.published_is_lower_bound}{100 * cell.published:.1f}" if cell.published else ""
        grid[cell.technique, cell.size] = text(cell.mean, cell.interval, paper)
    for cell in table:
        if cell.no_state_half is not None:
            grid[NO_STATE, cell.size] = text(cell.no_state_half, cell.no_state_half_interval)
    return _aligned(grid | {(CHANCE, cell.size): f"{100 * chance:6.2f}" for cell in table})


def format_states(table: Sequence[Cell]) -> str:
    """The same for single states."""
    shares = {(c.technique, c.size): f"{100 * c.state_mean:6.2f} / {100 * c.state_worst:5.2f}" for c in table}
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
            low, high = cell.interval or (cell.mean, cell.mean)
            error = [[100 * (cell.mean - low)], [100 * (high - cell.mean)]]
            marker, colour = style[cell.technique]
            label = NAMES[cell.technique] if cell.size == sizes[0] else None
            axes.errorbar(x, 100 * cell.mean, yerr=error, fmt=marker, color=colour, capsize=3, label=label)
            if cell.published is not None:
                axes.plot(x + 0.07, 100 * cell.published, "D", mfc="white", mec=INK, ms=4.5, zorder=3)
        chance_line(axes, toy_chance(rows), CHANCE)
        axes.plot([], [], "D", mfc="white", mec=INK, ms=4.5, label="paper")
        axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_xlabel("trajectories per agent")
        axes.set_ylabel("encoder accuracy, mean over h (%)")
        axes.set_title(f"Table 1: mean and 95% interval over {table[0].seeds} seeds", loc="left")
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
