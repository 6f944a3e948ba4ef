"""Rows to a table: accuracy, states and losses of each technique in each world."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.cells import HEAD, ONE_STATE, Cell, cell, markdown_table, one_state, text
from studies.games.spec import NAMES
from studies.statistics import grouped

__all__ = ["cells", "format_table", "markdown", "report"]


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; one block per world."""
    write_json(out / "table.json", {"cells": cells(rows)})
    return format_table(rows)


def cells(rows: Sequence[Row]) -> list[Cell]:
    """Means over seeds for each world and technique."""
    return [cell({"world": world, "technique": t}, mine) for (world, t), mine in _groups(rows).items()]


def _groups(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    return grouped(rows, ("world", "technique"))


def format_table(rows: Sequence[Row]) -> str:
    """For each world the true numbers of states, then a line per technique."""
    width = max(map(len, NAMES.values()))
    lines: list[tuple[str, str]] = []
    table = {(c["world"], c["technique"]): c for c in cells(rows)}
    for (world, technique), mine in _groups(rows).items():
        c, row = table[world, technique], mine[0]
        if not lines or lines[-1][0] != world:
            head = f"{world}: states {_list(row['n_states_true'])}; one state named at every step: "
            head += f"{100 * c['one_state']:.1f} %; table of the true states {c['table_loss']:.3f} nats"
            lines.append((world, f"\n{head}"))
        own = f"lr {', '.join(f'{lr:g}' for lr in c['rates'])}" if c["rates"] else f"states {_list(row['n_states'])}"
        shares = (f"{name} {100 * c[key]:5.1f} %" for name, key in (("worst state", "state_worst"), ("probe", "probe")))
        line = f"{100 * c['accuracy']:6.2f} %  {'  '.join(shares)}  loss {c['loss']:7.3f}  {own}"
        lines.append((world, f"  {NAMES[technique].ljust(width)} {line}"))
    return "\n".join(text for _, text in lines).lstrip("\n")


def markdown(rows: Sequence[Row]) -> str:
    """The table of docs/worlds.md: one line for each technique, the last says what knowing nothing scores."""
    table = {(c["world"], c["technique"]): c for c in cells(rows)}
    worlds, techniques = (list(dict.fromkeys(key[i] for key in table)) for i in (0, 1))
    lines = [[NAMES[t], *(text(table.get((world, t))) for world in worlds)] for t in techniques]
    lines.append([ONE_STATE, *(one_state([table[key] for key in table if key[0] == world]) for world in worlds)])
    return markdown_table([HEAD, *worlds], lines)


def _list(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))
