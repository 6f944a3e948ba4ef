"""States of different steps that are one and the same, where the world is stationary.

CRAFT numbers the states of each step by itself. In a stationary world the encoder of one step also reads the
observations of another, so that two states match if each one's encoder recognises the other's observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.base import Encoder

__all__ = ["Matching", "match_states"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
AGREEMENT = 0.6  # a state that step h does not have is recognised in one direction at most, which makes 1/2


@dataclass(frozen=True)
class Matching:
    """Global states 0..n_states-1, and which one each step's own state is.

    state_of    one array per step h = 1..H: the global state of each state of the step, -1 for none; the start
                state is not matched, because phi'_1 is constant and recognises everything
    agreement   float (nodes, nodes): how well each two states of any steps recognise one another, from 0 to 1
    """

    n_states: int
    state_of: tuple[Ints, ...]
    agreement: Floats

    def relabel(self, labels: Ints) -> NDArray[np.int64]:
        """Labels (n, H) step by step as global states, -1 for none."""
        columns = [np.append(state, -1)[labels[:, h]] for h, state in enumerate(self.state_of)]
        return np.stack(columns, axis=1)


def match_states(
    encoders: Sequence[Encoder], labels: Ints, tau: TrajectoryDataset, sample: int = 2000, seed: int = 0
) -> Matching:
    """Match the states of steps 2..H by how their encoders read each other's observations.

    `encoders` are phi'_1..phi'_H and `labels` (n, H) the states of each step; at most `sample` trajectories are
    looked at. Two states that one step took for different may match the same state of another step: then they
    are one. No training is needed, and noise that changes over time does no harm: an encoder has only learned to
    tell the states of its own step apart.
    """
    rows = np.sort(np.random.default_rng(seed).permutation(tau.n)[:sample])
    steps = range(2, tau.H + 1)
    nodes = [(h, int(s)) for h in steps for s in np.unique(labels[rows, h - 1]) if s >= 0]
    recognised = np.zeros((len(nodes), len(nodes)))  # [a, b]: share of a's observations that b's encoder calls b
    for h in steps:
        mine = [a for a, (step, _) in enumerate(nodes) if step == h]
        members = labels[rows, h - 1][None, :] == np.array([[nodes[a][1]] for a in mine])
        read = {k: encoders[k - 1](tau.at(h)[rows]) for k in steps}
        called = np.stack([read[k] == s for k, s in nodes], axis=1)
        recognised[mine] = members.astype(np.float32) @ called.astype(np.float32) / members.sum(axis=1, keepdims=True)
    agreement = (recognised + recognised.T) / 2
    group = _groups(agreement)
    state_of = [np.full(int(labels[:, h - 1].max()) + 1, -1) for h in range(1, tau.H + 1)]
    for (h, s), g in zip(nodes, group):
        state_of[h - 1][s] = g
    return Matching(int(group.max(initial=-1)) + 1, tuple(state_of), agreement)


def _groups(agreement: Floats) -> Ints:
    """Average linkage: nodes whose groups agree by more than AGREEMENT on average are one; numbered from 0."""
    if len(agreement) < 2:
        return np.zeros(len(agreement), dtype=np.int64)
    distance = 1 - agreement
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average")
    return fcluster(tree, t=1 - AGREEMENT, criterion="distance") - 1
