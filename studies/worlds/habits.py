"""Stationary policies: the chances of actions depend on the true state, and are the same at every step.

Paper: Section 2.5 (policy diversity)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from craftrl.arrays import Floats, Ints
from craftrl.envs.agents import DRAWS, MarkovPolicy, check_contrast, successor_ranks, tilted
from craftrl.errors import InvalidParameterError


def contrasting_habits(
    moves: ArrayLike, H: int, start: int = 0, *, chances: ArrayLike = 1.0, alpha: float = 1.0, seed: int = 0
) -> tuple[MarkovPolicy, MarkovPolicy]:
    """Two agents that prefer different moves in every state, the same at every step, each action possible for both.

    moves    (n_states, |A|): where each action leads from each state when nothing interferes
    start    the state of h = 1
    chances  (|A|,) or (n_states, |A|): how often an agent without preferences takes each action; the same unless given
    alpha    the least difference between the agents' log-odds of any two successors of a state

    The successors of a state get ranks one apart about 0, in an order drawn for each state. Agent A takes an action
    with probability proportional to chances * exp(alpha rank / 2), agent B to chances * exp(-alpha rank / 2). Of some
    such draws the one is kept in which the two agents' visits differ least, for both must see most of the world.
    Actions with one successor share its rank, for only the successor is ever seen.

    Paper: Equation 5 (alpha)
    """
    check_contrast(alpha)
    T = np.asarray(moves)
    base = np.broadcast_to(np.asarray(chances, dtype=float), T.shape)
    if (base <= 0).any():
        raise InvalidParameterError("Every action must have some chance in every state; one has none; raise it.")
    base = base / base.sum(axis=1, keepdims=True)
    rng, usual = np.random.default_rng(seed), _visits(T, base, start, H)

    def drawn() -> Floats:
        """Both agents' tables, (2, n_states, |A|)."""
        rank = _random_ranks(T, rng)
        return np.stack([tilted(base, sign * alpha / 2 * rank) for sign in (1, -1)])

    def imbalance(pair: Floats) -> float:
        """How far visits differ in log-shares: the mean over states as play without preferences visits them."""
        a, b = (np.log(_visits(T, table, start, H) + 1e-12) for table in pair)
        return float(usual @ np.abs(a - b))

    first, second = min([drawn() for _ in range(DRAWS)], key=imbalance)
    return MarkovPolicy([first] * (H - 1)), MarkovPolicy([second] * (H - 1))


def _random_ranks(T: Ints, rng: np.random.Generator) -> Floats:
    """A rank for each action in each state: one apart about 0, shared by actions with the same successor."""
    preferences = np.zeros((len(T), len(T)))
    for T_a, drawn in list(zip(T.T, rng.random(T.shape).T))[::-1]:  # the first of the actions with one successor counts
        preferences[np.arange(len(T)), T_a] = drawn
    return np.stack(list(map(successor_ranks, T, preferences)))


def _visits(T: Ints, table: Floats, start: int, H: int) -> Floats:
    """The share of all steps of an episode spent in each state, shape (n_states,)."""
    now = (np.arange(len(T)) == start).astype(float)
    total = now.copy()
    for _ in range(H - 1):
        now = np.bincount(T.ravel(), (now[:, None] * table).ravel(), minlength=len(T))
        total += now
    return total / H
