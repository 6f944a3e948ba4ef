"""MiniGrid: an arrow on a grid with walls, seen from above; the true state is its cell and its direction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.gymworld import GymWorld
from craftrl.envs.overlay import MovingFigures
from craftrl.errors import require
from studies.worlds.habits import contrasting_habits

gymnasium = require("gymnasium", "studies")


LAYOUT = "MiniGrid-SimpleCrossingS9N1-v0"
PIXELS = 6  # of each cell's side
ACTIONS = (0, 1, 2)  # MiniGrid's numbers of: turn left, turn right, go forward
CHANCES = (0.25, 0.25, 0.5)
AHEAD = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])  # columns and rows to the cell ahead, by direction
ALPHA = 1.2


def minigrid_world(horizon: int = 10, n_walkers: int = 4, *, seed: int = 0) -> GymWorld:
    """One layout with figures that walk over the image; walls, goal and start are the same in all episodes.

    Agents turn left, turn right and go forward. The goal is paint: no episode ends there. `seed` draws the layout, the
    looks of the figures, and the agents' habits.
    """
    make = partial(minigrid_env, n_walkers, seed)
    env = make()
    start, moves = start_and_moves(env)
    env.close()
    agents = contrasting_habits(moves, horizon, start, chances=CHANCES, alpha=ALPHA, seed=seed)
    return GymWorld(make, _state, len(moves), ACTIONS, horizon, agents)


def minigrid_env(n_walkers: int, seed: int) -> Any:
    """The layout as a Gymnasium environment of RGB images, (rows * PIXELS, columns * PIXELS, 3)."""
    wrappers = require("minigrid.wrappers", "studies")
    grid = FixedLayout(gymnasium.make(LAYOUT, highlight=False, disable_env_checker=True), seed)
    seen = wrappers.ImgObsWrapper(wrappers.RGBImgObsWrapper(grid, PIXELS))
    return MovingFigures(seen, n_walkers, sizes=(0.35 * PIXELS, 0.7 * PIXELS), seed=seed)


class FixedLayout(gymnasium.Wrapper):  # type: ignore[name-defined]
    """Every episode has the layout and the start that `seed` draws, and runs on where MiniGrid would end it."""

    def __init__(self, env: Any, seed: int) -> None:
        super().__init__(env)
        self.layout_seed = seed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=self.layout_seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        x, reward, _, _, info = self.env.step(action)
        return x, reward, False, False, info


def _number(column: Any, row: Any, direction: Any, width: int) -> Any:
    """The state's number: cells row by row, four directions each."""
    return (row * width + column) * 4 + direction


def _state(env: Any) -> int:
    grid = env.unwrapped
    column, row = grid.agent_pos
    return int(_number(column, row, grid.agent_dir, grid.width))


def start_and_moves(env: Any) -> tuple[int, NDArray[np.int64]]:
    """The start, and where each action leads from each state, shape (n_states, 3)."""
    env.reset(seed=0)
    grid = env.unwrapped
    width, height = grid.width, grid.height
    things = [[grid.grid.get(c, r) for c in range(width)] for r in range(height)]
    free = np.array([[thing is None or thing.can_overlap() for thing in row] for row in things])
    row, column, d = np.indices((height, width, 4)).reshape(3, -1)
    c, r = np.clip(column + AHEAD[d, 0], 0, width - 1), np.clip(row + AHEAD[d, 1], 0, height - 1)
    go = free[r, c]
    forward = _number(np.where(go, c, column), np.where(go, r, row), d, width)
    turns = (_number(column, row, (d + by) % 4, width) for by in (-1, 1))
    return _state(env), np.stack([*turns, forward], axis=1)
