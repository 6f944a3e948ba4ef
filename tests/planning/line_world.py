"""Cells in a row, with doors that may be shut, and models that read them rightly, wrongly, or two as one."""

from types import SimpleNamespace

import numpy as np

from craftrl.planning import Grounding, StateGraph

LEFT, RIGHT = 0, 1


class Line:
    """An observation is the number of the cell; no package is needed to be an environment.

    stuck  how often an action does nothing; shut: moves (cell, cell) that never happen; limit: the episode's actions
    """

    def __init__(self, n, start, stuck=0.0, shut=(), limit=None):
        self.action_space = SimpleNamespace(n=2)
        self.n, self.start, self.stuck, self.shut, self.limit = n, start, stuck, shut, limit

    def reset(self, seed=None):
        self.rng, self.cell, self.taken = np.random.default_rng(seed), self.start, 0
        return np.array([self.cell]), {}

    def step(self, action):
        there = int(np.clip(self.cell + (1 if action == RIGHT else -1), 0, self.n - 1))
        if (self.cell, there) not in self.shut and self.rng.random() >= self.stuck:
            self.cell = there
        self.taken += 1
        return np.array([self.cell]), 0.0, False, self.taken == self.limit, {}


class Reads:
    """Reads cell i as state `names[i]`, and a share `error` of the time as any state."""

    obs_shape_ = (1,)

    def __init__(self, names, error=0.0, seed=0):
        self.names, self.error, self.rng = np.array(names), error, np.random.default_rng(seed)
        self.n_states_total_ = max(names) + 1

    def encode(self, x, h=None):
        states = self.names[np.asarray(x)[:, 0]]
        wrong = self.rng.random(len(states)) < self.error
        return np.where(wrong, self.rng.integers(self.n_states_total_, size=len(states)), states)


def walks(n, start, share_right=0.5, episodes=300, H=12, seed=0):
    """Cells (episodes, H) and actions of an agent that goes right this often."""
    rng = np.random.default_rng(seed)
    actions = (rng.random((episodes, H - 1)) < share_right).astype(int)
    cells = np.full((episodes, H), start)
    for h in range(1, H):
        cells[:, h] = np.clip(cells[:, h - 1] + np.where(actions[:, h - 1] == RIGHT, 1, -1), 0, n - 1)
    return cells, actions


def grounded(names, start, labels=200, **options):
    """A grounding of the line as `names` has it, from the first transitions of videos."""
    cells, actions = walks(len(names), start)
    states = np.array(names)[cells]
    grounding = Grounding(StateGraph.from_states(states, np.zeros(len(states), int), shared=True), 2, **options)
    moves = zip(states[:, :-1].ravel(), actions.ravel(), states[:, 1:].ravel())
    for (s, a, t), _ in zip(moves, range(labels)):
        grounding.add(int(s), int(a), int(t))
    return grounding
