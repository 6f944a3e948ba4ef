"""Small random Ex-BMDPs of many kinds, whose coordinates are the hypothesis class.

One coordinate is the state. Each other one is (m s + c b + e) mod V: with m = 0 it is noise, with m = 1 a blurred copy
of the state, or a mimic of it where e is sticky; with b = 1 it shares a noise c with others, so that many coordinates
agree on what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Ints
from craftrl.envs.agents import MarkovPolicy, tilted
from craftrl.envs.exbmdp import ExBMDP


class TabularExBMDP(ExBMDP):
    """Random tables T, one coordinate for the state, and random noise coordinates.

    Every noise keeps its value from one step to the next with probability `stay`, and else draws it from `marginal`.

    states, actions  |S| (from the step on at which so many can be reached) and |A|
    ring             whether actions move along a ring of states, the same at every step; else tables are random
    chorus           how many of the coordinates share one noise that never changes
    """

    obs_dtype = np.dtype(np.uint8)

    def __init__(
        self, H: int, states: int, actions: int, features: int, seed: int, ring: bool = False, chorus: int = 0
    ) -> None:
        rng = np.random.default_rng(seed)
        self.H, self.n_actions, self.V = H, actions, states
        self.obs_shape, self.obs_high = (features,), float(states - 1)
        self.tables = _ring(H, states, actions) if ring else _random_tables(H, states, actions, rng)
        m = features - 1  # noise entries beside c, which is the last
        self.mixes = rng.random(m) < 0.6
        self.shares = np.arange(m) < chorus
        self.mixes |= self.shares
        self.stay = np.append(rng.choice([0.0, 0.5, 0.9, 0.98, 1.0], size=m), 1.0)
        blurred = self.mixes & (rng.random(m) < 0.5) | self.shares
        self.stay[:-1][blurred] = 0.0
        self.marginal = np.stack(
            [_near_zero(states, rng) if b else rng.dirichlet(np.full(states, 5.0)) for b in blurred]
        )
        self.marginal = np.concatenate([self.marginal, np.full((1, states), 1 / states)])
        self.place = np.stack(
            [rng.permutation(features) for _ in range(H)]
        )  # where coordinate i of (s, noise) is shown

    def n_states(self, h: int) -> int:
        return 1 if h == 1 else int(self.tables[h - 2].max()) + 1

    def T(self, h: int) -> Ints:
        return self.tables[h - 1]

    def sample_noise(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        edges = self.marginal.cumsum(axis=1)[:, :-1]
        return (rng.random((n, len(edges), 1)) >= edges).sum(axis=2)

    def step_noise(self, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        return np.where(rng.random(e_h.shape) < self.stay, e_h, self.sample_noise(len(e_h), rng))

    def emit(self, s_h: Ints, e_h: NDArray[Any], h: int, rng: np.random.Generator) -> NDArray[Any]:
        shown = (e_h[:, :-1] + self.mixes * s_h[:, None] + self.shares * e_h[:, -1:]) % self.V
        x = np.empty((len(s_h), *self.obs_shape), dtype=self.obs_dtype)
        x[:, self.place[h - 1]] = np.column_stack([s_h, shown])
        return x

    def phi_star(self, x_h: NDArray[Any], h: int) -> Ints:
        return x_h[:, self.place[h - 1][0]].astype(np.int64)

    def phi_e(self, x_h: NDArray[Any], h: int) -> NDArray[Any]:
        raise NotImplementedError("The noise that coordinates share cannot be read off one observation.")


def random_agents(world: TabularExBMDP, n_agents: int, alpha: float, seed: int) -> list[MarkovPolicy]:
    """Agents whose log-odds of two successors of any state differ by `alpha` or more between the first two of them.

    The others have preferences of their own, of the same strength.
    """
    rng = np.random.default_rng([seed, 1])
    tables: list[list[NDArray[np.float64]]] = [[] for _ in range(n_agents)]
    for h in range(1, world.H):
        shape = world.T(h).shape
        base = 0.1 + rng.dirichlet(np.full(shape[1], 3.0), size=shape[0])
        rank = rng.permuted(np.broadcast_to(np.arange(shape[1]) - (shape[1] - 1) / 2, shape), axis=1)
        for k, mine in enumerate(tables):
            preference = (rank, -rank)[k] if k < 2 else rng.permuted(rank, axis=1)
            mine.append(tilted(base, alpha / 2 * preference))
    return [MarkovPolicy(mine) for mine in tables]


def _random_tables(H: int, states: int, actions: int, rng: np.random.Generator) -> list[Ints]:
    """Every action leads elsewhere, and every state of the next step is reached."""
    tables: list[Ints] = []
    n = 1
    for _ in range(H - 1):
        n_next = min(states, n * actions)
        table = np.zeros((n, actions), dtype=np.int64)
        while len(np.unique(table)) < n_next:
            table = np.stack([rng.permutation(n_next)[:actions] for _ in range(n)])
        tables.append(table)
        n = n_next
    return tables


def _ring(H: int, states: int, actions: int) -> list[Ints]:
    """Action a moves by a, from state 0 on; states are numbered in the order in which they are reached."""
    tables: list[Ints] = []
    reached = [0]
    for _ in range(H - 1):
        goals = [[(s + a) % states for a in range(actions)] for s in reached]
        order = sorted({s for row in goals for s in row})
        tables.append(np.array([[order.index(s) for s in row] for row in goals]))
        reached = order
    return tables


def _near_zero(states: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mostly 0: what is added to a state to blur it."""
    wrong = rng.uniform(0.1, 0.4)
    return np.append(1 - wrong, np.full(states - 1, wrong / (states - 1)))
