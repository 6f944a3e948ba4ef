"""States that are two in truth: what comes after them depends on what came before.

Where one agent hardly ever goes, log-odds say little, and two states may look like one at every step. The loss by which
runs are compared does not see it either: where log-odds say little, states that are one are the shorter description.

The moves see it. A state says all that there is to know of the next one, given the agent. So if the state after it
still depends on the state before it, it has lost something. Say it stands for two cells of a grid: who came from a
neighbour of the first cell goes on to another neighbour of the first. A mixture of two states, in each of which before
and after are independent given the agent, tells the two apart, and says of most visits which of them they were.

Noise cannot mislead it, since states before and after say nothing of noise. An agent with a memory can: it makes before
and after depend on each other in every state. So what is found here is a guess, and `parting` asks the observations.

Paper: Section 2.2 (s_{h+1} depends on s_h and the action alone)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.states.visits import count_visits

__all__ = ["FusedState", "fused_states"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
FEWEST = 20  # visits of each part with a state before and one after: fewer are too few to learn to read them
RARE = 0.01  # share of the visits below which a state before or after is left out: an encoder's slips
GAIN = 0.4  # nats, per visit of the rarer part, that two states explain before and after better, the price of more paid
SURE = 0.95  # probability of a part from which on a visit counts as known
PRIOR = 0.01  # visits of every neighbour in both parts, before any was counted
ROUNDS, SETTLED = 200, 1e-6  # of the mixture: at most so many, until a round gains less per visit


@dataclass(frozen=True)
class FusedState:
    """A state that is two, and its visits of which we know which of the two they were.

    row, column  (visits,): trajectory and step, from 0
    part         (visits,): 0 or 1
    gain         nats per visit by which two states explain the moves better than one
    """

    state: int
    row: Ints
    column: Ints
    part: Ints
    gain: float


def fused_states(labels: Ints, agent: Ints) -> list[FusedState]:
    """Which states of `labels` (n, H) are two, by their neighbours in time; -1 for unknown. `agent` is (n,)."""
    if labels.shape[1] < 3:
        return []
    before, here, after = labels[:, :-2].ravel(), labels[:, 1:-1].ravel(), labels[:, 2:].ravel()
    # Who stays where he is says nothing of which of the two it is.
    told = np.flatnonzero((here >= 0) & (before >= 0) & (after >= 0) & (before != here) & (after != here))
    told = told[np.argsort(here[told], kind="stable")]
    states, first = np.unique(here[told], return_index=True)
    found = []
    for state, visits in zip(states.tolist(), np.split(told, first[1:])):
        visits = visits[_common(before[visits]) & _common(after[visits])]
        row, column = np.divmod(visits, labels.shape[1] - 2)
        if len(visits) < 2 * FEWEST:
            continue
        part, gain = _two_parts(before[visits], after[visits], agent[row])
        sure = np.maximum(part, 1 - part) >= SURE
        named = (part[sure] > 0.5).astype(np.int64)
        rarer = min(named.sum(), (1 - named).sum())
        if rarer >= FEWEST and gain * len(visits) >= GAIN * rarer:
            found.append(FusedState(state, row[sure], column[sure] + 1, named, gain))
    return found


def _common(neighbour: Ints) -> NDArray[np.bool_]:
    """Whether the neighbour of each visit is a usual one."""
    _, of, visits = np.unique(neighbour, return_inverse=True, return_counts=True)
    return np.asarray(visits[of] >= RARE * len(neighbour))


def _two_parts(before: Ints, after: Ints, agent: Ints) -> tuple[Floats, float]:
    """The probability that each visit was in the second of two states, and what the two gain over one.

    Expectation and maximisation of a mixture: each part has its own states before and after, for each agent. It begins
    with the direction in which before and after depend on each other most, the first pair of singular vectors.
    The gain is that of the log-likelihood less half of ln(visits) for each number that two states have and one has
    not (the Bayesian information criterion), in nats per visit.
    """
    befores, before = np.unique(before, return_inverse=True)
    afters, after = np.unique(after, return_inverse=True)
    agents, agent = np.unique(agent, return_inverse=True)
    counts = count_visits(agent, before, after, sizes=(len(agents), len(befores), len(afters))).astype(np.float64)
    if min(counts.shape[1:]) < 2:
        return np.zeros(len(before)), 0.0
    second, n = _direction(counts.sum(axis=0)), counts.sum()
    last = -np.inf
    for _ in range(ROUNDS):
        likelihood = _likelihood(np.stack([counts * (1 - second), counts * second]))
        total = likelihood.sum(axis=0)
        second, value = likelihood[1] / total, float((counts * np.log(total)).sum())
        if value - last < SETTLED * n:
            break
        last = value
    alone = float((counts * np.log(_likelihood(counts[None])[0])).sum())
    more = len(agents) * (len(befores) + len(afters) - 1)
    return second[agent, before, after], (value - alone - more / 2 * np.log(n)) / n


def _direction(table: Floats) -> Floats:
    """Where to begin: the probability of the second part for each state before and each one after."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    chance = np.outer(rows, columns)
    left, _, right = np.linalg.svd((table - chance / table.sum()) / np.sqrt(chance), full_matrices=False)
    score = np.add.outer(left[:, 0] / np.sqrt(rows), right[0] / np.sqrt(columns))
    return np.asarray(1 / (1 + np.exp(-4 * score / max(float(np.abs(score).std()), 1e-12))))


def _likelihood(weights: Floats) -> Floats:
    """P(part, before, after | agent) (parts, agents, befores, afters) from how many visits of each kind there are."""
    of_part = weights.sum(axis=(2, 3)) + PRIOR
    before, after = weights.sum(axis=3) + PRIOR, weights.sum(axis=2) + PRIOR
    before, after = (each / each.sum(axis=2, keepdims=True) for each in (before, after))
    share = of_part / of_part.sum(axis=0)
    return np.asarray(share[:, :, None, None] * before[..., None] * after[:, :, None, :])
