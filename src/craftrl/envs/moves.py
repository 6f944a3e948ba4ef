"""Moves on a grid: up, down, left and right, stopped by walls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOVES", "grid_moves"]

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])  # up, down, left, right


def grid_moves(cells: NDArray[np.integer]) -> NDArray[np.int64]:
    """The number of the cell that each of the four moves leads to, shape (n_cells, 4).

    `cells` (n_cells, 2) are the rows and columns of the cells one can stand in, all of them, numbered as they come. All
    else is wall: a move into a wall stays where it is.
    """
    number = np.full(cells.max(axis=0) + 3, -1)  # with a wall all round
    number[tuple(cells.T + 1)] = np.arange(len(cells))
    target = number[tuple(np.moveaxis(cells[:, None] + MOVES + 1, -1, 0))]
    return np.where(target < 0, np.arange(len(cells))[:, None], target)
