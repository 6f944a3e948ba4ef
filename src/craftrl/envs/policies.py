"""Policies that see the latent history and never the noise.

The paper asks only that actions be independent of the noise over both entire datasets: a policy may look at
all latent states so far (non-Markovian), and may change from one episode to the next (non-i.i.d.).

Paper: Section 2.4, Equation 1 (the noise-free policy property)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_function, check_kind, check_whole, is_whole, shown
from craftrl.data.labels import as_array, as_labels
from craftrl.errors import InvalidParameterError

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

__all__ = [
    "AdaptivePolicy",
    "HistoryPolicy",
    "MarkovPolicy",
    "Policy",
    "SwitchingPolicy",
    "choose_actions",
    "sample_actions",
    "tilted",
]


class Policy(ABC):
    """Action probabilities of many trajectories at once."""

    @abstractmethod
    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        """Pr(a_h | s*_1..s*_h) for each trajectory, shape (n, |A|).

        `history` has shape (n, h): the latent states so far, so h is its width. `episode` has shape (n,):
        which episode of the agent's this is, for policies that change over time.
        """


class MarkovPolicy(Policy):
    """pi(a | s*_h, h), from one table of shape (n_states(h), |A|) for each h in 1..H-1."""

    def __init__(self, tables: Sequence[ArrayLike]) -> None:
        check_kind("tables", tables, (list, tuple, np.ndarray), "a list with one table for each h in 1..H-1")
        if getattr(tables, "shape", (1,)) == () or not len(tables):
            raise InvalidParameterError("tables must hold one table for each h in 1..H-1; none was given.")
        self.tables = [np.asarray(as_array("tables", table), dtype=float) for table in tables]
        for h, table in enumerate(self.tables, start=1):
            if table.ndim != 2 or not table.size or (table < 0).any() or not np.allclose(table.sum(axis=1), 1):
                raise InvalidParameterError(
                    f"Each row of a policy's table must be a probability vector; that for h = {h} is not."
                )

    def pi(self, h: int) -> Floats:
        """The table for step h, shape (n_states(h), |A|)."""
        if not (is_whole(h) and 1 <= h <= len(self.tables)):
            raise InvalidParameterError(
                f"A policy must have a table for every step; h = {shown(h)} was given, and there are "
                f"{len(self.tables)}, from h = 1; build it for this world."
            )
        return self.tables[h - 1]

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        h = history.shape[1]
        table, s_h = self.pi(h), history[:, -1]
        if s_h.size and s_h.max() >= len(table):
            raise InvalidParameterError(
                f"A policy must know every state; that for h = {h} has {len(table)} rows, and state {s_h.max()} was "
                "reached; build it for this world."
            )
        return table[s_h]


class HistoryPolicy(Policy):
    """A non-Markovian policy: any function from latent histories (n, h) to probabilities (n, |A|)."""

    def __init__(self, function: Callable[[Ints], Floats]) -> None:
        check_function("function", function, "a function from histories (n, h) to probabilities (n, |A|)")
        self.function = function

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        return self.function(history)


class SwitchingPolicy(Policy):
    """A policy that changes from episode to episode by a fixed schedule: episode i uses schedule[i % len]."""

    def __init__(self, policies: Sequence[Policy], schedule: Sequence[int]) -> None:
        if not isinstance(policies, (list, tuple)) or not all(isinstance(policy, Policy) for policy in policies):
            raise InvalidParameterError(f"policies must be a list of policies; {shown(policies)} was given.")
        self.policies = list(policies)
        self.schedule = as_labels("schedule", schedule, 1)
        if not len(self.schedule) or self.schedule.min() < 0 or self.schedule.max() >= len(policies):
            raise InvalidParameterError(
                f"schedule must hold numbers of policies, 0..{len(policies) - 1}; {shown(schedule)} was given."
            )

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        chosen = self.schedule[episode % len(self.schedule)]
        options = np.stack([policy.probabilities(history, episode) for policy in self.policies])
        return options[chosen, np.arange(len(history))]


class AdaptivePolicy(Policy):
    """A collector that learns: before each batch of episodes, `choose(past)` names the policy to use.

    `past` holds the latent states of all the agent's earlier episodes, shape (m, H), so that the collector
    may, say, seek out what it has visited least. It sees no noise. `collect` runs it batch by batch.
    """

    def __init__(self, choose: Callable[[Ints], Policy], batch: int) -> None:
        check_function("choose", choose, "a function from past states (m, H) to a policy")
        check_whole("batch", batch, 1)
        self.choose = choose
        self.batch = batch
        self.current: Policy | None = None

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        if self.current is None:
            raise InvalidParameterError("An AdaptivePolicy acts inside `collect` only.")
        check_kind("choose(past)", self.current, Policy, "a policy")
        return self.current.probabilities(history, episode)


def tilted(base: Floats, tilt: Floats) -> NDArray[np.float64]:
    """Probabilities proportional to base * exp(tilt), along the last axis; shapes as given.

    Of two agents with one base, the log-odds of two choices differ by as much as their tilts' differences do.
    """
    weight = base * np.exp(tilt)
    return weight / weight.sum(axis=-1, keepdims=True)


def sample_actions(probabilities: Floats, rng: np.random.Generator) -> Ints:
    """One action per row of (n, |A|) probabilities."""
    return choose_actions(probabilities, rng.random(len(probabilities)))


def choose_actions(probabilities: Floats, u: Floats) -> Ints:
    """The action of each row of (n, |A|) probabilities that u (n,), uniform on [0, 1), falls to."""
    return (u[:, None] >= np.cumsum(probabilities[:, :-1], axis=1)).sum(axis=1)
