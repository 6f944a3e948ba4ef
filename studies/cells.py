"""Tables of videos: what the seeds of one technique in one world come to, and how that is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from craftrl.paper.sweep import Row, estimate
from studies.statistics import grouped, percent
from studies.techniques import CUTS

__all__ = [
    "ONE_STATE",
    "READING",
    "Cell",
    "cell",
    "cells",
    "fill_in",
    "markdown",
    "markdown_table",
    "read_rows",
    "text",
]

Cell = dict[str, Any]
MEANS = ("state_mean", "state_worst", "one_state", "probe", "loss", "table_loss", "seconds")
READING = "accuracy / worst state, %"
ONE_STATE = "one state named at every step"
HEADS = {"size": "{0}x{0} cells", "walkers": "{} walkers", "n": "{:,} per agent"}


def read_rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cells(rows: Sequence[Row], settings: Sequence[str]) -> list[Cell]:
    """One for each group of rows that agree in these settings."""
    return [cell(dict(zip(settings, key)), mine) for key, mine in grouped(rows, settings).items()]


def cell(settings: Cell, mine: Sequence[Row]) -> Cell:
    """Means over seeds.

    `accuracy` is the share of held-out frames that are named right. CRAFT's states are matched with the true ones once,
    for all frames. A rival's are of each step, so that they are matched at each step, and averaged over h = 2..H.
    `interval` is that of 95%, or where seeds are too few for one the least and the largest value.
    """
    found = [row["found"] for row in mine if row.get("found") is not None]
    values = [row["pooled" if found else "accuracy"] for row in mine]
    e = estimate(values)
    return {
        **settings,
        "seeds": e.n,
        "accuracy": e.mean,
        "interval": e.interval or (min(values), max(values)),
        "accuracies": values,
        **{name: sum(row[name] for row in mine) / e.n for name in MEANS},
        "found": found,
        "true": [row["true"] for row in mine if "true" in row],
        "rates": [row["lr"] for row in mine if "lr" in row],
    }


def text(cell: Cell | None) -> str:
    """Accuracy with its interval and the worst state; then states found and true, or what a linear probe reads."""
    if cell is None:
        return "-"
    several = cell["seeds"] > 1
    low, high = cell["interval"]
    shares = percent(cell["accuracy"]) + (f" ({percent(low)} to {percent(high)})" if several else "")
    shares += f" / {100 * cell['state_worst']:.0f}"
    if not cell["found"]:
        return f"{shares}, probe {100 * cell['probe']:.0f}"
    seeds = f", {cell['seeds']} seeds" if several else ""
    return f"{shares}, {_span(cell['found'])} of {_span(cell['true'])} states{seeds}"


def _span(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def markdown(rows: Sequence[Row], axes: Sequence[str], names: Mapping[str, str], of: str = "technique") -> str:
    """One line for each technique, one column for each world along `axes`; the last line: what knowing nothing scores.

    Nothing where there are no rows.
    """
    if not rows:
        return ""
    table = {(c[of], *(c[axis] for axis in axes)): c for c in cells(rows, (of, *axes))}
    columns = sorted(dict.fromkeys(key[1:] for key in table), key=_order)
    lines = [
        [names[line], *(text(table.get((line, *column))) for column in columns)]
        for line in names
        if any(line == key[0] for key in table)
    ]
    shares = [[c["one_state"] for key, c in table.items() if key[1:] == column] for column in columns]
    lines.append([ONE_STATE, *(f"{100 * sum(mine) / len(mine):.1f}" for mine in shares)])
    heads = [", ".join(HEADS.get(axis, "{}").format(v) for axis, v in zip(axes, column)) for column in columns]
    return markdown_table([READING, *heads], lines)


def _order(column: tuple[Any, ...]) -> list[int]:
    """Numbers by size, cuts as they are listed, and all else as it comes."""
    return [v if isinstance(v, int) else CUTS.index(v) if v in CUTS else 0 for v in column]


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


def fill_in(page: str, tables: Mapping[str, str]) -> str:
    """A page with these tables between its marks `<!-- name -->` and `<!-- end -->`."""
    for name, table in tables.items():
        page = re.sub(
            rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)",
            lambda marks, table=table: f"{marks[1]}{table or 'No rows yet.'}\n{marks[2]}",  # type: ignore[misc]
            page,
            flags=re.S,
        )
    return page
