"""How means over seeds are written."""

from __future__ import annotations

import pytest

from craftrl.paper.sweep import estimate
from studies.statistics import estimate_of, half_of, percent, plus_minus


def test_half_an_interval_is_that_of_before_it_was_cut() -> None:
    assert plus_minus(estimate([0.50, 0.52, 0.54, 0.56, 0.58])) == " 54.00 ± 3.93"
    cut = estimate([1.0, 1.0, 1.0, 1.0, 0.95])
    assert cut.high == 1
    assert half_of(cut) == pytest.approx(2.776445 * cut.deviation / cut.n**0.5)


def test_few_seeds_have_a_mean_alone() -> None:
    assert plus_minus(estimate([0.5, 0.6])) == " 55.00"
    assert half_of(estimate([0.5, 0.6])) == 0


def test_a_measure_that_some_rows_lack_has_no_estimate() -> None:
    rows = [{"accuracy": 0.8, "state_worst": 0.5}, {"accuracy": 0.9}]
    found = estimate_of(rows, "accuracy")
    assert found is not None
    assert found.mean == pytest.approx(0.85)
    assert estimate_of(rows, "state_worst") is None


def test_percent_keeps_apart_from_a_hundred_what_is_not_quite() -> None:
    shares = (0.5, 0.9994, 0.9997, 0.99994, 1.0)
    assert [percent(share) for share in shares] == ["50.0", "99.9", "99.97", "99.99", "100.0"]
