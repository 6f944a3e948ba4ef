"""Rows to tables and curves: success against labels and against environment steps, what 95% takes, latent actions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from craftrl.paper.sweep import Row
from studies.planning.spec import NAMES
from studies.tables import draw_curves, grouped, markdown, mean, mean_text, pivot

__all__ = ["draw", "needed", "report"]

SOURCES = {"offline": "random labels", "online": "explored steps"}  # transitions of the videos; chosen by `explore`
LEVEL = 0.95


def report(rows: Sequence[Row]) -> str:
    """For each world one table for each source of labels; learners from rewards; latent actions."""
    blocks = []
    for (world, source), mine in grouped(_points(rows), "panel", "source").items():
        labels = sorted({point["labels"] for point in mine})
        lines = []
        for (name,), of in grouped(mine, "name").items():
            by_label = [[point["accuracy"] for point in of if point["labels"] == k] for k in labels]
            enough = needed(labels, [sum(values) / len(values) for values in by_label])
            lines.append([name, *map(mean_text, by_label), "never" if enough is None else str(enough)])
        lines.append(["random actions", *[mean_text([point["chance"] for point in mine])] * len(labels), ""])
        head = ["labels" if source == "offline" else "steps", *map(str, labels), "for 95%"]
        blocks += [f"**{world}.** Goals reached, %.", markdown(head, lines)]
    learned = [row for row in rows if "steps_needed" in row]
    for (world, technique), mine in grouped(learned, "world", "technique").items():
        steps = ", ".join(
            f"more than {row['steps_tried'][-1]:,}" if row["steps_needed"] is None else f"{row['steps_needed']:,}"
            for row in mine
        )
        away = ", ".join(str(row["goal_distance"]) for row in mine)
        blocks.append(
            f"{world}, {NAMES[technique]}: 95% after {steps} environment steps; the goal is {away} moves away."
        )
    curves = [row for row in rows if "learner" in row]  # of policies.py
    if curves:
        steps = pivot(
            curves,
            "environment steps to 95%, by seed",
            lambda row: row["learner"],
            lambda row: row["goal"],
            lambda of: ", ".join("never" if row["steps_to_95"] is None else str(row["steps_to_95"]) for row in of),
        )
        blocks.append(steps)
    named = [row for row in rows if "agreement" in row]
    if named:
        table = pivot(
            named,
            "transitions whose latent action is the true one, %",
            lambda row: NAMES[row["technique"]],
            lambda row: f"{row['world']}, {row['walkers']} walkers",
            lambda of: mean_text([row["agreement"]["by_group"] for row in of]),
        )
        blocks += ["**Latent actions**, up to one relabelling in each group of states.", table]
    return "\n\n".join(blocks)


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Success against labels: a panel for each world and source, a curve for each technique."""
    points = sorted(_points(rows), key=lambda point: point["name"].startswith("CRAFT"))  # drawn last, on top
    chance = {panel: mean(of, "chance") for (panel,), of in grouped(points, "panel").items()}
    path = folder / "planning.png"
    draw_curves(
        points,
        path,
        lambda p: p["panel"],
        lambda p: p["name"],
        "labels",
        "labels or steps",
        chance,
        "goals reached (%)",
    )


def needed(labels: Sequence[int], success: Sequence[float]) -> int | None:
    """The number of labels from which on success is 95% or more; None if it never is."""
    below = [i for i, share in enumerate(success) if share < LEVEL]
    start = below[-1] + 1 if below else 0
    return labels[start] if start < len(labels) else None


def _points(rows: Sequence[Row]) -> list[Row]:
    """One for each run, source and number of labels."""
    return [
        {
            "panel": f"{row['world']}, {row['walkers']} walkers: {what}",
            "source": source,
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
