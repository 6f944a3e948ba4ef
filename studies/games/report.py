"""Rows to a table: accuracy, states and losses of each technique in each world."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.reproduce.folder import Row, write_json
from craftrl.reproduce.statistics import estimate, grouped
from studies.games.spec import NAMES
from studies.pixels.report import states_right

__all__ = ["cells", "format_table", "markdown", "report"]

Cell = dict[str, Any]


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; one block per world."""
    write_json(out / "table.json", {"cells": cells(rows)})
    return format_table(rows)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """Means over seeds for each world and technique."""
    return [_cell({"world": world, "technique": t}, mine) for (world, t), mine in _groups(rows).items()]


def _groups(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    return grouped(rows, ("world", "technique"))


def _cell(settings: Cell, mine: Sequence[Row]) -> Cell:
    e = estimate([r["accuracy"] for r in mine])
    means = {name: sum(r[name] for r in mine) / e.n for name in ("probe", "loss", "table_loss", "seconds")}
    right = sum(map(states_right, mine)) / e.n
    return {
        **settings,
        "seeds": e.n,
        "accuracy": e.mean,
        "interval": [e.low, e.high],
        **means,
        "steps": len(mine[0]["n_states"]) - 1,
        "steps_with_right_number_of_states": right,
        "rates": [r["lr"] for r in mine if "lr" in r],
    }


def format_table(rows: Sequence[Row]) -> str:
    """For each world the true numbers of states, then a line per technique."""
    width = max(map(len, NAMES.values()))
    lines: list[tuple[str, str]] = []
    table = {(c["world"], c["technique"]): c for c in cells(rows)}
    for (world, technique), mine in _groups(rows).items():
        c, row = table[world, technique], mine[0]
        if not lines or lines[-1][0] != world:
            head = f"{world}: states {_list(row['n_states_true'])}; table of the true states {c['table_loss']:.3f} nats"
            lines.append((world, f"\n{head}"))
        own = f"lr {', '.join(f'{lr:g}' for lr in c['rates'])}" if c["rates"] else f"states {_list(row['n_states'])}"
        text = f"{100 * c['accuracy']:6.2f} %  probe {100 * c['probe']:5.1f} %  loss {c['loss']:7.3f}  {own}"
        lines.append((world, f"  {NAMES[technique].ljust(width)} {text}"))
    return "\n".join(text for _, text in lines).lstrip("\n")


def markdown(rows: Sequence[Row]) -> str:
    """The table of docs/worlds.md: accuracy in percent by world, the linear probe's in brackets."""
    table = {(c["world"], c["technique"]): c for c in cells(rows)}
    worlds, techniques = (list(dict.fromkeys(key[i] for key in table)) for i in (0, 1))
    lines = [["held-out accuracy, % (linear probe, %)", *worlds], ["---"] * (1 + len(worlds))]
    for t in techniques:
        mine = [table.get((world, t)) for world in worlds]
        texts = ["-" if c is None else f"{100 * c['accuracy']:.1f} ({100 * c['probe']:.0f})" for c in mine]
        lines.append([NAMES[t], *texts])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
