"""Rows to tables and curves: success against labels and against environment steps, what 95% takes, latent actions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.paper.sweep import Row
from examples.goals import steps_to
from studies.planning.spec import NAMES
from studies.tables import draw_curves, grouped, mean, right, table

SOURCES = {"offline": "random labels", "online": "explored steps"}  # transitions of the videos; chosen by `explore`
LEVEL = 0.95  # success from which on goals count as reached


def report(rows: Sequence[Row]) -> str:
    """For each world one table for each source of labels; learners from rewards; latent actions."""
    points, blocks = _points(rows), []
    for (panel,), mine in grouped(points, "panel").items():
        luck = [{**point, "name": "random actions", "accuracy": point["chance"]} for point in mine]
        once = {(point["seed"], point["labels"]): point for point in luck}
        blocks += [f"**{panel}.** Goals reached, %.", table([*mine, *once.values()], "name", "labels", right)]
    if points:
        blocks += ["**Labels or steps from which on 95% are reached.**", table(points, "panel", "name", _enough)]
    learned = [{**row, "technique": NAMES[row["technique"]]} for row in rows if "steps_needed" in row]
    if learned:
        blocks += [
            "**Environment steps to 95%; moves to the goal.**",
            table(learned, "technique world", "", _taken, [""]),
        ]
    if curves := [row for row in rows if "learner" in row]:  # of policies.py
        cells = table(curves, "learner", "goal", lambda of: _listed([row["steps_to_95"] for row in of]))
        blocks += ["**Environment steps to 95%, by seed.**", cells]
    if named := [{**row, "accuracy": row["agreement"]["by_group"]} for row in rows if "agreement" in row]:
        cells = table(named, "technique", "world size walkers", right)
        blocks += [
            "**Latent actions that are the true ones, %**, up to one relabelling in each group of states.",
            cells,
        ]
    return "\n\n".join(blocks)


def _enough(points: Sequence[Row]) -> str:
    curve = [(k, mean(of, "accuracy")) for (k,), of in sorted(grouped(points, "labels").items())]
    return _listed([steps_to(LEVEL, curve)])


def _taken(rows: Sequence[Row]) -> str:
    steps = [row["steps_needed"] or f"more than {row['steps_tried'][-1]:,}" for row in rows]
    return f"{_listed(steps)}; {_listed([row['goal_distance'] for row in rows])}"


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(
        "never" if value is None else f"{value:,}" if isinstance(value, int) else value for value in values
    )


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Success against labels: a panel for each world and source, a curve for each technique."""
    points = sorted(_points(rows), key=lambda point: point["name"].startswith("CRAFT"))  # drawn last, on top
    chance = {panel: mean(of, "chance") for (panel,), of in grouped(points, "panel").items()}
    path, panel, name = folder / "planning.png", lambda p: p["panel"], lambda p: p["name"]
    draw_curves(points, path, panel, name, "labels", "labels or steps", chance, "goals reached (%)")


def _points(rows: Sequence[Row]) -> list[Row]:
    """One for each run, source and number of labels."""
    return [
        {
            "panel": f"{row['world']}, {row['walkers']} walkers: {what}",
            "seed": row["seed"],
            "name": NAMES[row["technique"]] + (", latent actions" if ending else ""),
            "labels": k,
            "accuracy": success,
            "chance": row["chance"],
        }
        for source, what in SOURCES.items()
        for row in rows
        for ending in ("", "_latent")
        if source + ending in row
        for k, success in zip(row["labels"], row[source + ending])
    ]
