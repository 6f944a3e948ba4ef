"""A small world: nine cells, frames of 6 x 6 pixels, a model that reads them without error, and what goes wrong."""

from __future__ import annotations

import gymnasium
import numpy as np

from craftrl.data import TrajectoryDataset
from craftrl.envs import GymWorld

STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right
CENTRE = 4
H = 8


def moved(cell, action):
    row, column = divmod(int(cell), 3)
    down, right = STEPS[action]
    return int(np.clip(row + down, 0, 2) * 3 + np.clip(column + right, 0, 2))


def frame(cell, rng):
    """The agent is red; the green light is noise."""
    x = np.zeros((6, 6, 3), np.uint8)
    row, column = divmod(int(cell), 3)
    x[2 * row : 2 * row + 2, 2 * column : 2 * column + 2, 0] = 200
    x[..., 1] = rng.integers(100, size=(6, 6))
    return x


class Grid(gymnasium.Env):
    """`slip` is the chance that another action is taken than the one asked for."""

    def __init__(self, slip=0.0, n_actions=4):
        self.observation_space = gymnasium.spaces.Box(0, 255, (6, 6, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(n_actions)
        self.slip = slip

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.h = CENTRE, 1
        return frame(self.cell, self.np_random), {}

    def step(self, action):
        slips = self.np_random.random() < self.slip
        self.cell = moved(self.cell, int(self.np_random.integers(4)) if slips else action)
        self.h += 1
        return frame(self.cell, self.np_random), 0.0, False, self.h >= H, {}


class Corner(Grid):
    """Episodes begin where those of the videos hardly do."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return frame(self.cell, self.np_random), {}


class Blocked(Grid):
    """Nobody gets into the last cell."""

    def step(self, action):
        before = self.cell
        _, *rest = super().step(action)
        self.cell = before if self.cell == 8 else self.cell
        return frame(self.cell, self.np_random), *rest


class Failing(Grid):
    def step(self, action):
        raise KeyError("lost")


def continuous():
    grid = Grid()
    grid.action_space = gymnasium.spaces.Box(-1, 1, (2,))
    return grid


def nothing():
    pass


def broken():
    raise RuntimeError("no display")


def of_bits():
    return gymnasium.make("craftrl.envs:craftrl/Bits-v0", horizon=5, n_features=12)


def world():
    return GymWorld(Grid, lambda env: env.unwrapped.cell, 9, H=3)


class ExactModel:
    """One encoder for all steps; with `extra` it knows states that no video shows."""

    obs_shape_ = (6, 6, 3)

    def __init__(self, extra=0):
        self.n_states_total_ = 9 + extra

    def encode(self, x, h=None):
        return np.asarray(x)[..., 0].reshape(-1, 3, 2, 3, 2).sum(axis=(2, 4)).reshape(-1, 9).argmax(axis=1)


def videos(n=200, seed=0):
    """Random walks of two agents, (tau, actions)."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(4, size=(2 * n, H - 1))
    x = np.empty((2 * n, H, 6, 6, 3), np.uint8)
    for i, row in enumerate(actions):
        cell = CENTRE
        x[i, 0] = frame(cell, rng)
        for h, a in enumerate(row):
            cell = moved(cell, a)
            x[i, h + 1] = frame(cell, rng)
    return TrajectoryDataset.from_arrays([x[:n], x[n:]]), actions
