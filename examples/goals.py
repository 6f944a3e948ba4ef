"""A goal as a Gymnasium task, and how often a policy reaches it: what the other examples score their learners by.

The goal is a property of the true state, which the environment knows and no learner sees. So that learners of any kind
are scored alike, whatever they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium


class ReachState(gymnasium.Wrapper):
    """`env` with one reward: 1 for the step that reaches the goal, which ends the episode, and 0 for all others.

    reached  whether the true state is a goal, asked after every step: `lambda env: env.unwrapped.state == 3`
    limit    steps after which an episode is cut off; None leaves that to the environment

    `info["is_success"]` says whether the goal was reached, under the name that stable-baselines3 looks for.
    """

    def __init__(self, env: gymnasium.Env, reached: Callable[[Any], bool], limit: int | None = None) -> None:
        super().__init__(env)
        self.reached, self.limit = reached, limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.taken = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        x, _, terminated, truncated, info = self.env.step(action)
        self.taken += 1
        there = bool(self.reached(self.env))
        late = self.taken == self.limit
        return x, float(there), bool(terminated or there), bool(truncated or late), {**info, "is_success": there}


def success_rate(env: gymnasium.Env, act: Callable[[Any, int], int], episodes: int = 100, seed: int = 0) -> float:
    """The share of episodes in which `act(observation, h)`, with h counted from 1, reaches the goal of a `ReachState`.

    Two policies asked with one seed meet the same noise.
    """
    successes = 0
    for episode in range(episodes):
        x, _ = env.reset(seed=seed if episode == 0 else None)
        h, over, info = 1, False, dict[str, Any]()
        while not over:
            x, _, terminated, truncated, info = env.step(act(x, h))
            h, over = h + 1, terminated or truncated
        successes += bool(info["is_success"])
    return successes / episodes


def steps_to(level: float, curve: Sequence[tuple[int, float]]) -> int | None:
    """The steps after which the score is at least `level` and stays so, of pairs (steps, score); None if never.

    A curve that is high once and falls again has not arrived. How sure that is depends on how long it goes on.
    """
    below = [i for i, (_, score) in enumerate(curve) if score < level]
    start = below[-1] + 1 if below else 0
    return curve[start][0] if start < len(curve) else None
