"""Moves on a grid, against a walk cell by cell."""

import numpy as np
import pytest

from craftrl.envs.pixels import grid_moves


def literal_moves(cells):
    """Up, down, left, right, by looking every target up."""
    places = [tuple(cell) for cell in cells.tolist()]
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    table = []
    for here, (row, column) in enumerate(places):
        targets = [(row + down, column + right) for down, right in steps]
        table.append([places.index(target) if target in places else here for target in targets])
    return np.array(table)


@pytest.mark.parametrize("seed", range(20))
def test_moves_are_those_of_a_walk(seed):
    rng = np.random.default_rng(seed)
    free = np.argwhere(rng.random(rng.integers(1, 7, size=2)) < 0.7)
    cells = rng.permutation(np.vstack([[[0, 0]], free[free.any(axis=1)]]))
    assert grid_moves(cells).tolist() == literal_moves(cells).tolist()
