"""MiniGrid: an arrow on a grid with walls; the true state is its cell and its direction."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.gymworld import GymWorld
from craftrl.envs.overlay import MovingFigures
from craftrl.errors import InvalidParameterError, require
from studies.worlds.habits import contrasting_habits

gymnasium = require("gymnasium", "studies")

__all__ = ["FixedLayout", "TopView", "minigrid_env", "minigrid_world"]

ACTIONS = (0, 1, 2)  # MiniGrid's numbers of: turn left, turn right, go forward
CHANCES = (0.25, 0.25, 0.5)
AHEAD = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])  # columns and rows to the cell ahead, by direction
ALPHA = 1.2


def minigrid_world(
    horizon: int = 10,
    layout: str = "MiniGrid-SimpleCrossingS9N1-v0",
    n_walkers: int = 4,
    *,
    pixels: int = 6,
    alpha: float = ALPHA,
    seed: int = 0,
) -> GymWorld:
    """One MiniGrid layout seen from above, with figures that walk over the image.

    layout     any registered id of MiniGrid; walls, goal and start are the same in all episodes
    n_walkers  how many figures nobody controls
    pixels     of each cell's side
    seed       draws the layout where MiniGrid draws it, the looks of the figures, and the agents' habits

    Agents turn left, turn right and go forward. Goals and lava are paint: no episode ends there. Doors stay shut.
    """
    make = partial(minigrid_env, layout, n_walkers, pixels, seed)
    env = make()
    start, moves = _start_and_moves(env)
    env.close()
    agents = contrasting_habits(moves, horizon, start, chances=CHANCES, alpha=alpha, seed=seed)
    return GymWorld(make, _state, len(moves), ACTIONS, horizon, agents)


def minigrid_env(layout: str, n_walkers: int, pixels: int, seed: int) -> Any:
    """The layout as a Gymnasium environment of RGB images, (rows * pixels, columns * pixels, 3)."""
    require("minigrid", "studies")
    if not (layout.startswith("MiniGrid-") and layout in gymnasium.registry):
        raise InvalidParameterError(
            f"The layout must be a registered id of MiniGrid, such as MiniGrid-FourRooms-v0; {layout!r} was given."
        )
    grid = gymnasium.make(layout, disable_env_checker=True)
    return MovingFigures(
        TopView(FixedLayout(grid, seed), pixels), n_walkers, sizes=(0.35 * pixels, 0.7 * pixels), seed=seed
    )


class FixedLayout(gymnasium.Wrapper):  # type: ignore[name-defined]
    """Every episode has the layout and the start that `seed` draws, and runs on where MiniGrid would end it.

    The seed that `reset` gets goes to what moves by itself afterwards, such as the balls of the dynamic obstacles.
    """

    def __init__(self, env: Any, seed: int) -> None:
        super().__init__(env)
        self.layout_seed = seed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        x, info = self.env.reset(seed=self.layout_seed, options=options)
        self.env.unwrapped.np_random = np.random.default_rng(seed)
        return x, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        x, reward, _, _, info = self.env.step(action)
        return x, reward, False, False, info


class TopView(gymnasium.ObservationWrapper):  # type: ignore[name-defined]
    """The whole grid from above, RGB, without MiniGrid's highlight of what the agent sees."""

    def __init__(self, env: Any, pixels: int) -> None:
        super().__init__(env)
        self.pixels = pixels
        grid = env.unwrapped
        self.observation_space = gymnasium.spaces.Box(0, 255, (grid.height * pixels, grid.width * pixels, 3), np.uint8)

    def observation(self, observation: Any) -> NDArray[np.uint8]:
        grid = self.unwrapped
        return grid.grid.render(self.pixels, tuple(grid.agent_pos), grid.agent_dir)


def _number(column: Any, row: Any, direction: Any, width: int) -> Any:
    """The state's number: cells row by row, four directions each."""
    return (row * width + column) * 4 + direction


def _state(env: Any) -> int:
    grid = env.unwrapped
    column, row = grid.agent_pos
    return int(_number(column, row, grid.agent_dir, grid.width))


def _start_and_moves(env: Any) -> tuple[int, NDArray[np.int64]]:
    """The start, and where each action leads from each state, shape (n_states, 3)."""
    env.reset(seed=0)
    grid = env.unwrapped
    width, height = grid.width, grid.height
    free = np.array([[_can_enter(grid.grid.get(c, r)) for c in range(width)] for r in range(height)])
    row, column, d = np.indices((height, width, 4)).reshape(3, -1)
    c, r = np.clip(column + AHEAD[d, 0], 0, width - 1), np.clip(row + AHEAD[d, 1], 0, height - 1)
    go = free[r, c]
    forward = _number(np.where(go, c, column), np.where(go, r, row), d, width)
    turns = (_number(column, row, (d + by) % 4, width) for by in (-1, 1))
    return _state(env), np.stack([*turns, forward], axis=1)


def _can_enter(thing: Any) -> bool:
    return thing is None or bool(thing.can_overlap())
