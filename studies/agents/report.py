"""Rows to table: accuracy for each number of agents at each total."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import Estimate, estimate, grouped
from studies.agents.spec import COUPLINGS, KINDS

__all__ = ["Cell", "cells", "cells_json", "format_cells", "report"]

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


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; accuracy for each number of agents."""
    table = cells(rows)
    write_json(out / "table.json", cells_json(table))
    return f"Accuracy in percent, 95% interval over {args.seeds} seeds, toy world\n\n{format_cells(table)}"


def cells(rows: Sequence[Row]) -> list[Cell]:
    """One cell for each combination of settings but the seed, in the order of the rows."""
    return [_cell(dict(zip(SETTINGS, key)), mine) for key, mine in grouped(rows, SETTINGS).items()]


def _cell(settings: dict[str, Any], rows: Sequence[Row]) -> Cell:
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
    return " " * 13 if cell is None else cell.accuracy.percent()
