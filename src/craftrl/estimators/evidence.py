"""How well states tell the agents apart: one score, the Dirichlet evidence of the agents given neighbouring states.

The chances of the agents in each pair of neighbouring states have a Dirichlet prior about the agents' shares. Minus the
log-probability of the agents is then a closed form of counts. More states tell more and cost more: each pair of states
costs as much as its own visits can teach, about (K-1)/2 times the logarithm of their number. No ground truth enters.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from scipy.special import gammaln

from craftrl.arrays import Floats, Ints
from craftrl.core.labels import Labels, n_labels, paired, tally
from craftrl.data.dataset import TrajectoryDataset

__all__ = ["agents_evidence", "chained_evidence", "pair_tables", "shared_evidence"]

PRIOR_VISITS = 0.5  # of each agent, in a pair of states, before any was counted


def agents_evidence(counts: Ints, tau: TrajectoryDataset) -> Floats:
    """Minus the log-probability in nats of the agents in each pair of states: counts (..., K) to (...)."""
    pairs = np.maximum(np.bincount(tau.agent, tau.lengths - 1), 1)  # of each agent, those that are over left out
    prior = PRIOR_VISITS * tau.K * pairs / pairs.sum()
    visits = counts.sum(axis=-1)
    total = gammaln(visits + prior.sum()) - gammaln(prior.sum())
    return np.asarray(total - (gammaln(counts + prior) - gammaln(prior)).sum(axis=-1))


def chained_evidence(codes: Iterable[Labels], tau: TrajectoryDataset) -> float:
    """Of the states of all trajectories at h = 1, 2, ..., -1 where one is over, in nats per pair; lower is better."""
    counts = np.concatenate(pair_tables(codes, tau))
    return float(agents_evidence(counts, tau).sum()) / max(int(counts.sum()), 1)


def shared_evidence(labels: Labels, tau: TrajectoryDataset) -> float:
    """The same for states (n, H) that mean the same at all steps.

    An agent's habits may be other ones at each step, or the same at all of them; what counts is the better account of
    the two. Habits that stay are learned from all steps together, so that each pair of states is paid for once.
    """
    n_states = n_labels(labels)
    before, after = labels[:, :-1].T.ravel(), labels[:, 1:].T.ravel()
    agent = np.tile(tau.agent, labels.shape[1] - 1)
    pooled = tally(paired(paired(before, after, n_states), agent, tau.K), n_states**2 * tau.K).reshape(-1, tau.K)
    return min(chained_evidence(labels.T, tau), float(agents_evidence(pooled, tau).sum()) / max(int(pooled.sum()), 1))


def pair_tables(codes: Iterable[Labels], tau: TrajectoryDataset) -> list[Ints]:
    """For each step, how often every agent had every pair of neighbouring states: (pairs, K)."""
    tables: list[Ints] = []
    for s, s_next in pairwise(codes):
        n_pairs = n_labels(s) * n_labels(s_next)
        visits = paired(paired(s, s_next, n_labels(s_next)), tau.agent, tau.K)
        tables.append(tally(visits, n_pairs * tau.K).reshape(n_pairs, tau.K))
    return tables
