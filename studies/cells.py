"""Cells of the tables of videos: what the seeds of one technique in one world come to, and how that is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from craftrl.paper.sweep import Row, estimate

__all__ = ["HEAD", "ONE_STATE", "Cell", "cell", "markdown_table", "one_state", "states_right", "text"]

Cell = dict[str, Any]
MEANS = ("state_mean", "state_worst", "one_state", "probe", "loss", "table_loss", "seconds")
HEAD = "accuracy / mean over states / worst state (linear probe), %"
ONE_STATE = "one state named at every step"


def cell(settings: Cell, mine: Sequence[Row]) -> Cell:
    """Means over seeds; accuracies are shares, averaged over h = 2..H."""
    e = estimate([row["accuracy"] for row in mine])
    return {
        **settings,
        "seeds": e.n,
        "accuracy": e.mean,
        "interval": e.interval,
        "accuracies": [row["accuracy"] for row in mine],
        **{name: sum(row[name] for row in mine) / e.n for name in MEANS},
        "steps": len(mine[0]["n_states"]) - 1,
        "steps_with_right_number_of_states": sum(map(states_right, mine)) / e.n,
        "rates": [row["lr"] for row in mine if "lr" in row],
    }


def states_right(row: Row) -> int:
    """At how many of the steps 2..H the number of states found is the true one."""
    return sum(a == b for a, b in zip(row["n_states"][1:], row["n_states_true"][1:]))


def text(cell: Cell | None) -> str:
    """Accuracy of frames and of states, and the linear probe's: means over seeds, and how many seeds if several."""
    if cell is None:
        return "-"
    of_states = f"{100 * cell['state_mean']:.1f} / {100 * cell['state_worst']:.0f} ({100 * cell['probe']:.0f})"
    seeds = "" if cell["seeds"] == 1 else f", {cell['seeds']} seeds"
    return f"{100 * cell['accuracy']:.1f} / {of_states}{seeds}"


def one_state(cells: Sequence[Cell]) -> str:
    """What knowing nothing scores: the accuracy of naming one state at every step, over these cells."""
    return f"{100 * sum(c['one_state'] for c in cells) / len(cells):.1f}"


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])
