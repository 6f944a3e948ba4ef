"""Nine four-room mazes side by side: the agent walks one of them, random walkers the others.

The multi-maze of Levine et al. 2024 (STEEL), written from its description and cut to a horizon.

Paper: Section 2.2 (an Ex-BMDP with tens of states a step)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.core.encoders import ConstantEncoder
from craftrl.envs.agents import MarkovPolicy, contrasting_policies
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.pixels import grid_moves

FLOOR_PLAN = """\
....#....
....#....
.........
....#....
#.#####.#
....#....
.........
....#....
....#....""".splitlines()
SIDE = len(FLOOR_PLAN)
CELLS = np.argwhere(np.array([list(row) for row in FLOOR_PLAN]) == ".")  # (68, 2): four rooms, four doors
NEXT_CELL = grid_moves(CELLS)  # (68, 4): where each move leads


@dataclass(frozen=True)
class CellInMaze:
    """An encoder: the number of the cell, 0..67, that is occupied in one of the nine mazes."""

    maze: int

    def __call__(self, x: NDArray[Any]) -> Ints:
        row, column = CELLS.T + SIDE * np.array(divmod(self.maze, 3))[:, None]
        return x[:, row, column].argmax(axis=1)


class MultiMazeExBMDP(ExBMDP):
    """Binary images of 27 x 27 pixels, 3 x 3 mazes of four rooms, one pixel set in each: who stands where.

    Each maze has 68 cells: four rooms of 4 x 4 and the four doors that join them. Four moves; a move into a wall
    leads nowhere. The agent starts in the corner of its maze, the walkers anywhere, and a walker makes one
    of the four moves at random at each step. Which maze is the agent's is drawn from `seed`, as is
    the walkers' order. Latent states at h are numbered by `cells(h)`, those cells that can be reached by then.

    The hypothesis class `encoders(h)` holds nine encoders for each h > 1: which maze is mine?
    """

    n_actions = 4
    obs_shape = (3 * SIDE, 3 * SIDE)
    obs_dtype: np.dtype[Any] = np.dtype(np.uint8)
    n_values = len(CELLS)

    def __init__(self, horizon: int = 8, seed: int = 0) -> None:
        self.H = horizon
        self.order = np.random.default_rng(seed).permutation(9)  # the agent's maze, then the walkers'
        self.mine = int(self.order[0])
        self._cells: list[Ints] = [np.zeros(1, dtype=np.int64)]
        for _ in range(self.H - 1):
            self._cells.append(np.unique(NEXT_CELL[self._cells[-1]]))

    def cells(self, h: int) -> Ints:
        """S*_h: the cells that the agent can stand in at h, ascending."""
        return self._cells[h - 1]

    def n_states(self, h: int) -> int:
        return len(self.cells(h))

    def T(self, h: int) -> Ints:
        return np.searchsorted(self.cells(h + 1), NEXT_CELL[self.cells(h)])

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return rng.integers(len(CELLS), size=(n, 8))

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return NEXT_CELL[e_h, rng.integers(4, size=e_h.shape)]

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        x = np.zeros((len(s_h), *self.obs_shape), dtype=np.uint8)
        stands = CELLS[np.concatenate([self.cells(h)[s_h][:, None], e_h], axis=1)]  # (n, 9, 2)
        corner = SIDE * np.stack(np.divmod(self.order, 3), axis=1)
        row, column = np.moveaxis(stands + corner, -1, 0)
        x[np.arange(len(x))[:, None], row, column] = 1
        return x

    def phi_star(self, x_h: NDArray[Any], h: int) -> Ints:
        return np.searchsorted(self.cells(h), CellInMaze(self.mine)(x_h))

    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[np.int64]:
        return np.stack([CellInMaze(int(maze))(x_h) for maze in self.order[1:]], axis=1)

    def encoders(self, h: int) -> list[Callable[[NDArray[Any]], Ints]]:
        """Phi_h for a FiniteOracle with n_values = 68: one encoder for each maze, and at h = 1 the constant one.

        The start is known to be one state. Were all nine mazes allowed there, a walker's maze would always be
        chosen: 68 cells can only fit better than the agent's one, and what they fit is chance.
        """
        return [ConstantEncoder()] if h == 1 else [CellInMaze(maze) for maze in range(9)]

    def policies(self, alpha: float = 1.0) -> tuple[MarkovPolicy, MarkovPolicy]:
        """Two agents that walk the whole reachable part of the maze and differ by alpha in every cell."""
        return contrasting_policies(self, alpha)
