"""Rows in groups, and means over seeds with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl.reproduce.folder import Row

__all__ = ["Estimate", "estimate", "estimate_of", "grouped", "percent", "standard_errors_apart"]


@dataclass(frozen=True)
class Estimate:
    """A mean over n seeds with its 95% interval; with one seed the interval is the mean itself."""

    mean: float
    low: float
    high: float
    deviation: float
    n: int

    @property
    def standard_error(self) -> float:
        return self.deviation / math.sqrt(self.n)

    def percent(self) -> str:
        """The mean and half the width of its interval, in percent: " 97.70 ± 1.20"."""
        return f"{100 * self.mean:6.2f} ±{100 * (self.high - self.mean):5.2f}"


def grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that agree in these settings together, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def estimate(values: Sequence[float], level: float = 0.95) -> Estimate:
    """Mean, Student's t interval and standard deviation over seeds."""
    from scipy.stats import t

    x = np.asarray(values, dtype=float)
    mean, n = float(x.mean()), len(x)
    if n == 1:
        return Estimate(mean, mean, mean, 0.0, 1)
    deviation = float(x.std(ddof=1))
    half = float(t.ppf((1 + level) / 2, n - 1)) * deviation / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, deviation, n)


def estimate_of(rows: Sequence[Row], name: str) -> Estimate | None:
    """The estimate of one measure over these rows; None where rows were made before it was."""
    return estimate([row[name] for row in rows]) if all(name in row for row in rows) else None


def percent(share: float) -> str:
    """In percent with one decimal, and with two where one would make 100 of what is not."""
    return f"{100 * share:.2f}" if 0.9995 <= share < 0.99995 else f"{100 * share:.1f}"


def standard_errors_apart(ours: Estimate, published: float, published_n: int) -> float | None:
    """(ours - published) in standard errors of that difference; None where the seeds do not differ.

    The paper gives no deviation: its runs are taken to scatter as ours do.
    """
    error = ours.deviation * math.sqrt(1 / ours.n + 1 / published_n)
    return (ours.mean - published) / error if error > 0 else None
