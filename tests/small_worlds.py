"""Agents that walk between a few states, each as it likes: what most tests of states are made of."""

import numpy as np


def walked(n, chances, H, start=0, seed=0):
    """The states (n, H) of trajectories and their agents (n,), agent by agent.

    n        trajectories of each agent, or a number for each
    chances  (K, S, S): each agent's chances of the next state; with another axis in front, at each step
    start    the first state, or the chances of each
    """
    rng, chances = np.random.default_rng([seed, 1]), np.asarray(chances)  # noise beside it may have the same seed
    chances = np.broadcast_to(chances, (H - 1, *chances.shape[-3:]))
    agent = np.repeat(np.arange(chances.shape[1]), n)
    s = np.full((len(agent), H), start if np.ndim(start) == 0 else 0)
    if np.ndim(start):
        s[:, 0] = rng.choice(len(start), p=start, size=len(s))
    for h in range(1, H):
        below = chances[h - 1][agent, s[:, h - 1]].cumsum(axis=1)[:, :-1]
        s[:, h] = (rng.random((len(s), 1)) > below).sum(axis=1)
    return s, agent


def to_the_right(*right, cells, ring=False):
    """Chances (K, cells, cells) of agents that go to the right so often and else to the left, and stay at the ends."""
    here, found = np.arange(cells), np.zeros((len(right), cells, cells))
    for way, share in ((1, np.array(right)), (-1, 1 - np.array(right))):
        there = (here + way) % cells if ring else np.clip(here + way, 0, cells - 1)
        np.add.at(found, (slice(None), here, there), share[:, None])
    return found


def flips(*chances):
    """Chances (K, 2, 2) of agents that change between two states so often: a number, or one for each state."""
    change = np.array([np.broadcast_to(one, 2) for one in chances])
    return np.stack([np.stack([1 - change[:, 0], change[:, 0]], -1), np.stack([change[:, 1], 1 - change[:, 1]], -1)], 1)
