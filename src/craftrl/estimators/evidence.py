"""How well states tell the agents apart: what runs of CRAFT are compared by, in nats per pair; no ground truth enters.

All of these are lengths of a description of the agents given the states: that of a table with its best entries and a
price for each, or that of a forecaster who knows the counts so far alone. So they can be compared with one another,
and the shortest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_softmax, xlogy

from craftrl.core.spread import Labels, n_labels, paired, tallies
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["chained_evidence", "chained_loss", "evidence_of", "pair_counts", "shared_evidence"]

Ints = NDArray[np.integer]
PRIOR_VISITS = 0.5  # of each agent, in a state or a pair of codes, before any was counted
# Of a forecaster who believes that habits stay; with these, its description of true states was about the shortest in
# nine worlds, whatever the number of trajectories.
PRIOR_HERE = 64.0  # visits of a state at one step, by whom those of all steps are
PRIOR_MOVES = 4.0  # moves of each agent from a state, distributed as those of all agents are


def chained_loss(codes: Iterable[Ints], tau: TrajectoryDataset) -> float:
    """How badly the encoders of all steps together tell the agents apart, in nats per pair; lower is better.

    `codes` are the states of all trajectories at h = 1, 2, ..., as the encoders read them, -1 where one is over. The
    log-loss of the agent given (phi_h, phi_{h+1}), summed over h, each pair of codes with its best prediction, plus
    (K-1)/2 ln n for each pair of codes that occurs (the Bayesian information criterion), so that states split for
    nothing do not pay. No ground truth enters. It is for encoders of a finite class, which were themselves chosen for
    telling the agents apart.
    """
    total, n_pairs = 0.0, 0
    for counts in pair_counts(codes, tau):
        visits = counts.sum(axis=1)
        total += xlogy(visits, visits).sum() - xlogy(counts, counts).sum()
        total += (tau.K - 1) / 2 * np.log(max(tau.n, 2)) * int((visits > 0).sum())
        n_pairs += int(visits.sum())
    return float(total / n_pairs)


def chained_evidence(codes: Iterable[Ints], tau: TrajectoryDataset) -> float:
    """The same for encoders that were trained on states and never saw an agent: a milder price for each pair of codes.

    Minus the log-probability of the agents given the codes, in nats per pair, where the chances of each pair of codes
    have a Dirichlet prior about the agents' shares, worth half a visit per agent: a pair of codes costs as much as its
    own visits can teach, about (K-1)/2 times the logarithm of their number.
    """
    return _evidence_per_pair(pair_counts(codes, tau), tau)


def shared_evidence(labels: Ints, tau: TrajectoryDataset) -> float:
    """The same for the states (n, H) that one encoder reads, which mean the same at all steps.

    An agent's habits may be other ones at each step, or the same at all of them; what counts is the better account of
    the two. Habits that stay are learned from all steps together, so that each move is paid for once: with few
    trajectories that is what makes a state worth its price that only differs a little from another one.
    """
    return min(chained_evidence(labels.T, tau), _habits_that_stay(labels, tau))


def _habits_that_stay(labels: Ints, tau: TrajectoryDataset) -> float:
    """Minus the log-probability of the agents, in nats per pair, by a forecaster who believes that habits stay.

    Trajectories come in random order. How often each agent is in a state differs from step to step, and is counted
    there, beginning with what it is at all steps; which move it makes from the state does not differ, and is counted
    over all steps, beginning with what all agents do. The two together say by Bayes' rule whose the trajectory is.
    """
    order = np.random.default_rng(0).permutation(tau.n)
    before, after = labels[order, :-1], labels[order, 1:]
    row, step = np.nonzero((before >= 0) & (after >= 0))
    before, after, agent = before[row, step], after[row, step], tau.agent[order][row]
    n_states = int(labels.max(initial=0)) + 1
    here = _earlier(step * n_states + before, agent, tau.K)
    left, moved = _earlier(before, agent, tau.K), _earlier(before * n_states + after, agent, tau.K)
    anywhere = left + PRIOR_VISITS * tau.K * tau.counts / tau.n
    visits = here + PRIOR_HERE * anywhere / anywhere.sum(axis=1, keepdims=True)
    usual = (moved.sum(axis=1, keepdims=True) + 0.5) / (left.sum(axis=1, keepdims=True) + 1)
    moves = (moved + PRIOR_MOVES * usual) / (left + PRIOR_MOVES)
    forecast = log_softmax(np.log(visits) + np.log(moves), axis=1)
    return float(-forecast[np.arange(len(agent)), agent].mean())


def _earlier(kind: Ints, agent: Ints, K: int) -> NDArray[np.float64]:
    """(m, K): how many earlier visits of the same kind each agent made."""
    order = np.argsort(kind, kind="stable")
    visits = np.zeros((len(kind), K))
    visits[np.arange(len(kind)), agent[order]] = 1
    so_far = np.cumsum(visits, axis=0) - visits
    first = np.flatnonzero(np.diff(kind[order], prepend=-1))
    so_far -= np.repeat(so_far[first], np.diff(np.append(first, len(kind))), axis=0)
    found = np.empty_like(so_far)
    found[order] = so_far
    return found


def _evidence_per_pair(tables: Sequence[Ints], tau: TrajectoryDataset) -> float:
    return sum(evidence_of(counts, tau) for counts in tables) / sum(int(counts.sum()) for counts in tables)


def evidence_of(counts: Ints, tau: TrajectoryDataset) -> float:
    """The same in nats, for one table: how often every agent had every pair of codes, (pairs of codes, K)."""
    prior = PRIOR_VISITS * tau.K * np.bincount(tau.agent, minlength=tau.K) / tau.n
    visits = counts.sum(axis=1)
    total = (gammaln(visits + prior.sum()) - gammaln(prior.sum())).sum()
    return float(total - (gammaln(counts + prior) - gammaln(prior)).sum())


def pair_counts(codes: Iterable[Labels], tau: TrajectoryDataset) -> list[Ints]:
    """For each step, how often every agent had every pair of codes that occurs (pairs, K)."""
    return _tables([_visits(s, s_next, tau.agent, tau.K) for s, s_next in pairwise(codes)], tau.K)


def _visits(before: Labels, after: Labels, agent: Ints, K: int) -> Labels:
    """One label for each pair of codes and agent."""
    return paired(paired(before, after, n_labels(after)), agent, K)


def _tables(visits: Sequence[Labels], K: int) -> list[Ints]:
    counts = [np.append(found, np.zeros(-len(found) % K, dtype=np.int64)) for found in tallies(visits)]
    tables = [found.reshape(-1, K) for found in counts]
    return [table[table.any(axis=1)] for table in tables]
