"""Means over seeds with their intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from craftrl.paper.sweep import estimate
from studies.statistics import estimate_of, percent, standard_errors_apart


def test_the_interval_is_students() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.deviation, found.n) == (2.0, 1.0, 3)
    assert found.high - found.mean == pytest.approx(4.302653 / math.sqrt(3), rel=1e-5)  # t_{0.975, 2}
    assert found.standard_error == pytest.approx(1 / math.sqrt(3))


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        found = estimate(rng.normal(size=8))
        hits += found.low <= 0 <= found.high
    assert hits / 2000 == pytest.approx(0.95, abs=0.015)


def test_the_difference_counts_both_sides_scatter() -> None:
    found = estimate([0.0, 1.0] * 10)
    assert standard_errors_apart(found, 0.5, 20) == pytest.approx(0)
    expected = 0.5 / (found.deviation * math.sqrt(2 / 20))
    assert standard_errors_apart(found, 0.0, 20) == pytest.approx(expected)
    assert standard_errors_apart(estimate([1.0]), 0.5, 20) is None


def test_a_measure_that_some_rows_lack_has_no_estimate() -> None:
    rows = [{"accuracy": 0.8, "state_worst": 0.5}, {"accuracy": 0.9}]
    found = estimate_of(rows, "accuracy")
    assert found is not None
    assert found.mean == pytest.approx(0.85)
    assert estimate_of(rows, "state_worst") is None


def test_percent_keeps_apart_from_a_hundred_what_is_not_quite() -> None:
    assert [percent(share) for share in (0.5, 0.9994, 0.9997, 0.99994, 1.0)] == [
        "50.0",
        "99.9",
        "99.97",
        "99.99",
        "100.0",
    ]
