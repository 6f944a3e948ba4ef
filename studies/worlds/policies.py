"""Policies that are not Markov: they remember, change from episode to episode, or adapt to what they have seen.

Paper: Section 2.4, Equation 1 (the noise-free policy property, which all of them have)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from craftrl.envs import Policy

__all__ = ["AdaptivePolicy", "HistoryPolicy", "SwitchingPolicy"]

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]


class HistoryPolicy(Policy):
    """A non-Markovian policy: any function from latent histories (n, h) to probabilities (n, |A|)."""

    def __init__(self, function: Callable[[Ints], Floats]) -> None:
        self.function = function

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        return self.function(history)


class SwitchingPolicy(Policy):
    """A policy that changes from episode to episode by a fixed schedule: episode i uses schedule[i % len]."""

    def __init__(self, policies: Sequence[Policy], schedule: Sequence[int]) -> None:
        self.policies = list(policies)
        self.schedule = np.asarray(schedule)

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        chosen = self.schedule[episode % len(self.schedule)]
        options = np.stack([policy.probabilities(history, episode) for policy in self.policies])
        return options[chosen, np.arange(len(history))]


class AdaptivePolicy(Policy):
    """A collector that learns: before each batch of episodes, `choose(past)` names the policy to use.

    `past` holds the latent states of all the agent's earlier episodes, shape (m, H), so that the collector
    may, say, seek out what it has visited least. It sees no noise.
    """

    def __init__(self, choose: Callable[[Ints], Policy], batch: int) -> None:
        self.choose = choose
        self.batch = batch

    def look_back(self, past: Ints) -> None:
        self.current = self.choose(past)

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        return self.current.probabilities(history, episode)
