"""Rows to curves: the share of wrong labels against h."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Estimate, Row, estimate
from studies.error_growth.spec import LEARNERS, SCENARIOS

__all__ = ["Curve", "curves", "curves_json", "format_curves", "report"]


@dataclass(frozen=True)
class Curve:
    """One learner in one scenario: estimates at h = 1..H, and behind them the wrong labels of each seed, (seeds, H)."""

    scenario: str
    learner: str
    wrong: tuple[Estimate, ...]
    unassigned: tuple[Estimate, ...]
    seeds: tuple[tuple[float, ...], ...]


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write curves.json; the shares of wrong labels at some steps."""
    found = curves(rows)
    write_json(out / "curves.json", curves_json(found))
    return format_curves(found)


def curves(rows: Sequence[Row]) -> list[Curve]:
    """One curve for each learner in each scenario."""
    return [_curve(scenario, learner, rows) for scenario in SCENARIOS for learner in LEARNERS]


def _curve(scenario: str, learner: str, rows: Sequence[Row]) -> Curve:
    mine = [row for row in rows if row["scenario"] == scenario and row["learner"] == learner]
    wrong, unassigned = (tuple(map(estimate, zip(*(row[key] for row in mine)))) for key in ("wrong", "unassigned"))
    return Curve(scenario, learner, wrong, unassigned, tuple(tuple(row["wrong"]) for row in mine))


def curves_json(found: Sequence[Curve]) -> dict[str, Any]:
    """The curves as plain values; the seeds' own are in the rows."""
    return {"curves": [{k: v for k, v in asdict(curve).items() if k != "seeds"} for curve in found]}


def format_curves(found: Sequence[Curve]) -> str:
    """Wrong labels in percent at some steps, one line per learner and scenario."""
    H = len(found[0].wrong)
    steps = sorted(h for h in {2, 3, *range(5, H, 5), H} if h <= H)
    lines = [" ".join(["wrong labels in percent at h =".ljust(50), *(f"{h:6d}" for h in steps)])]
    for curve in found:
        name = f"{SCENARIOS[curve.scenario].title:<34} {LEARNERS[curve.learner]}"
        lines.append(" ".join([name.ljust(50), *(f"{100 * curve.wrong[h - 1].mean:6.2f}" for h in steps)]))
    return "\n".join(lines)
