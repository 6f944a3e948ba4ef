"""Atari games, played by ale-py, with the figure's place in RAM as the true state.

Figures that touch something may be thrown back or lost, whatever the action. So CRAFT's assumption of determinism is
broken a little, as the game is. Sticky actions are off.

The addresses in RAM are those of AtariARI (Anand et al. 2019, "Unsupervised State Representation Learning in Atari";
file atariari/benchmark/ram_annotations.py of mila-iqia/atari-representation-learning). A further game is one more
`AtariGame`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.gymworld import GymWorld
from craftrl.errors import InvalidDataError, require
from studies.worlds.habits import contrasting_habits
from studies.worlds.images import SmallImages

gymnasium = require("gymnasium", "studies")


ALPHA = 1.4  # how different the agents are: of three moves, the extremes differ by twice as much in log-odds


@dataclass(frozen=True)
class AtariGame:
    """A game, what is true in it, and how it is seen.

    game     its name at ALE: "Freeway" is ALE/Freeway-v5
    byte     of RAM, which reads first + place * size in the middle of a place; a negative size counts against the byte
    places   how many there are; what lies outside counts as the last one
    actions  ALE's name of each action, and by how many places it moves the figure
    chances  how often an agent without preferences takes each action
    frames   how long an action is held: as long as the figure needs for one place
    horizon  observations per episode
    phases   the numbers of idle frames of which one is drawn, to pass before an episode
    prelude  actions before the episode, after these frames: (ALE's name, frames)
    crop     top, bottom, left and right of what is seen of the screen
    factors  rows and columns of the screen in one pixel, which is their mean
    """

    game: str
    byte: int
    first: int
    size: int
    places: int
    actions: dict[str, int]
    chances: tuple[float, ...]
    frames: int
    horizon: int
    phases: range
    prelude: tuple[tuple[str, int], ...] = ()
    crop: tuple[int, int, int, int] = (0, 210, 0, 160)
    factors: tuple[int, int] = (5, 4)

    def state(self, ram: NDArray[np.uint8]) -> int:
        """The true state: the figure's place."""
        nearest = int(np.floor((int(ram[self.byte]) - self.first) / self.size + 0.5))
        return min(max(nearest, 0), self.places - 1)

    def moves(self) -> NDArray[np.int64]:
        """Where each action leads from each place if nothing interferes, shape (places, |A|)."""
        there = np.arange(self.places)[:, None] + np.array(list(self.actions.values()))
        return np.clip(there, 0, self.places - 1)


# The chicken moves one pixel of the screen a frame, from the kerb (RAM 6) upwards, across ten lanes of traffic. A car
# that hits it throws it back.
FREEWAY = AtariGame(
    game="Freeway",
    byte=14,
    first=6,
    size=4,
    places=43,
    actions={"NOOP": 0, "UP": 1, "DOWN": -1},
    chances=(0.25, 0.5, 0.25),
    frames=4,
    horizon=11,
    phases=range(1000),
)

# The submarine moves one pixel a frame. It dives to the sea bed before the episode, and cannot reach the surface in ten
# steps, where it would lose a life; a fish's touch sinks it. It moves up and down only, so that it never turns round.
# The oxygen gauge, which shows how long it was under water, is cropped away, and so are score and lives.
SEAQUEST = AtariGame(
    game="Seaquest",
    byte=97,
    first=108,
    size=-6,
    places=17,
    actions={"NOOP": 0, "UP": 1, "DOWN": -1},
    chances=(0.25, 0.5, 0.25),
    frames=6,
    horizon=10,
    phases=range(200, 1200, 4),
    prelude=(("DOWN", 95),),
    crop=(44, 160, 0, 160),
    factors=(4, 4),
)


def atari_world(game: AtariGame) -> GymWorld:
    """The world of one game and its two agents."""
    require("ale_py", "studies")
    agents = contrasting_habits(game.moves(), game.horizon, chances=game.chances, alpha=ALPHA)
    make, state = partial(atari_env, game), partial(_state, game)
    return GymWorld(make, state, game.places, range(len(game.actions)), game.horizon, agents)


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


def _state(game: AtariGame, env: Any) -> int:
    return game.state(env.unwrapped.ale.getRAM())


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
        self.starts: dict[int, Any] = {}  # and those from which an episode starts; None where the figure is not ready

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        if not self.phases:
            self.env.reset(seed=0)
            for frame in range(self.game.phases[-1] + 1):
                if frame in self.game.phases:
                    self.phases.append(self.ale.cloneState())
                self._hold("NOOP", 1)
        self.ale.restoreState(self._start(int(self.rng.integers(len(self.phases)))))
        self._hold("NOOP", 1)  # restoring draws nothing: without this the screen is still the last episode's
        return self.ale.getScreenGrayscale(), {}

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        x, reward, terminated, truncated, info = self.env.step(self.numbers[action])
        return x, float(reward), terminated, truncated, info

    def _start(self, phase: int) -> Any:
        """The start of this phase, or of the next one in which the figure is where it should be."""
        for i in range(len(self.phases)):
            if (found := self._prepared((phase + i) % len(self.phases))) is not None:
                return found
        raise InvalidDataError(
            f"The figure of {self.game.game} must start in state 0 and obey its actions; it does so in no phase; check "
            "the game's byte, actions, frames and prelude."
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
