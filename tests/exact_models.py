"""Models that read the true state, perhaps with errors, and worlds that slip: what planning is tested with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl.envs import ExBMDP, collect, contrasting_policies
from craftrl.envs.exbmdp import reachable_states
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import StateGraph


class ExactModel:
    """Reads the true state off an observation; a share `error` of the time, any state at random."""

    def __init__(self, world: ExBMDP, shared: bool = False, error: float = 0.0, seed: int = 0) -> None:
        self.world, self.error, self.rng = world, error, np.random.default_rng(seed)
        self.obs_shape_ = world.obs_shape
        sizes = [world.n_states(h) for h in range(1, world.H + 1)]
        if shared:
            self.n_states_total_ = max(sizes)
        else:
            self.n_states_ = sizes

    def encode(self, x: Any, h: int | None = None) -> np.ndarray:
        states = self.world.phi_star(np.asarray(x), 2 if h is None else h)
        n = self.n_states_total_ if hasattr(self, "n_states_total_") else self.n_states_[h - 1]
        wrong = self.rng.random(len(states)) < self.error
        return np.where(wrong, self.rng.integers(n, size=len(states)), states)


@dataclass(frozen=True)
class TrueLatentActions:
    """The actions of a world whose steps are alike, by other names: latent action z is action `names[z]`."""

    n: int
    edges: np.ndarray
    share: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, world: ExBMDP, moves: StateGraph, names: Any) -> TrueLatentActions:
        share = np.zeros((len(moves.edges), world.n_actions))
        for row, (s, t) in zip(share, moves.edges):
            h, state = moves.name(int(s))
            after = world.T(world.H - 1 if h is None else h)[state]
            row[:] = [moves.node(int(after[a]), None if h is None else h + 1) == t for a in names]
        return cls(world.n_actions, moves.edges, share, np.zeros(moves.n, dtype=np.int64))


class Slipping(ExBMDPEnv):
    """An environment in which, now and then, another action is taken than the one chosen."""

    def __init__(self, world: ExBMDP, slip: float, seed: int = 0) -> None:
        super().__init__(world)
        self.slip, self.rng = slip, np.random.default_rng(seed)

    def step(self, action: int) -> Any:
        return super().step(int(self.rng.integers(self.world.n_actions)) if self.rng.random() < self.slip else action)


def watched(world: ExBMDP, model: Any, n: int = 500, seed: int = 0, **options: Any) -> StateGraph:
    """The moves that a model reads off n videos of each of two agents."""
    return StateGraph.from_model(
        model, collect(world, contrasting_policies(world, alpha=0.7), n, seed=seed).tau, **options
    )


def random_goals(world: ExBMDP, n: int, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs (h, state) that can be reached, h > 1."""
    rng, reached = np.random.default_rng(seed), reachable_states(world)
    steps = rng.integers(2, world.H + 1, size=n)
    return [(int(h), int(rng.choice(np.flatnonzero(reached[h - 1])))) for h in steps]


def success(planner: Any, env: ExBMDPEnv, goals: list[tuple[int, int]]) -> float:
    """The share of goals at which the true state, where the planner stopped and said reached, is the goal.

    Where steps share their states a goal may be reached at any step.
    """
    graph, right = planner.grounding.graph, 0
    for i, (h, state) in enumerate(goals):
        episode = planner.run(env, state if graph.shared else f"{h}:{state}", seed=i)
        right += episode.reached and int(env._s[0]) == state and (graph.shared or env.h == h)
    return right / len(goals)
