"""The compiled loss of a cell is that of `best_bins`, and NumPy's where floats could not hold it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from literal_counting import least_loss

from craftrl import CoordinateOracle, TrajectoryDataset
from craftrl.core.grid import Grid
from craftrl.core.losses import best_bins, softplus_table
from craftrl.engine import kernels
from craftrl.engine.packing import View

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
def test_trying_every_bin_equals_best_bins(grid):
    cells = counts_on_the_thresholds(grid)
    out = np.empty((1, 1), dtype=np.int64)
    found = []
    for cell in cells:
        # One pair of encoders that are 1 together, a times for agent 0 and b times for agent 1, and never 0.
        inner, margin = cell.reshape(2, 1, 1, 1, 1).astype(np.int32), cell.reshape(2, 1, 1)
        kernels.sweep_losses(inner, margin, margin, cell, softplus_table(grid).astype(np.float64), out)
        found.append(int(out[0, 0]))
    assert np.array_equal(found, best_bins(cells, grid)[1])


def test_sums_beyond_float_are_left_to_numpy(monkeypatch):
    """Counts of 2^30 trajectories, which no test can hold: the engine is told of them."""
    grid = GRIDS[0]
    tau = TrajectoryDataset.from_arrays(np.zeros((2, 3, 2, 1), dtype=np.uint8))
    counter = CoordinateOracle().prepare(tau).counter
    counts = np.array([[[2**30, 2**29], [5, 7]], [[2**28, 2**30], [0, 0]]])  # (U, V, K)
    monkeypatch.setattr(counter, "totals", lambda *views: counts.sum(axis=(0, 1)))
    monkeypatch.setattr(counter, "pairs", lambda p, q: counts.transpose(2, 0, 1)[..., None, None])
    expected = sum(least_loss(int(a), int(b), grid) for a, b in counts.reshape(-1, 2))
    assert counter.losses(View(1), View(2), grid).tolist() == [[expected]]
