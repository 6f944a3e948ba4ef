"""Policies that see the latent history and never the noise.

The paper asks only that actions be independent of the noise over both entire datasets: a policy may look at
all latent states so far (non-Markovian), and may change from one episode to the next (non-i.i.d.).

Paper: Section 2.4, Equation 1 (the noise-free policy property)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, is_whole, shown
from craftrl.data.labels import as_array
from craftrl.errors import InvalidParameterError

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

__all__ = [
    "MarkovPolicy",
    "Policy",
    "choose_actions",
    "sample_actions",
    "tilted",
]


class Policy(ABC):
    """Action probabilities of many trajectories at once.

    A policy that learns from its earlier episodes sets `batch`: before each batch of so many episodes, `collect` calls
    `look_back` with the latent states of those before.
    """

    batch: int | None = None

    @abstractmethod
    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        """Pr(a_h | s*_1..s*_h) for each trajectory, shape (n, |A|).

        `history` has shape (n, h): the latent states so far, so h is its width. `episode` has shape (n,):
        which episode of the agent's this is, for policies that change over time.
        """

    def look_back(self, past: Ints) -> None:  # noqa: B027
        """Take note of the agent's earlier episodes, latent states of shape (m, H)."""


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
