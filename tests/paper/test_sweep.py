"""Seeds that follow from settings, and intervals of means over them."""

from __future__ import annotations

import numpy as np
import pytest

from craftrl.paper.sweep import estimate, seed_of


def test_seeds_are_those_of_the_parts_alone() -> None:
    assert seed_of("a", 1).entropy == seed_of("a", 1).entropy
    assert len({seed_of(*parts).entropy for parts in [("a", 1), ("a", 2), ("b", 1), ("a1",)]}) == 4


def test_the_interval_is_students() -> None:
    found = estimate([0.1, 0.2, 0.3, 0.4, 0.5])
    assert (found.mean, found.n) == (pytest.approx(0.3), 5)
    assert found.high - found.mean == pytest.approx(2.776445 * 0.5**0.5 / 10, rel=1e-5)  # t_{0.975, 4}


def test_it_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    found = [estimate(rng.normal(size=8), -10, 10) for _ in range(2000)]
    assert np.mean([of.low <= 0 <= of.high for of in found]) == pytest.approx(0.95, abs=0.015)


def test_bounds_may_be_others_and_few_seeds_have_no_interval() -> None:
    assert estimate([-0.9, 0.1, -0.95, -1.0, -0.9], least=-1.0).low == -1
    assert estimate([0.5, 0.6, 0.7, 0.8]).interval is None
    assert estimate([0.5]).deviation == 0
    assert estimate([0.8] * 5).interval == (0.8, 0.8)
