"""The three searches for the best bin agree, and stand aside where they might not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_counting import least_loss, losses_of_pairs

from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins, softplus_table
from craftrl.engine import bins
from craftrl.engine.bins import BinSearch, first_bins, is_steep

GRIDS = [
    Grid.from_bounds(1.0, 0.2),
    Grid.from_bounds(1.0, 0.5),  # one bin
    Grid.from_bounds(1.0, 0.49),  # two bins
    Grid.from_bounds(0.3, 0.01),
    Grid.from_bounds(0.05, 0.001),  # 1106 bins
]


@settings(max_examples=300)
@given(a=st.integers(0, 3000), b=st.integers(0, 3000), grid=st.sampled_from(GRIDS))
def test_the_two_neighbours_hold_the_best_bin_of_the_whole_grid(a, b, grid):
    _, loss = best_bins(np.array([a, b]), grid)
    assert int(loss) == least_loss(a, b, grid)


def counts_on_the_thresholds(grid: Grid) -> np.ndarray:
    """Cells whose log ratio lies as near as can be to a grid point, or halfway between two, or beyond the grid."""
    between = np.arange(0, grid.n_xi + 0.5, 0.5) * grid.xi - grid.n_xi * grid.xi / 2
    b = 1000
    a = np.rint(b * np.exp(between)).astype(np.int64)
    near = np.concatenate([a - 1, a, a + 1])
    cells = np.stack([near, np.full_like(near, b)], axis=1)
    ends = np.array([[0, 0], [0, 1], [1, 0], [0, 10**6], [10**6, 0], [10**6, 10**6], [1, 1]])
    return np.abs(np.concatenate([cells, cells[:, ::-1], ends]))


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("limit", [0, 10**6])  # look up always, sweep always
def test_compiled_searches_equal_best_bins(grid, limit, monkeypatch):
    monkeypatch.setattr(bins, "SWEEP_LIMIT", limit)
    cells = counts_on_the_thresholds(grid)
    search = BinSearch.on(grid, 2, 2 * 10**6)
    assert search.compiled
    out = np.empty((1, len(cells)), dtype=np.int64)
    for j, cell in enumerate(cells):
        # One pair of encoders that are 1 together, a times for agent 0 and b times for agent 1, and never 0.
        inner = np.zeros((2, 1, 1, 5, 40), dtype=np.int32)
        inner[:, 0, 0, 0, 0] = cell
        margin = cell.reshape(2, 1, 1)
        search.losses(inner, margin, margin, cell, out[:, j : j + 1])
    assert np.array_equal(out[0], best_bins(cells, grid)[1])


def test_sums_beyond_float_are_left_to_integers():
    grid = GRIDS[0]
    assert BinSearch.on(grid, 2, 10**6).way == "sweep"
    huge = 2**53 // int(softplus_table(grid)[-1]) + 1
    assert BinSearch.on(grid, 2, huge).way == "look up"
    counts = np.array([[[[[2**30, 2**29], [5, 7]], [[2**28, 2**30], [0, 0]]]]])
    inner = np.ascontiguousarray(counts[0, 0, 1:, 1:].transpose(2, 0, 1)[:, :, :, None, None].astype(np.int32))
    p = np.ascontiguousarray(counts[0, 0, 1:].sum(axis=1).T[:, :, None])
    q = np.ascontiguousarray(counts[0, 0, :, 1:].sum(axis=0).T[:, :, None])
    out = np.empty((1, 1), dtype=np.int64)
    BinSearch.on(grid, 2, 2**33).losses(inner, p, q, counts[0, 0].sum(axis=(0, 1)), out)
    assert np.array_equal(out, losses_of_pairs(counts, grid))


def test_a_grid_too_fine_is_left_to_numpy():
    fine = Grid.from_bounds(0.002, 0.001)
    assert not is_steep(fine)
    assert not BinSearch.on(fine, 2, 100).compiled
    assert not BinSearch.on(fine, 3, 100).compiled
    assert not BinSearch.on(GRIDS[0], 3, 10**7).compiled


@pytest.mark.parametrize("grid", GRIDS)
def test_the_walk_starts_at_or_below_the_best_bin(grid):
    start = first_bins(grid)
    assert len(start) == bins.SHARES + 1
    for a, b in counts_on_the_thresholds(grid)[:200]:
        if a + b:
            best, _ = best_bins(np.array([a, b]), grid)
            assert start[int(a / (a + b) * bins.SHARES)] <= best[0]
