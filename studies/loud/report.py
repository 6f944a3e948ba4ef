"""Rows to counts: who warned, and who is trusted."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from craftrl.data.files import write_json
from craftrl.paper.sweep import Row
from studies.statistics import grouped

__all__ = ["beside_known", "counts", "group_of", "report"]

GOOD = 0.95  # of every state's observations read right
SEEN = ("leaks", "corrupted")  # violations of Equation 1, or of the block assumption: worth a warning by themselves
COMPARED = ("worst_state", "worst_named", "known_state", "known_named")
GROUPS = ("wrong", "too few states", "right, broken", "right")


def group_of(row: Row) -> str:
    """wrong: the encoders misread some state. too few states: they read all, but CRAFT found fewer than they read.

    right, broken: right in a world whose policies see the noise, or whose frames are swapped.
    """
    if row["worst_state"] < GOOD:
        return "wrong"
    if row["worst_named"] < GOOD:
        return "too few states"
    return "right, broken" if row["violation"] in SEEN else "right"


def report(rows: list[Row], out: Path, args: argparse.Namespace) -> str:
    """Write table.json; a table of counts for all worlds, and by what is varied."""
    table = counts(rows, lambda row: f"{row['worlds']}, {row['encoders']}")
    parts = {
        "kind": lambda row: f"{row['worlds']}, {row['kind']}",
        "bounds": lambda row: f"{row['worlds']}, {row['bounds']}",
        "agents": lambda row: f"{row['worlds']}, {row['agents']} agents",
        "size": lambda row: f"{row['worlds']}, {row['size']}",
        "violation": lambda row: f"{row['worlds']}, {row['violation']}",
    }
    by_part = {name: counts(rows, of) for name, of in parts.items()}
    why, beside = _reasons(rows), beside_known(rows)
    write_json(out / "table.json", {"all": table, **by_part, "warned of": why, "beside known bounds": beside})
    texts = [_format(table), *map(_format, by_part.values()), _format_reasons(why), _format_beside(beside)]
    return "\n\n".join(texts)


def counts(rows: Sequence[Row], of: Callable[[Row], str]) -> list[dict[str, Any]]:
    """For each value of `of` and each group: models, how many warned in `fit`, and how many are trusted."""
    marked = [{**row, "_of": of(row), "_group": group_of(row)} for row in rows]
    found = grouped(marked, ("_of", "_group"))
    return [
        {
            "worlds": name,
            "group": group,
            "models": len(mine),
            "warned": sum(row["warned"] for row in mine),
            "trusted": sum(row["verdict"] == "trust" for row in mine),
        }
        for name in sorted({row["_of"] for row in marked})
        for group in GROUPS
        if (mine := found.get((name, group), []))
    ]


def beside_known(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Unbroken worlds by balance of the agents: how many models are right with chosen and with known bounds.

    read: the encoders read every state; named: and every state was found.
    """
    paired = [{**row, "_of": _balance(row)} for row in rows if row["known_state"] is not None]
    return [
        {
            "balance": name,
            "models": len(mine),
            **{of: sum(row[of] >= GOOD for row in mine) for of in COMPARED},
        }
        for (name,), mine in sorted(grouped(paired, ("_of",)).items())
    ]


def _balance(row: Row) -> str:
    return f"1:{round(max(row['sizes']) / min(row['sizes']))}"


def _format_beside(table: Sequence[dict[str, Any]]) -> str:
    lines = ["agents  models  chosen: read, named  known: read, named"]
    for cell in table:
        read, named, known_read, known_named = (cell[name] for name in COMPARED)
        lines.append(f"{cell['balance']:7} {cell['models']:6}  {read:12}, {named:5}  {known_read:11}, {known_named:5}")
    return "\n".join(lines)


def _reasons(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """How many models of each group `fit` warned of for each reason."""
    return {g: dict(Counter(why for row in rows if group_of(row) == g for why in row["told"])) for g in GROUPS}


def _format(table: Sequence[dict[str, Any]]) -> str:
    lines = [f"{'worlds':28} {'models are':15} {'models':>6} {'warned':>6} {'silent':>6} {'trusted':>7}"]
    for cell in table:
        silent = cell["models"] - cell["warned"]
        lines.append(
            f"{cell['worlds']:28} {cell['group']:15} {cell['models']:6} {cell['warned']:6} {silent:6} "
            f"{cell['trusted']:7}"
        )
    return "\n".join(lines)


def _format_reasons(why: dict[str, dict[str, int]]) -> str:
    return "\n".join(f"{group}: " + ", ".join(f"{name} {n}" for name, n in of.items()) for group, of in why.items())
