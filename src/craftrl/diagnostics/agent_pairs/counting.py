"""What single entries tell of two agents, by counting: for observations of small integers.

What an agent controls often shows in no single entry but in how one entry follows another, and most classifiers miss it
among many. Counts of all pairs of entries do not: at each h they say how much (x_h[i], x_{h+1}[j]) tell of the agent,
and how much of that x_h[i] tells alone. The entries are then chosen for all steps together, as a chain i_1, i_2, and
so on, so that what is little at a single step adds up; the library's `coupling="chain"` does the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.diagnostics.agent_pairs.held_out import Told
from craftrl.diagnostics.agent_pairs.sample import Group

__all__ = ["best_chains", "chain_value", "tell_by_counts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
PSEUDO = 0.5  # added to every count, so that what was never seen tells little


def tell_by_counts(a: Group, b: Group, test: Group, pairs: tuple[int, ...], values: int) -> Told:
    """Count in the trajectories of agents a and b; tell whose the held-out ones are."""
    counted = [_Step.count(a, b, c, values) for c in pairs]
    place, before, moved = np.zeros((3, len(test), len(pairs)))
    chosen = best_chains([step.moved for step in counted], pairs)
    for p, (c, step, (i, j)) in enumerate(zip(pairs, counted, chosen)):
        here, after = test.x[:, c].astype(np.int64), test.x[:, c + 1].astype(np.int64)
        best = int(step.place.argmax())
        place[:, p] = _log_odds(step.single[:, best])[here[:, best]]
        before[:, p] = _log_odds(step.single[:, i])[here[:, i]]
        moved[:, p] = _log_odds(step.double[:, i, j])[here[:, i], after[:, j]]
    return Told(place, before, moved)


@dataclass(frozen=True)
class _Step:
    """Counts at one pair of steps: single (2, M, V), double (2, M, M, V, V); and information of the agent in nats:
    place (M,) in x_h[i], moved (M, M) in (x_h[i], x_{h+1}[j])."""

    single: Floats
    double: Floats
    place: Floats
    moved: Floats

    @classmethod
    def count(cls, a: Group, b: Group, c: int, values: int) -> _Step:
        double = np.stack([_pair_counts(g, c, values) for g in (a, b)])
        single = double[:, :, 0].sum(axis=-1)
        return cls(single, double, _information(single, axes=1), _information(double, axes=2))


def _pair_counts(group: Group, c: int, values: int) -> Floats:
    there = group.there[:, c + 1]
    M = group.x.shape[2]
    one_hot = [
        (group.x[there, column][:, :, None] == np.arange(values)).reshape(-1, M * values).astype(np.float32)
        for column in (c, c + 1)
    ]
    counts = (one_hot[0].T @ one_hot[1]).reshape(M, values, M, values)
    return np.asarray(counts.transpose(0, 2, 1, 3), dtype=np.float64)


def _information(counts: Floats, axes: int) -> Floats:
    """Between the agent (first axis, both weighed alike) and the last `axes` axes, less what chance adds (Miller and
    Madow's correction: half a nat for every cell that is seen, over the number of trajectories)."""
    cells = tuple(range(-axes, 0))
    n = counts.sum(axis=cells, keepdims=True)
    share = counts / np.maximum(n, 1)
    middle = share.mean(axis=0)
    nats = xlogy(share, share).sum(axis=cells).mean(axis=0) - xlogy(middle, middle).sum(axis=cells)
    seen = (middle > 0).sum(axis=cells)
    return np.asarray(nats - (seen - 1) / (2 * np.maximum(n.sum(axis=0).reshape(nats.shape), 1)))


def _log_odds(counts: Floats) -> Floats:
    """Of counts (2, ...): the second agent's share of each cell against the first's."""
    cells = tuple(range(1, counts.ndim))
    share = (counts + PSEUDO) / (counts + PSEUDO).sum(axis=cells, keepdims=True)
    return np.asarray(np.log(share[1]) - np.log(share[0]))


def best_chains(scores: list[Floats], pairs: tuple[int, ...]) -> list[tuple[int, int]]:
    """The entries (i_h, i_{h+1}) of every pair with the largest sum, such that neighbouring pairs share theirs."""
    best: list[tuple[int, int]] = []
    start = 0
    for p in range(1, len(pairs) + 1):
        if p == len(pairs) or pairs[p] != pairs[p - 1] + 1:
            best += _best_chain(scores[start:p])
            start = p
    return best


def chain_value(scores: list[Floats], chosen: list[tuple[int, int]]) -> float:
    """The sum along the chains."""
    return float(sum(score[entries] for score, entries in zip(scores, chosen)))


def _best_chain(scores: list[Floats]) -> list[tuple[int, int]]:
    total, came = np.zeros(len(scores[0])), []
    for score in scores:
        through = total[:, None] + score
        came.append(through.argmax(axis=0))
        total = through.max(axis=0)
    chain = [int(total.argmax())]
    for back in reversed(came):
        chain.append(int(back[chain[-1]]))
    chain.reverse()
    return list(pairwise(chain))
