"""Worlds that are Gymnasium environments: no tables, only an environment to step and a way to read its true state.

This module needs no Gymnasium: it asks of an environment only what every Gymnasium environment has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from craftrl.arguments import check_function, check_method, check_whole, shown
from craftrl.envs.policies import MarkovPolicy
from craftrl.errors import InvalidParameterError

__all__ = ["GymWorld"]

MOST_STEPS = 10**6


@dataclass(frozen=True)
class GymWorld:
    """A Gymnasium environment, and what `collect` must know about it.

    make      makes the environment; its observations must be arrays of one shape, and what happens in an episode must
              depend on the seed that `reset` gets and on the actions alone, not on earlier episodes
    state     reads the true state from the environment: an integer in 0..n_states-1. It is ground truth, kept for
              scoring and for the agents' choices, and goes into no observation
    n_states  how many true states there are
    actions   what `step` is given for each action: action a of an agent is `actions[a]`
    H         observations per episode
    agents    agents that come with the world, if any; `collect` takes any others as well

    CRAFT's theory asks that every episode start in one true state, that actions move it deterministically, and that
    nothing else knows the actions. An environment made by others may break this a little; measure by how much.

    Paper: Section 2.2 (what is assumed of such a world)
    """

    make: Callable[[], Any]
    state: Callable[[Any], int]
    n_states: int
    actions: Sequence[Any]
    H: int
    agents: tuple[MarkovPolicy, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.make):  # which a class of environments is as well
            raise InvalidParameterError(f"make must make the environment when called; {shown(self.make)} was given.")
        check_function("state", self.state, "a function that reads the true state from the environment")
        check_whole("H", self.H, 2, MOST_STEPS, "an episode has at least two steps")
        check_whole("n_states", self.n_states, 1)
        listed = isinstance(self.actions, Sequence) or (isinstance(self.actions, np.ndarray) and self.actions.ndim > 0)
        if isinstance(self.actions, (str, bytes)) or not listed or not len(self.actions):
            raise InvalidParameterError(
                f"actions must list what `step` is given, one at least; {shown(self.actions)} was given."
            )
        if not isinstance(self.agents, (list, tuple)) or not all(isinstance(p, MarkovPolicy) for p in self.agents):
            raise InvalidParameterError(f"agents must be a list of Markov policies; {shown(self.agents)} was given.")

    def made(self) -> Any:
        """A new environment."""
        env = self.make()
        check_method("What make() returns", env, "step", "a Gymnasium environment")
        return env

    @property
    def n_actions(self) -> int:
        """|A|."""
        return len(self.actions)

    def policies(self) -> tuple[MarkovPolicy, ...]:
        """The agents that come with the world."""
        return self.agents
