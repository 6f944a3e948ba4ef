"""Xi, Lines 1-4."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from craftrl.core.grid import Grid, check_bound
from craftrl.errors import InvalidParameterError


def test_the_toy_worlds_grid():
    grid = Grid.from_bounds(math.log(3), 1 / 5)
    assert (grid.alpha, grid.n_xi, grid.xi) == (1.0, 12, 0.25)  # ceil(8 ln 4) = 12
    assert grid.values[0] == -1.5
    assert grid.values[-1] == 1.5
    assert grid.eta <= 1 / 5


@given(st.floats(0.01, 3), st.floats(0.001, 0.5))
def test_the_grid_covers_every_log_odds_that_eta_allows(alpha, eta):
    grid = Grid.from_bounds(alpha, eta)
    reach = math.log(1 / eta - 1)
    assert grid.values[-1] >= reach - 1e-6
    assert grid.values[-1] < reach + grid.xi
    assert grid.eta <= eta + 1e-9
    assert np.allclose(np.diff(grid.values), grid.alpha / 4)
    assert np.allclose(grid.values, -grid.values[::-1])


@given(st.floats(0.05, 1), st.integers(0, 40))
def test_an_eta_on_the_grid_stays_there(alpha, n_xi):
    grid = Grid.from_bounds(alpha, 1 / (1 + math.exp(n_xi * alpha / 8)))
    assert grid.n_xi == n_xi


@pytest.mark.parametrize(
    ("name", "values", "what"),
    [
        ("alpha", (0, -1, math.nan, math.inf), "be a positive number"),
        ("eta", (0, -0.1, 0.51, math.nan), r"lie in \(0, 1/2\]"),
        ("nu", (0, 1.1, math.nan), r"lie in \(0, 1\]"),
    ],
)
def test_a_bound_that_is_none_is_refused(name, values, what):
    for value in values:
        with pytest.raises(InvalidParameterError, match=f"{name} must {what}; {name} = {value} was given"):
            check_bound(name, value)
