"""Atari games, played by ale-py, with the figure's place in RAM as the true state.

Figures that touch something may be thrown back or lost, whatever the action. So CRAFT's assumption of determinism is
broken a little, as the game is. Sticky actions are off.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.gymworld import GymWorld
from craftrl.errors import InvalidDataError, require
from studies.worlds.atari_games import FREEWAY, SEAQUEST, AtariGame
from studies.worlds.habits import contrasting_habits
from studies.worlds.images import SmallImages

gymnasium = require("gymnasium", "studies")

__all__ = ["RandomPhase", "atari_env", "atari_world", "freeway", "seaquest"]

ALPHA = 1.4  # how different the agents are: of three moves, the extremes differ by twice as much in log-odds


def freeway(horizon: int = FREEWAY.horizon, *, seed: int = 0) -> GymWorld:
    """A chicken crosses ten lanes of traffic; the true state is its row. A car that hits it throws it back."""
    return atari_world(FREEWAY, horizon, seed=seed)


def seaquest(horizon: int = SEAQUEST.horizon, *, seed: int = 0) -> GymWorld:
    """A submarine rises from the sea bed among fish; the true state is its depth. A fish's touch sinks it."""
    return atari_world(SEAQUEST, horizon, seed=seed)


def atari_world(game: AtariGame, horizon: int | None = None, *, alpha: float = ALPHA, seed: int = 0) -> GymWorld:
    """The world of one game; `seed` draws its two agents' habits."""
    require("ale_py", "studies")
    H = game.horizon if horizon is None else horizon
    agents = contrasting_habits(game.moves(), H, chances=game.chances, alpha=alpha, seed=seed)
    return GymWorld(partial(atari_env, game), partial(_state, game), game.n_states, range(len(game.actions)), H, agents)


def atari_env(game: AtariGame) -> Any:
    """The game as a Gymnasium environment; action i is the i-th of `game.actions`, held for `game.frames` frames."""
    ale_py = require("ale_py", "studies")
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    env = gymnasium.make(
        f"ALE/{game.game}-v5",
        obs_type="grayscale",
        frameskip=game.frames,
        repeat_action_probability=0.0,
        disable_env_checker=True,
    )
    return SmallImages(RandomPhase(env, game), game.factors, game.crop)


class RandomPhase(gymnasium.Wrapper):  # type: ignore[name-defined]
    """Episodes that start after a random number of idle frames, all with the figure in state 0 and free to move.

    ALE's game is the same after every reset, to the frame. So its states after 0, 1, 2, ... idle frames are kept, and
    `reset` goes back to one of them. Phases in which the figure is elsewhere, or does not obey, are passed over for the
    next one: something hit it on the way.
    """

    def __init__(self, env: Any, game: AtariGame) -> None:
        super().__init__(env)
        self.game = game
        self.ale = env.unwrapped.ale
        meanings = env.unwrapped.get_action_meanings()
        self.codes = dict(zip(meanings, self.ale.getMinimalActionSet()))
        self.numbers = [meanings.index(name) for name in game.actions]  # the wrapped environment's, of our actions
        self.action_space = gymnasium.spaces.Discrete(len(self.numbers))
        self.rng = np.random.default_rng()
        self.phases: list[Any] = []  # ALE's states after so many idle frames
        self.starts: dict[int, Any] = {}  # and those from which an episode starts

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        if not self.phases:
            self.env.reset(seed=0)
            self._keep_phases()
        self.ale.restoreState(self._start(int(self.rng.integers(len(self.phases)))))
        self._hold("NOOP", 1)  # restoring draws nothing: without this the screen is still the last episode's
        return self.ale.getScreenGrayscale(), {}

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        x, reward, terminated, truncated, info = self.env.step(self.numbers[action])
        return x, float(reward), terminated, truncated, info

    def _keep_phases(self) -> None:
        for frame in range(self.game.phases[-1] + 1):
            if frame in self.game.phases:
                self.phases.append(self.ale.cloneState())
            self._hold("NOOP", 1)

    def _start(self, phase: int) -> Any:
        """The start of this phase, or of the next one in which the figure is where it should be."""
        for i in range(len(self.phases)):
            found = self._prepared((phase + i) % len(self.phases))
            if found is not None:
                return found
        raise InvalidDataError(
            f"The figure of {self.game.game} must start in state 0 and obey its actions; it does so in no phase; check "
            "the game's axes, actions, frames and prelude."
        )

    def _prepared(self, phase: int) -> Any:
        """ALE's state after the prelude, with one idle frame still to come; None where the figure is not ready."""
        if phase not in self.starts:
            self.ale.restoreState(self.phases[phase])
            for name, frames in self.game.prelude:
                self._hold(name, frames)
            kept = self.ale.cloneState()
            self.starts[phase] = kept if self._ready(kept) else None
        return self.starts[phase]

    def _ready(self, kept: Any) -> bool:
        """Whether the figure is in state 0 and does there what each action says; one that was hit does not."""
        for name, to in zip(self.game.actions, self.game.moves()[0]):
            self.ale.restoreState(kept)
            self._hold("NOOP", 1)
            before = self.game.state(self.ale.getRAM())
            self._hold(name, self.game.frames)
            if before != 0 or self.game.state(self.ale.getRAM()) != to:
                return False
        return True

    def _hold(self, name: str, frames: int) -> None:
        for _ in range(frames):
            self.ale.act(self.codes[name])


def _state(game: AtariGame, env: Any) -> int:
    return game.state(env.unwrapped.ale.getRAM())
