"""Tasks: reach a goal in a Gymnasium environment, and how often a policy does after so many environment steps.

The goal is a property of the *true* state, which the environment knows and no learner sees. So that learners of any
kind are scored alike, whatever they look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

from craftrl.arguments import check_function, check_kind, check_whole
from craftrl.errors import require
from craftrl.planning.curves import Policy

gymnasium = require("gymnasium", "envs")

__all__ = ["ReachState", "success_rate"]

SUCCESS = "is_success"  # the key in `info` that stable-baselines3 looks for


class ReachState(gymnasium.Wrapper):  # type: ignore[name-defined]
    """`env` with one reward: 1 for the step that reaches the goal, which ends the episode, and 0 for all others.

    env      a Gymnasium environment; its own rewards are ignored, its own end is kept
    reached  whether the environment's true state is a goal, asked after every step: `reached(env)`. For a world of
             this library, `lambda env: env.unwrapped.state == 3`
    limit    steps after which an episode is cut off (truncated); None leaves that to the environment

    `info["is_success"]` says whether the goal was reached, under the name that stable-baselines3 looks for.
    `steps_taken` counts the steps of all episodes: what learning has cost so far.
    """

    def __init__(self, env: Any, reached: Callable[[Any], bool], limit: int | None = None) -> None:
        check_kind("env", env, gymnasium.Env, "a Gymnasium environment")
        check_function("reached", reached, "a function that says whether the environment given is in a goal")
        if limit is not None:
            check_whole("limit", limit, 1)
        super().__init__(env)
        self.reached = reached
        self.limit = limit
        self.steps_taken = 0
        self._steps = 0  # of this episode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        x, _, terminated, truncated, info = self.env.step(action)
        self.steps_taken += 1
        self._steps += 1
        there = bool(self.reached(self.env))
        late = self.limit is not None and self._steps >= self.limit
        return x, float(there), bool(terminated or there), bool(truncated or late), {**info, SUCCESS: there}


def success_rate(env: Any, act: Policy, episodes: int = 100, seed: int = 0) -> float:
    """The share of episodes in which `act(observation, h)` reaches the goal of `env`, a `ReachState` inside wrappers.

    h counts the observations of an episode from 1. Episodes are those that `seed` begins: two policies asked with one
    seed meet the same noise.
    """
    check_kind("env", env, gymnasium.Env, "a Gymnasium environment")
    check_function("act", act, "a function of an observation and its step h that gives an action")
    check_whole("episodes", episodes, 1)
    check_whole("seed", seed)
    successes = 0
    for episode in range(episodes):
        x, _ = env.reset(seed=seed if episode == 0 else None)
        h, over, info = 1, False, {}
        while not over:
            x, _, terminated, truncated, info = env.step(act(x, h))
            h, over = h + 1, terminated or truncated
        successes += bool(info.get(SUCCESS, False))
    return successes / episodes
