"""Rows to table: accuracy, states and graph against the number of trajectories."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.statistics import estimate_of, grouped

__all__ = ["cells", "chance_of_worlds", "enough", "format_table", "report"]

SETTINGS = ("world", "coupling", "size")
MEASURES = (
    "accuracy",
    "state_mean",
    "state_worst",
    "steps_with_right_state_count",
    "graph_precision",
    "graph_recall",
    "label_graph_precision",
    "label_graph_recall",
    "assigned_at_end",
)


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy, states and graph by size, and from which size on nothing is wrong."""
    table, chance = cells(rows), chance_of_worlds(rows)
    write_json(out / "table.json", {"chance": chance, "cells": table})
    lines = [format_table(table, chance)]
    for (world, coupling), size in enough(table).items():
        found = "not reached" if size is None else f"from {size:,} trajectories per agent on"
        lines.append(f"{world}, {coupling}: states and graph recovered in every seed: {found}")
    return "\n".join(lines)


def cells(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One cell per world, coupling and size: means over seeds, and how many seeds recovered everything."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in sorted(grouped(rows, SETTINGS).items())]


def _cell(settings: dict[str, Any], mine: Sequence[Row]) -> dict[str, Any]:
    cell = dict(settings)
    for measure in MEASURES:
        over_seeds = estimate_of(mine, measure)
        if over_seeds is not None:
            cell[measure] = over_seeds.mean
            cell[f"{measure}_interval"] = over_seeds.interval
    return {**cell, "seeds": len(mine), "recovered": sum(map(_recovered, mine))}


def chance_of_worlds(rows: Sequence[Row]) -> dict[str, float]:
    """For each world the accuracy of naming its most visited state at every step, averaged over h and over seeds."""
    found = {world: estimate_of(mine, "chance") for (world,), mine in sorted(grouped(rows, ("world",)).items())}
    return {world: over_seeds.mean for world, over_seeds in found.items() if over_seeds is not None}


def _recovered(row: Row) -> bool:
    """No error on held-out data, the right number of states at every step, and the true graph, edge for edge."""
    measures = "accuracy", "steps_with_right_state_count", "graph_precision", "graph_recall"
    return all(row[measure] == 1.0 for measure in measures)


def enough(table: Sequence[dict[str, Any]]) -> dict[tuple[str, str], int | None]:
    """For each world and coupling, the least size from which on every seed recovered everything."""
    answer: dict[tuple[str, str], int | None] = {}
    failed: set[tuple[str, str]] = set()
    for cell in sorted(table, key=lambda cell: -cell["size"]):
        key = cell["world"], cell["coupling"]
        answer.setdefault(key, None)
        if cell["recovered"] < cell["seeds"]:
            failed.add(key)
        elif key not in failed:
            answer[key] = cell["size"]
    return answer


def format_table(table: Sequence[dict[str, Any]], chance: dict[str, float]) -> str:
    """Aligned text, one line per cell and one for the chance of each world."""
    head = (
        f"{'world':10} {'coupling':12} {'per agent':>9} {'accuracy':>9} {'by state':>8} {'worst':>8} {'states':>7} "
        f"{'graph':>12} {'label graph':>12} {'assigned':>8} {'recovered':>9}"
    )
    lines = [
        f"{c['world']:10} {c['coupling']:12} {c['size']:9,} {100 * c['accuracy']:8.2f}% "
        f"{_percent(c, 'state_mean'):>8} {_percent(c, 'state_worst'):>8} "
        f"{100 * c['steps_with_right_state_count']:6.0f}% {c['graph_precision']:6.3f} {c['graph_recall']:.3f} "
        f"{c['label_graph_precision']:6.3f} {c['label_graph_recall']:.3f} "
        f"{100 * c['assigned_at_end']:7.0f}% {c['recovered']:>6}/{c['seeds']}"
        for c in table
    ]
    lines += [f"{world:10} {'chance: one state':22} {100 * share:8.2f}%" for world, share in chance.items()]
    return "\n".join([head, *lines])


def _percent(cell: dict[str, Any], measure: str) -> str:
    """Nothing where rows were made before single states were measured."""
    return f"{100 * cell[measure]:.2f}%" if measure in cell else ""
