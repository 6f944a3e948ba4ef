"""Rows to table: accuracy for each number of agents at each total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from craftrl.reproduce.statistics import Estimate, estimate
from studies.agents.spec import COUPLINGS, KINDS

__all__ = ["Cell", "cells", "cells_json", "format_cells"]

FACTORS: dict[float | str, str] = {1.0: "", 0.5: ", alpha x 0.5", "auto": ", auto"}
SETTINGS = ("kind", "n_agents", "total", "coupling", "factor")


@dataclass(frozen=True)
class Cell:
    """Means over seeds of one kind and number of agents, total, coupling and factor of alpha."""

    kind: str
    n_agents: int
    total: int
    coupling: str
    factor: float | str
    accuracy: Estimate
    right_counts: float
    assigned: float


def cells(rows: Sequence[dict[str, Any]]) -> list[Cell]:
    """One cell for each combination of settings but the seed, in the order of the rows."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in SETTINGS), []).append(row)
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in groups.items()]


def _cell(settings: dict[str, Any], rows: Sequence[dict[str, Any]]) -> Cell:
    accuracy, counts, assigned = (
        estimate([row[name] for row in rows]) for name in ("accuracy", "right_counts", "assigned")
    )
    return Cell(**settings, accuracy=accuracy, right_counts=counts.mean, assigned=assigned.mean)


def cells_json(table: Sequence[Cell]) -> dict[str, Any]:
    """The table as plain values; accuracies are shares, not percent."""
    return {"cells": [asdict(cell) for cell in table]}


def format_cells(table: Sequence[Cell]) -> str:
    """One block per kind of agents, one line per total and coupling, one column per number of agents."""
    numbers = sorted({cell.n_agents for cell in table})
    by_key = {(c.kind, c.total, c.coupling, c.factor, c.n_agents): c for c in table}
    blocks = []
    for kind, title in KINDS.items():
        lines = [" ".join([title.ljust(46), *(f"{k} agents".center(13) for k in numbers)]).rstrip()]
        for factor, total in sorted(
            {(c.factor, c.total) for c in table}, key=lambda pair: (list(FACTORS).index(pair[0]), pair[1])
        ):
            for coupling in COUPLINGS:
                some = [by_key.get((kind, total, coupling, factor, k)) for k in numbers]
                name = f"  {total:,} in all, {coupling}{FACTORS[factor]}"
                lines.append(" ".join([name.ljust(46), *map(_text, some)]).rstrip())
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _text(cell: Cell | None) -> str:
    if cell is None:
        return " " * 13
    of = cell.accuracy
    return f"{100 * of.mean:6.2f} ±{100 * (of.high - of.mean):5.2f}"
