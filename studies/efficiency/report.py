"""Rows to curves: accuracy against the number of trajectories, for every method in every world."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.data.files import write_json
from craftrl.paper import chance_accuracy
from craftrl.paper.sweep import Estimate, Row, estimate
from craftrl.paper.table1 import CHANCE
from studies.efficiency.population import limits
from studies.efficiency.spec import EXCESS, FRESH, LEARNERS, NAMES, OTHERS, WORLDS, Run
from studies.efficiency.worlds import make_agents, make_world
from studies.statistics import half_of

__all__ = ["Curve", "chance_of_worlds", "curves", "curves_json", "format_curves", "gain_over_independent", "report"]


@dataclass(frozen=True)
class Curve:
    """One method in one world: an estimate for each size, and behind it the accuracy of each seed.

    state_mean              of single states: averaged over the states of a step, then over h = 2..H
    state_worst             accuracy in the worst state at the worst step of a run
    right_counts, assigned  means over seeds for learners, () for yardsticks

    Rows of older versions have no single states: () then.
    """

    world: str
    method: str
    sizes: tuple[int, ...]
    accuracy: tuple[Estimate, ...]
    seeds: tuple[tuple[float, ...], ...]
    state_mean: tuple[Estimate, ...]
    state_worst: tuple[Estimate, ...]
    right_counts: tuple[float, ...]
    assigned: tuple[float, ...]


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write curves.json; accuracy for each size, and what chains of codes earn with infinite data."""
    found, chance, population = curves(rows), chance_of_worlds(rows), limits()
    write_json(out / "curves.json", {"chance": chance, "curves": curves_json(found), "population": population})
    title = f"Accuracy in percent, 95% interval over {args.seeds} seeds; columns: trajectories per agent"
    limit = "With infinite data, total loss of the rival less that of the true chain, in nats per trajectory:"
    lines = [f"  {name.ljust(30)} {row['rival_minus_true']:+.4f}" for name, row in population.items()]
    return "\n".join([title, "", format_curves(found, chance), "", *_states(found), limit, *lines])


def chance_of_worlds(rows: Sequence[Row]) -> dict[str, float]:
    """For each world what chance scores there, averaged over h = 1..H and over seeds; it follows from the settings."""
    names = [field.name for field in fields(Run)]
    runs = dict.fromkeys(Run(**{name: row[name] for name in names if name != "size"}, size=0) for row in rows)
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.world, []).append(_chance(run))
    return {world: float(np.mean(shares)) for world, shares in found.items()}


@lru_cache(maxsize=1024)
def _chance(run: Run) -> float:
    world = make_world(run)
    return float(chance_accuracy(world, make_agents(run, world)).mean())


def curves(rows: Sequence[Row]) -> list[Curve]:
    """All methods of all worlds that there are rows of."""
    found = []
    for world in dict.fromkeys(row["world"] for row in rows):
        mine = [row for row in rows if row["world"] == world]
        order = [*NAMES, *(method for method in mine[0]["accuracy"] if method not in NAMES)]
        found += [_curve(world, method, mine) for method in order if method in mine[0]["accuracy"]]
    return found


def _curve(world: str, method: str, rows: Sequence[Row]) -> Curve:
    sizes = tuple(sorted({row["size"] for row in rows}))
    at = [[row for row in rows if row["size"] == size] for size in sizes]
    seeds = tuple(tuple(row["accuracy"][method] for row in some) for some in at)
    means = {
        key: tuple(estimate([row[key][method] for row in some]).mean for some in at) if method in at[0][0][key] else ()
        for key in ("right_counts", "assigned")
    }
    return Curve(
        world,
        method,
        sizes,
        accuracy=tuple(map(estimate, seeds)),
        seeds=seeds,
        state_mean=_single(at, "state_mean", method),
        state_worst=_single(at, "state_worst", method),
        **means,
    )


def _single(at: Sequence[Sequence[Row]], key: str, method: str) -> tuple[Estimate, ...]:
    """One measure of single states for the rows at each size; () where rows were made before it was."""
    return tuple(estimate([row[key][method] for row in some]) for some in at) if key in at[0][0] else ()


def gain_over_independent(found: Sequence[Curve], method: str, world: str = "paper") -> tuple[Estimate, ...]:
    """Accuracy less that of the paper's CRAFT on the same data, for each size: paired, seed by seed."""
    by_method = {curve.method: curve for curve in found if curve.world == world}
    pairs = zip(by_method[method].seeds, by_method["independent"].seeds)
    return tuple(estimate([ours - theirs for ours, theirs in zip(*two)], least=-1.0) for two in pairs)


def curves_json(found: Sequence[Curve]) -> list[dict[str, Any]]:
    """The curves as plain values; accuracies are shares, not percent. The seeds' own are in the rows."""
    plain = [{key: value for key, value in asdict(curve).items() if key != "seeds"} for curve in found]
    return [{k: v for k, v in curve.items() if v or not k.startswith("state_")} for curve in plain]


def format_curves(found: Sequence[Curve], chance: Mapping[str, float]) -> str:
    """One block per world, one line per method, one column per size: mean and half-width of the 95% interval."""
    blocks = []
    for world in dict.fromkeys(curve.world for curve in found):
        mine = [curve for curve in found if curve.world == world]
        title = _title(world)
        lines = [" ".join([title.ljust(58), *(f"{size:>12,}" for size in mine[0].sizes)])]
        for curve in mine:
            name = curve.method if world in EXCESS else NAMES[curve.method]
            lines.append(" ".join([f"  {name}".ljust(58), *map(_text, curve.accuracy)]))
        lines.append(_chance_line(world, chance[world], len(mine[0].sizes)))
        if world not in EXCESS:
            lines += _gain_lines(found, world)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _states(found: Sequence[Curve]) -> list[str]:
    """Lines on single states, in the layout of the curves; none where they were not measured."""
    measured = [curve for curve in found if curve.state_mean]
    if not measured:
        return []
    lines = [
        "Single states at h = 2..H, in percent: mean over states and steps / worst state of a run; means over seeds"
    ]
    for curve in measured:
        name = f"  {curve.world}: {curve.method}".ljust(58)
        cells = (f"{100 * m.mean:.1f}/{100 * w.mean:.1f}" for m, w in zip(curve.state_mean, curve.state_worst))
        lines.append(" ".join([name, *(cell.rjust(12) for cell in cells)]))
    return [*lines, ""]


def _chance_line(world: str, chance: float, n_sizes: int) -> str:
    name = "chance: one state" if world == "lock" else CHANCE
    return " ".join([f"  {name}".ljust(58), *[f"{100 * chance:6.2f}".ljust(12)] * n_sizes]).rstrip()


def _title(world: str) -> str:
    if world in EXCESS:
        return f"class of four values, balanced agents: {world}"
    return f"{WORLDS[FRESH[world]]}; fresh seeds" if world in FRESH else (WORLDS | OTHERS)[world]


def _gain_lines(found: Sequence[Curve], world: str) -> list[str]:
    return [
        " ".join([f"  {method} less independent, same data".ljust(58), *map(_text, gains)])
        for method in LEARNERS
        if method != "independent"
        for gains in [gain_over_independent(found, method, world)]
    ]


def _text(of: Estimate) -> str:
    return f"{100 * of.mean:6.2f} ±{100 * half_of(of):4.1f}"
