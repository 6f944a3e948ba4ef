"""A table of numbers: what the page shows, and what can be downloaded from it."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 4000  # of a table in a file


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words.

    name      the file's name, when it is downloaded
    caption   what a row is, in a sentence
    columns   their headings; those that say nothing in any row are left out
    rows      one entry per column: numbers, words, or None where there is nothing to say; at most `MAX_ROWS`
    left_out  how many rows there was no room for
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    left_out: int = 0

    def __post_init__(self) -> None:
        kept = [i for i, _ in enumerate(self.columns) if not self.rows or any(row[i] is not None for row in self.rows)]
        object.__setattr__(self, "columns", tuple(self.columns[i] for i in kept))
        object.__setattr__(self, "left_out", self.left_out + max(0, len(self.rows) - MAX_ROWS))
        rows = tuple(tuple(plain(row[i]) for i in kept) for row in self.rows[:MAX_ROWS])
        object.__setattr__(self, "rows", rows)

    @property
    def csv(self) -> str:
        """The table as a file."""
        held = io.StringIO()
        writer = csv.writer(held, lineterminator="\n")
        writer.writerows([self.columns, *self.rows])
        return held.getvalue()


def plain(value: Any) -> Any:
    """A value as JSON has it: NumPy's scalars as plain ones; what is no finite number as None."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell_text(value: Any) -> str:
    """A value as a cell shows it: four digits, and a dash where there is nothing to say."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2g}" if 0 < abs(value) < 1e-3 else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def power_of_ten(value: float) -> str:
    """A large number in words that everyone reads: 5.6 × 10¹⁶."""
    digits, power = f"{value:.1e}".split("e")
    return f"{digits} × 10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
