"""Rows in groups, and how means over seeds are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from craftrl.paper.sweep import Estimate, Row, estimate

__all__ = ["estimate_of", "grouped", "half_of", "percent", "plus_minus"]


def grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that agree in these settings together, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def estimate_of(rows: Sequence[Row], name: str) -> Estimate | None:
    """The estimate of one measure over these rows; None where rows were made before it was."""
    return estimate([row[name] for row in rows]) if all(name in row for row in rows) else None


def half_of(of: Estimate) -> float:
    """Half the width of an interval, before it was cut to what is possible; 0 where seeds are too few for one."""
    return 0.0 if of.interval is None else max(of.mean - of.interval[0], of.interval[1] - of.mean)


def plus_minus(of: Estimate) -> str:
    """The mean and half the width of its interval, in percent: " 97.70 ± 1.20"."""
    return f"{100 * of.mean:6.2f}" + ("" if of.interval is None else f" ±{100 * half_of(of):5.2f}")


def percent(share: float) -> str:
    """In percent with one decimal, and with two where one would make 100 of what is not."""
    return f"{100 * share:.2f}" if 0.9995 <= share < 0.99995 else f"{100 * share:.1f}"
