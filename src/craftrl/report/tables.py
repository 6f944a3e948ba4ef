"""A table of numbers: what the page shows, and what can be downloaded from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
        return Table(self.name, self.caption, tuple(self.columns[i] for i in kept), rows)

    def column(self, heading: str) -> list[Any]:
        """One column by its heading."""
        at = self.columns.index(heading)
        return [row[at] for row in self.rows]


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
