"""Rows to tables: success against labels and against environment steps, what 95% takes, and latent actions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from craftrl.paper.sweep import Row, estimate
from studies.planning.spec import NAMES
from studies.tables import grouped, markdown

__all__ = ["CHANCE", "SOURCES", "cells", "curves_of", "format_report", "label", "needed", "report"]

Cell = dict[str, Any]
SOURCES = {
    "offline": "labels: random transitions of the videos with their actions",
    "online": "labels: environment steps chosen by exploring",
}
KINDS = ("offline", "online", "offline_latent", "online_latent")
SETTINGS = ("world", "walkers", "technique")
CHANCE = "random actions"
LEVEL = 0.95
SHORT = {"ac-state": "AC-State (told all actions)"}


def report(rows: list[Row]) -> str:
    """All tables as Markdown."""
    return format_report(rows)


def label(technique: str, kind: str = "") -> str:
    """What a technique is called, and whether it used latent actions."""
    name = SHORT.get(technique, NAMES[technique])
    return f"{name}, latent actions" if kind.endswith("_latent") else name


def cells(rows: Sequence[Row]) -> list[Cell]:
    """For each world and technique: means over seeds with 95% intervals, and what 95% success took."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, *SETTINGS).items()]


def _cell(settings: Cell, mine: Sequence[Row]) -> Cell:
    first = mine[0]
    cell: Cell = {**settings, "seeds": len(mine), "labels": first["labels"], "n_moves": first["n_moves"]}
    cell["chance"] = _plain([row["chance"] for row in mine])
    for kind in KINDS:
        if kind in first:
            found = [_plain([row[kind][i] for row in mine]) for i in range(len(first["labels"]))]
            cell[kind] = found
            cell[f"{kind}_needed"] = needed(first["labels"], [e["mean"] for e in found])
    for name in ("accuracy", "n_states"):
        if name in first:
            cell[name] = _plain([row[name] for row in mine], most=math.inf if name == "n_states" else 1.0)
    if "agreement" in first:
        cell["agreement"] = {name: _plain([row["agreement"][name] for row in mine]) for name in first["agreement"]}
    if "steps_needed" in first:
        cell["steps_needed"] = [row["steps_needed"] for row in mine]
        cell["steps_tried"] = [row["steps_tried"][-1] for row in mine]
        cell["goal_distance"] = [row["goal_distance"] for row in mine]
    return cell


def _plain(values: Sequence[float], most: float = 1.0) -> dict[str, float]:
    """Mean and 95% interval over seeds; where seeds are too few for one, their least and largest value."""
    e = estimate(values, most=most)
    low, high = e.interval or (min(values), max(values))
    return {"mean": e.mean, "low": low, "high": high}


def needed(labels: Sequence[int], success: Sequence[float]) -> int | None:
    """The number of labels from which on success is 95% or more; None if it never is."""
    below = [i for i, share in enumerate(success) if share < LEVEL]
    start = below[-1] + 1 if below else 0
    return labels[start] if start < len(labels) else None


# -- text --------------------------------------------------------------------------------------------------------


def format_report(rows: Sequence[Row]) -> str:
    """For each world one table for each source of labels, then what 95% takes; at the end latent actions."""
    blocks = []
    for (world, walkers), mine in grouped(rows, "world", "walkers").items():
        table = cells(mine)
        for source, what in SOURCES.items():
            text = _success(table, source)
            if text:
                blocks += [f"**{_head(world, walkers, mine[0])}; {what}.** Goals reached, %.", text]
        blocks += _steps(table)
    return "\n\n".join([*blocks, *_latent_actions(rows)])


def _head(world: str, walkers: int, row: Row) -> str:
    cells_ = f", {row['size']}x{row['size']} cells" if row["size"] else ""
    return f"{world}{cells_}, {walkers} distractors, {row['n_states_true']} states, {row['n_moves']} moves"


def curves_of(table: Sequence[Cell], source: str) -> list[tuple[str, Cell, str]]:
    """The curves of a source: label, cell and which of its curves."""
    found = [(c, kind) for c in table for kind in (source, f"{source}_latent") if kind in c]
    return [(label(c["technique"], kind), c, kind) for c, kind in found]


def _success(table: Sequence[Cell], source: str) -> str:
    """One line for each technique, one column for each number of labels."""
    curves = curves_of(table, source)
    if not curves:
        return ""
    first = curves[0][1]
    unit = "labels" if source == "offline" else "steps"
    head = [f"{unit} in all", *(str(k) for k in first["labels"]), f"{unit} for 95%"]
    per_move = ["per move", *(f"{k / first['n_moves']:.2g}" for k in first["labels"]), ""]
    lines = [[name, *(_percent(e) for e in c[kind]), _number(c[f"{kind}_needed"])] for name, c, kind in curves]
    chance = [CHANCE, *[_percent(first["chance"])] * len(first["labels"]), ""]
    return markdown(head, [per_move, *lines, chance])


def _percent(e: dict[str, float]) -> str:
    """The mean, and its interval where seeds differ."""
    low, mean, high = (f"{100 * min(1.0, e[part]):.0f}" for part in ("low", "mean", "high"))
    return mean if low == high else f"{mean} ({low}-{high})"


def _number(value: int | None) -> str:
    return "never" if value is None else f"{value:,}"


def _steps(table: Sequence[Cell]) -> list[str]:
    """What learners from rewards needed for one goal, beside what the planner needed for all of them."""
    learned = [c for c in table if "steps_needed" in c]
    if not learned:
        return []
    lines = []
    for c in learned:
        tried = [f"{s:,}" if s is not None else f"more than {t:,}" for s, t in zip(c["steps_needed"], c["steps_tried"])]
        away = "; ".join(map(str, c["goal_distance"]))
        lines.append([label(c["technique"]), "one", "; ".join(tried), f"the goal is so many moves away: {away}"])
    planners = [x for x in curves_of(table, "online") if x[1]["technique"] == "craft"]
    for name, c, kind in planners:
        ratios = [_ratio(learner, c[f"{kind}_needed"]) for learner in learned]
        text = "; ".join(f"{label(l['technique'])} takes {r}" for l, r in zip(learned, ratios) if r)
        lines.append([name, "all", _number(c[f"{kind}_needed"]), text])
    return ["Environment steps for 95% success:", markdown(["", "goals", "steps", ""], lines)]


def _ratio(learner: Cell, steps: int | None) -> str:
    """How many times as many steps the learner needs, at least, on average over seeds."""
    if not steps:
        return ""
    pairs = list(zip(learner["steps_needed"], learner["steps_tried"]))
    mean = sum(t if s is None else s for s, t in pairs) / len(pairs)
    return f"{'more than ' if any(s is None for s, _ in pairs) else ''}{mean / steps:,.0f} times as many"


def _latent_actions(rows: Sequence[Row]) -> list[str]:
    """How often latent actions are the true ones, for each number of distractors."""
    table = [c for c in cells(rows) if "agreement" in c]
    if not table:
        return []
    columns = list(dict.fromkeys((c["world"], c["walkers"]) for c in table))
    found = {(c["technique"], c["world"], c["walkers"]): c["agreement"] for c in table}
    lines = []
    for technique in dict.fromkeys(c["technique"] for c in table):
        mine = [found.get((technique, *column)) for column in columns]
        lines.append([label(technique), *("-" if a is None else _percent(a["by_group"]) for a in mine)])
    head = ["transitions whose latent action is the true one, %", *(f"{w}, {k} distractors" for w, k in columns)]
    return ["**Latent actions**, up to one relabelling in each group of states.", markdown(head, lines)]
