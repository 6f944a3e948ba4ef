"""Agents of the studies: some stay where they are, some remember, change from episode to episode, or adapt.

Paper: Section 2.4, Equation 1 (the noise-free policy property, which all of them have)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from craftrl.arrays import Ints
from craftrl.envs import MarkovPolicy, Policy
from craftrl.envs.agents import Floats


def staying(H: int, first: float, stay: float) -> MarkovPolicy:
    """In the toy world: to state 0 with probability `first`, from then on in the same state with probability `stay`."""
    later = np.array([[stay, 1 - stay], [1 - stay, stay]])
    return MarkovPolicy([np.array([[first, 1 - first]]), *[later] * (H - 2)])


class HistoryPolicy(Policy):
    """Any function from latent histories (n, h) to probabilities (n, |A|)."""

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
    """Before each batch of episodes `choose(past)` names the policy to use; `past` (m, H) are all states before."""

    def __init__(self, choose: Callable[[Ints], Policy], batch: int) -> None:
        self.choose = choose
        self.batch = batch

    def look_back(self, past: Ints) -> None:
        self.current = self.choose(past)

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        return self.current.probabilities(history, episode)
