"""A table of numbers: what the page shows, and what can be downloaded from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Table", "plain", "power_of_ten", "shown"]


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words.

    name     the file's name, when it is downloaded
    caption  what a row is, in a sentence
    columns  their headings
    rows     one entry per column: numbers, words, or None where there is nothing to say
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def filled(self) -> Table:
        """Without the columns that say nothing in any row."""
        kept = [i for i, _ in enumerate(self.columns) if any(row[i] is not None for row in self.rows)]
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in kept), rows=rows)

    def cut(self, most: int, weight: Sequence[float] | None = None) -> Table:
        """At most so many rows: those with the largest weight, or the first, in their order."""
        if len(self.rows) <= most:
            return self
        order = range(len(self.rows)) if weight is None else sorted(range(len(self.rows)), key=lambda i: -weight[i])
        return replace(self, rows=tuple(self.rows[i] for i in sorted(order[:most])))


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's scalars as plain ones; what is no finite number as None."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def power_of_ten(value: float) -> str:
    """A large number in words that everyone reads: 5.6 × 10¹⁶."""
    digits, power = f"{value:.1e}".split("e")
    return f"{digits} × 10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def shown(value: Any) -> str:
    """A value as a cell shows it: four digits, and a dash where there is nothing to say."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2g}" if 0 < abs(value) < 1e-3 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
