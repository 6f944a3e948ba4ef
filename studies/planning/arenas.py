"""Where plans are tried: a world, its recordings, an environment that says what is true, and goals.

Goals are drawn uniformly from the true states that held-out videos visit, the start left out. A technique is given an
observation of its goal, a frame of those videos, and never its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.data.inputs import as_dataset
from craftrl.envs import GymWorld, PixelsExBMDP, collect
from craftrl.envs.collection import Collection, GroundTruth
from craftrl.envs.gym import ExBMDPEnv
from craftrl.errors import require
from craftrl.paper.sweep import seed_of
from studies.games.data import read, world_of
from studies.planning.spec import GAMES, Run
from studies.rivals import Data
from studies.worlds.multimaze import MultiMazeExBMDP

gymnasium = require("gymnasium", "envs")


HELD_OUT = 1000  # videos of each agent that no technique is fitted to
MAX_SEED = 2**31


class Watched(gymnasium.Wrapper):  # type: ignore[name-defined]
    """A world's environment that is cut off after H observations and says which true states an episode visited.

    Its actions are numbered 0..n_actions-1. Observations are shown as they are, as the true states ("true"), or bits as
    a grey picture ("drawn").
    """

    def __init__(self, world: Any, seen: str = "plain") -> None:
        super().__init__(world.make() if isinstance(world, GymWorld) else ExBMDPEnv(world))
        self.world, self.seen = world, seen
        self.action_space = gymnasium.spaces.Discrete(world.n_actions)
        if seen == "true":
            self.observation_space = gymnasium.spaces.Box(0, MAX_SEED, (1,), np.int64)
        if seen == "drawn":
            self.observation_space = gymnasium.spaces.Box(0, 255, (*world.obs_shape, 1), np.uint8)
        self.visited: list[int] = []
        self.over = True

    @property
    def state(self) -> int:
        """The true state, under one name at all steps."""
        return self.visited[-1]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        x, info = self.env.reset(seed=seed, options=options)
        self.visited, self.over = [], False
        return self._shown(x, info), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        given = self.world.actions[int(action)] if isinstance(self.world, GymWorld) else int(action)
        x, _, terminated, truncated, info = self.env.step(given)
        shown = self._shown(x, info)
        self.over = bool(terminated or truncated or len(self.visited) >= self.world.H)
        return shown, 0.0, False, self.over, info

    def _shown(self, x: Any, info: dict[str, Any]) -> Any:
        """The observation; the true state is noted."""
        if isinstance(self.world, GymWorld):
            self.visited.append(int(self.world.true_state(self.env)))
        else:
            self.visited.append(int(_names(self.world, np.array([info["state"]]), len(self.visited) + 1)[0]))
        return np.array([self.state]) if self.seen == "true" else _picture(x) if self.seen == "drawn" else x


class Goal(NamedTuple):
    """A true state to reach, an observation of it, and the seed of the episode in which it is tried."""

    state: int
    observation: NDArray[Any]
    seed: int


@dataclass(frozen=True, eq=False)
class Arena:
    """A world as techniques meet it. Ground truth has one name for each state at all steps."""

    world: Any
    data: Data
    seen: str = "plain"

    def make(self) -> Watched:
        return Watched(self.world, self.seen)

    @property
    def n_actions(self) -> int:
        return int(self.world.n_actions)

    @property
    def start(self) -> int:
        return int(self.data.train.truth.states[0, 0])

    def goals(self, n: int, seed: Any) -> list[Goal]:
        """n goals, drawn uniformly over states."""
        rng = np.random.default_rng(seed)
        tau, true = self.data.test.tau, self.data.test.truth.states
        states = rng.choice(np.setdiff1d(true[:, 1:], [self.start, -1]), n)
        spots = [rng.choice(np.argwhere(true == state)) for state in states]
        x = [tau.at(int(h) + 1)[int(row)] for row, h in spots]
        return list(map(Goal, states.tolist(), x, rng.integers(MAX_SEED, size=n).tolist()))

    def drawn(self) -> Arena:
        """The same with pictures in place of rows and columns of bits, for networks; others are left as they are."""
        if len(self.data.train.tau.obs_shape) != 2:
            return self
        return self._seen_as("drawn", lambda played: _picture(played.tau.rows(np.arange(played.tau.n))))

    def of_true_states(self) -> Arena:
        """The same with observations that are the true states."""
        return self._seen_as("true", lambda played: played.truth.states[..., None])

    def _seen_as(self, seen: str, observed: Callable[[Collection], Any]) -> Arena:
        train, test = (
            Collection(as_dataset(observed(played), played.tau.agent).tau, played.truth)
            for played in (self.data.train, self.data.test)
        )
        return Arena(self.world, replace(self.data, train=train, test=test), seen)


def arena_of(run: Run) -> Arena:
    """The arena of a run; the last one is kept. It depends on the world, its size, n and seed alone."""
    return _arena(replace(run, technique="", labels=(), goals=0, steps=0, rates=(), device=""))


@lru_cache(maxsize=1)
def _arena(run: Run) -> Arena:
    if run.world in GAMES:
        train, test = read(run.data, run.world, run.n)
        return Arena(world_of(run.world), Data(train, test, train))
    world: Any
    if run.world == "multimaze":
        world = MultiMazeExBMDP(run.horizon, seed=run.seed)
        policies = world.policies()
    else:
        layout = "rooms" if run.world == "rooms" else "open"
        world = PixelsExBMDP(run.horizon, run.size, run.walkers, layout=layout, seed=run.seed)  # type: ignore[arg-type]
        policies = world.policies(seed=run.seed)
    seeds = seed_of("planning", run.world, run.size, run.horizon, run.walkers, run.n, run.seed).spawn(2)
    found = []
    for n, seed in zip((run.n, min(run.n, HELD_OUT)), seeds):
        played = collect(world, policies, n, np.random.default_rng(seed))
        states = enumerate(played.truth.states.T, start=1)
        named = np.stack([_names(world, column, h) for h, column in states], axis=1)
        found.append(Collection(played.tau, GroundTruth(named, played.truth.actions)))
    return Arena(world, Data(found[0], found[1], found[0]))


def _names(world: Any, states: Ints, h: int) -> Ints:
    """True states at h under names that they have at all steps."""
    return world.cells(h)[states] if isinstance(world, MultiMazeExBMDP) else states


def _picture(bits: Any) -> NDArray[np.uint8]:
    """Bits (..., rows, columns) as grey pictures (..., rows, columns, 1)."""
    return np.asarray(255 * np.asarray(bits, dtype=np.uint8)[..., None])
