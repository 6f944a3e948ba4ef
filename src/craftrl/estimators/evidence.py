"""How well states tell the agents apart: what runs of CRAFT are compared by, in nats per pair; no ground truth enters.

All are lengths of a description of the agents given the states: that of tables, and what it takes to tell their
entries. More states tell more and cost more, and the shortest description is the one to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from craftrl.core.labels import Labels, n_labels, paired, tally
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["chained_evidence", "chained_loss", "evidence_of", "pair_counts", "shared_evidence"]

Ints = NDArray[np.integer]
PRIOR_VISITS = 0.5  # of each agent, in a pair of codes, before any was counted


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
    the two. Habits that stay are learned from all steps together, so that each pair of states is paid for once:
    with few trajectories that is what makes a state worth its price that only differs a little from another one.
    """
    tables = pair_counts(labels.T, tau), _pair_counts_of_all_steps(labels, tau)
    return min(_evidence_per_pair(each, tau) for each in tables)


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


def _pair_counts_of_all_steps(labels: Ints, tau: TrajectoryDataset) -> list[Ints]:
    """The same over all steps, as one table: `labels` (n, H) mean the same at each."""
    before, after = np.concatenate(labels.T[:-1]), np.concatenate(labels.T[1:])
    return _tables([_visits(before, after, np.tile(tau.agent, labels.shape[1] - 1), tau.K)], tau.K)


def _visits(before: Labels, after: Labels, agent: Ints, K: int) -> Labels:
    """One label for each pair of codes and agent."""
    return paired(paired(before, after, n_labels(after)), agent, K)


def _tables(visits: Sequence[Labels], K: int) -> list[Ints]:
    counts = [np.append(found, np.zeros(-len(found) % K, dtype=np.int64)) for found in map(tally, visits)]
    tables = [found.reshape(-1, K) for found in counts]
    return [table[table.any(axis=1)] for table in tables]
