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

__all__ = ["agents_evidence", "chained_evidence"]

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
    nats, n_pairs = 0.0, 0
    for s, s_next in pairwise(codes):
        shape = n_labels(s) * n_labels(s_next), tau.K
        visits = paired(paired(s, s_next, n_labels(s_next)), tau.agent, tau.K)
        counts = tally(visits, shape[0] * tau.K).reshape(shape)
        nats += float(agents_evidence(counts, tau).sum())
        n_pairs += int(counts.sum())
    return nats / max(n_pairs, 1)
