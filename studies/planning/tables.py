"""The tables of the study of planning: one file of rows for each command.

    python -m studies.planning.tables

prints them as Markdown and draws planning.png beside this file, and the picture of the larger worlds
for the docs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from craftrl.paper.sweep import Row
from studies.planning.report import format_report
from studies.tables import markdown

__all__ = ["FILES", "SMALL", "main", "q_learning", "rows_of", "tables"]

HERE = Path(__file__).parent
SMALL = ("rows.jsonl", "multimaze.jsonl")
FILES = {"small worlds, and PPO": (*SMALL, "ppo.jsonl"), "larger worlds": ("full.jsonl",)}
AFTER = (500, 1000, 2000, 5000)  # environment steps at which Q-learning is shown


def main() -> None:
    """Print every table and draw both pictures."""
    from studies.planning.picture import draw_curves

    for what, text in tables().items():
        print(f"{what}\n\n{text}\n")
    first = rows_of(*SMALL)
    draw_curves(first, HERE / "planning.png")
    draw_curves(rows_of("full.jsonl"), HERE / "planning_full.png")


def tables() -> dict[str, str]:
    """The tables of each group of files."""
    found = {what: format_report(rows_of(*names)) for what, names in FILES.items()}
    maze = [row for row in rows_of("rows.jsonl") if row["world"] == "multimaze"]
    return {**found, "Q-learning": q_learning(rows_of("dqn.jsonl"), [*rows_of("full.jsonl"), *maze])}


def q_learning(learned: list[Row], planned: list[Row]) -> str:
    """Success of Q-learning with one goal, for each seed, and of the planner on CRAFT's states with all of them."""
    lines = []
    for world in dict.fromkeys(row["world"] for row in planned):
        mine = [row for row in learned if row["world"] == world]
        craft = [row for row in planned if (row["world"], row["technique"]) == (world, "craft")]
        lines.append(
            [
                world,
                *(_percents(_after(row, steps) for row in mine) for steps in AFTER),
                ", ".join(str(row["goal_distance"]) for row in mine),
                *(_percents(row[kind][-1] for row in craft) for kind in ("online", "online_latent")),
                str(max(craft[0]["labels"])),
            ]
        )
    head = ["goals reached, %, seeds 0 and 1", *(f"one goal, Q-learning, {steps:,} steps" for steps in AFTER)]
    also = ["moves to that goal", "all goals, CRAFT", "all goals, CRAFT, latent actions", "steps of CRAFT"]
    return markdown([*head, *also], lines)


def _after(row: Row, steps: int) -> float:
    """Success after so many steps; training that ended before, since success stayed, counts as it ended."""
    return float([score for tried, score in zip(row["steps_tried"], row["success"]) if tried <= steps][-1])


def _percents(values: Iterable[float]) -> str:
    return ", ".join(f"{100 * value:.0f}" for value in values)


def rows_of(*names: str) -> list[Row]:
    return [json.loads(line) for name in names for line in (HERE / name).read_text().splitlines()]


if __name__ == "__main__":
    main()
