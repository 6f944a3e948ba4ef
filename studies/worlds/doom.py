"""ViZDoom: a room in three dimensions, seen by a player who stands still and turns; the true state is the direction.

The scenario is "defend the line": monsters come from the far wall, in other ways in every episode. They go where the
player stands, which no action changes, wherever the player looks.
"""

from __future__ import annotations

from contextlib import chdir
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.gymworld import GymWorld
from craftrl.envs.overlay import MovingFigures
from craftrl.errors import require
from studies.worlds.habits import contrasting_habits
from studies.worlds.images import SmallImages

gymnasium = require("gymnasium", "studies")


DIRECTIONS = 12
TURNS = (-1, 0, 1)  # by how many directions each action turns the player, to the right
WAIT = (10, 80)  # tics before an episode starts: a random number, at least the first and below the second
ALPHA = 1.2
CIRCLE = 2**16  # Doom's own unit of angles is this part of a full turn


def doom_world(horizon: int = 10, n_walkers: int = 2) -> GymWorld:
    """A player who turns on the spot among 12 directions, seen through the player's eyes, 30 x 40 RGB.

    `n_walkers` figures fly across the view.
    """
    require("vizdoom", "studies")
    moves = (np.arange(DIRECTIONS)[:, None] + np.array(TURNS)) % DIRECTIONS
    agents = contrasting_habits(moves, horizon, alpha=ALPHA)
    return GymWorld(partial(doom_env, n_walkers), _state, DIRECTIONS, (0, 1, 2), horizon, agents)


def doom_env(n_walkers: int) -> Any:
    """The player's view as a Gymnasium environment: the screen of 120 x 160 pixels, averaged over 4 x 4 of them."""
    return MovingFigures(SmallImages(DoomTurning(), (4, 4)), n_walkers, sizes=(1.5, 3))


class DoomTurning(gymnasium.Env):  # type: ignore[name-defined]
    """Turn left, stay, turn right; each action takes four of Doom's tics, the turn itself the first.

    Doom rounds turns down to its own unit of angles, so that turns of 30 degrees do not add up: after some, what is
    seen would tell how often the player turned, and the direction would not be the whole state. So each turn ends at
    an angle that the new direction alone decides.
    """

    tics = 4

    def __init__(self) -> None:
        vizdoom = require("vizdoom", "studies")
        self.observation_space = gymnasium.spaces.Box(0, 255, (120, 160, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(TURNS))
        self.angle = vizdoom.GameVariable.ANGLE
        game = self.game = vizdoom.DoomGame()
        game.load_config(str(Path(vizdoom.scenarios_path) / "defend_the_line.cfg"))
        game.set_window_visible(False)
        game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
        game.set_screen_format(vizdoom.ScreenFormat.RGB24)
        game.set_available_buttons([vizdoom.Button.TURN_LEFT_RIGHT_DELTA])
        game.set_render_weapon(False)
        game.set_episode_timeout(0)
        folder = TemporaryDirectory(prefix="craftrl-doom-")
        with chdir(folder.name):  # Doom writes its settings where it starts, and again when it ends
            game.init()
        self.close = finalize(self, _end, game, folder)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self.game.set_seed(int(self.np_random.integers(2**31)))
        self.game.new_episode()
        self.game.make_action([0], int(self.np_random.integers(*WAIT)))
        return self._screen(), {}

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        self.game.make_action([self._degrees_to(self.direction() + TURNS[action])], 1)
        self.game.make_action([0], self.tics - 1)
        return self._screen(), 0.0, self.game.is_episode_finished(), False, {}

    def direction(self) -> int:
        """0 at the start; one more for every turn to the right."""
        return round(-self._angle() * DIRECTIONS / CIRCLE) % DIRECTIONS

    def _angle(self) -> int:
        """In Doom's units, to the left."""
        return round(self.game.get_game_variable(self.angle) * CIRCLE / 360)

    def _degrees_to(self, direction: int) -> float:
        """By how much to turn to the right."""
        there = -round(direction % DIRECTIONS * CIRCLE / DIRECTIONS)
        units = (self._angle() - there + CIRCLE // 2) % CIRCLE - CIRCLE // 2
        return (units + 0.5) * 360 / CIRCLE if units else 0.0  # half a unit more, since Doom rounds down

    def _screen(self) -> NDArray[np.uint8]:
        state = self.game.get_state()
        return np.zeros((120, 160, 3), np.uint8) if state is None else state.screen_buffer


def _end(game: Any, folder: TemporaryDirectory[str]) -> None:
    game.close()
    folder.cleanup()


def _state(env: Any) -> int:
    return env.unwrapped.direction()
