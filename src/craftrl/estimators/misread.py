"""Misread observations, corrected by the moves before and after them.

An encoder sees one observation. Where a distractor covers what the agent moves, it may name another state, and for one
step the trajectory seems to jump there and back. The trajectory as a whole knows better: in a stationary world few
states follow each state. So the states of a trajectory are taken for a hidden Markov chain, of which the encoder's
readings show each link, mostly right. Which state follows which, and which is read as which, are learned from
the readings themselves (expectation and maximisation), and each observation gets the state that is most likely given
all readings of its trajectory.

The moves are those of all agents together. With each agent's own, the corrected states would tell the agents apart by
more than the observations do, and states are judged by how well they tell the agents apart.

Trajectories without a rare move are left as they are: there is nothing to correct, and they are most.

Paper: Section 2.2 (s_{h+1} depends on s_h and the action alone)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from craftrl.states.visits import count_visits

__all__ = ["corrected"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
RARE = 0.05  # share of the moves from a state below which a move is looked into
SLIP = 0.02  # share of the readings that are wrong, before any was counted
PRIOR = 1.0  # moves from every state, shared by all states, before any was counted
ROUNDS = 4  # of expectation and maximisation; after that hardly a state changes
AT_ONCE = 2**24  # numbers in memory: 128 MiB


def corrected(labels: Ints, n_states: int) -> NDArray[np.int64]:
    """The states that trajectories were most likely in, from what an encoder read: both (n, H), -1 for unknown."""
    states = np.asarray(labels, dtype=np.int64).copy()
    moves = _shares(count_visits(states[:, :-1].ravel(), states[:, 1:].ravel(), sizes=(n_states, n_states)))
    doubtful = np.flatnonzero((_chances(states, moves) < RARE).any(axis=1))
    if not len(doubtful):
        return states
    read = states[doubtful]
    sure = np.delete(states, doubtful, axis=0)
    sure_moves = count_visits(sure[:, :-1].ravel(), sure[:, 1:].ravel(), sizes=(n_states, n_states)).astype(np.float64)
    sure_readings = np.diag(count_visits(sure.ravel(), sizes=(n_states,)).astype(np.float64))
    first = count_visits(states[:, 0], sizes=(n_states,)) if (states[:, 0] >= 0).any() else np.ones(n_states)
    readings = (1 - SLIP) * np.eye(n_states) + SLIP / n_states
    blocks = np.array_split(np.arange(len(read)), -(-read.size * n_states // AT_ONCE))
    for _ in range(ROUNDS):
        moved, said = sure_moves.copy(), sure_readings.copy()
        for block in blocks:
            states[doubtful[block]] = _pass(read[block], first / first.sum(), moves, readings, moved, said)
        moves = _shares(moved)
        said += SLIP / n_states * said.sum(axis=1, keepdims=True) + PRIOR / n_states**2
        readings = said / said.sum(axis=1, keepdims=True)
    return states


def _shares(moved: NDArray[np.number]) -> Floats:
    """(n_states, n_states): the chance of each state after each state."""
    counts = moved + PRIOR / len(moved)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _chances(states: Ints, moves: Floats) -> Floats:
    """(n, H-1): the chance of every move, 1 where a state is unknown."""
    before, after = states[:, :-1], states[:, 1:]
    return np.where((before >= 0) & (after >= 0), moves[before, after], 1.0)


def _pass(read: Ints, first: Floats, moves: Floats, readings: Floats, moved: Floats, said: Floats) -> Ints:
    """The most likely state of each observation given all readings of its trajectory, forward and backward in time.

    Expected moves are added to `moved`, and how often each state is expected to have been read as which to `said`.
    """
    fits = np.concatenate([readings.T, np.ones((1, len(first)))])[read.T]  # (H, n, states): an unknown reading fits all
    past = np.empty_like(fits)
    past[0] = _normalised(first * fits[0])
    for h in range(1, len(fits)):
        past[h] = _normalised(past[h - 1] @ moves * fits[h])
    states = np.empty_like(read)
    future = np.ones_like(past[0])
    for h in reversed(range(len(fits))):
        likely = _normalised(past[h] * future)
        known = read[:, h] >= 0
        states[:, h] = np.where(known, likely.argmax(axis=1), -1)
        np.add.at(said.T, read[known, h], likely[known])
        if h:
            seen = fits[h] * future
            together = (past[h - 1] @ moves * seen).sum(axis=1, keepdims=True)
            moved += moves * (past[h - 1].T @ (seen / together))
            future = _normalised(seen @ moves.T)
    return states


def _normalised(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
