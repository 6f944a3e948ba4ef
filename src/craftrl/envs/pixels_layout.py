"""Floor plans for the pixel world: which cells exist, and where each move leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import shown
from craftrl.envs.moves import grid_moves
from craftrl.errors import InvalidParameterError

__all__ = ["FloorPlan", "Layout", "floor_plan"]

Layout = Literal["open", "rooms"]


@dataclass(frozen=True)
class FloorPlan:
    """Cells numbered from the start cell, which is 0; the others follow in reading order.

    cells   (n_cells, 2) row and column of each cell
    moves   (n_cells, 4) the cell that each move leads to; a move into a wall stays where it is
    walls   (size, size) whether there is a wall
    """

    cells: NDArray[np.int64]
    moves: NDArray[np.int64]
    walls: NDArray[np.bool_]

    @property
    def n_cells(self) -> int:
        return len(self.cells)

    @property
    def adjacency(self) -> NDArray[np.bool_]:
        """(n_cells, n_cells): which cell can follow which."""
        follows = np.zeros((self.n_cells, self.n_cells), dtype=bool)
        follows[np.arange(self.n_cells)[:, None], self.moves] = True
        return follows


def floor_plan(size: int, layout: Layout) -> FloorPlan:
    """An open square, or four rooms of (size-1)/2 cells a side with one door in each shared wall."""
    walls = np.zeros((size, size), dtype=bool)
    middle = (size - 1) // 2
    start = (middle, middle)
    if not isinstance(layout, str):
        raise InvalidParameterError(f"layout must be 'open' or 'rooms'; {shown(layout)} was given.")
    if layout == "rooms":
        if size < 5 or size % 2 == 0:
            raise InvalidParameterError(
                f"Four rooms need an odd size of at least 5; size = {size} was given; take 5, 7 or 9."
            )
        walls[middle, :] = walls[:, middle] = True
        door = middle // 2
        doors = [(middle, door), (middle, size - 1 - door), (door, middle), (size - 1 - door, middle)]
        for row, column in doors:
            walls[row, column] = False
        start = doors[0]
    elif layout != "open":
        raise InvalidParameterError(f"layout must be 'open' or 'rooms'; {layout!r} was given.")
    free = [(int(r), int(c)) for r, c in np.argwhere(~walls)]
    cells = np.array([start] + [cell for cell in free if cell != start])
    return FloorPlan(cells, grid_moves(cells), walls)
