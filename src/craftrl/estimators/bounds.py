"""alpha, eta and nu where nobody names them: nine fixed settings, of which the data takes one.

The paper takes the bounds as known. What they are for is to read states off the log-odds: high ones find few states
that are surely there, low ones find rare states too and some that are none.

Those are best that tell the agents apart best: by the Dirichlet evidence of the agents given neighbouring states. The
chances of the agents in each pair of states have a Dirichlet prior about the agents' shares. Minus the log-probability
of the agents is then a closed form of counts. More states tell more and cost more: each pair of states costs as much as
its own visits can teach, about (K-1)/2 times the logarithm of their number. No ground truth enters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from craftrl.arrays import Floats, Ints
from craftrl.core.craft import Bounds
from craftrl.core.evidence import log_evidence
from craftrl.core.labels import Labels, crossed
from craftrl.data.dataset import TrajectoryDataset

BOUNDS = ("alpha", "eta", "nu")
ALPHAS = (1.0, 0.5, 0.25)
FINER = (1.0, 4.0, 16.0)  # by what eta is divided, and its power of 3/2 by what nu is
ETA, NU = 0.2, 0.1
PRIOR_VISITS = 0.5  # of each agent, in a pair of states, before any was counted


def candidate_bounds(tau: TrajectoryDataset, known: Mapping[str, float]) -> list[Bounds]:
    """The settings to try, high bounds first, with those that are known in place; one where all are."""
    tried = [Bounds(alpha, eta_beside(tau, ETA / finer), NU / finer**1.5) for finer in FINER for alpha in ALPHAS]
    return list(dict.fromkeys(replace(bounds, **known) for bounds in tried))


def eta_beside(tau: TrajectoryDataset, eta: float) -> float:
    """An eta meant for agents with equally many trajectories, at the odds of the rarest and the most frequent one.

    Of agents with 20,000 and 1,000 trajectories the second makes one visit in 21 where both act alike: with eta = 0.2
    all log-odds would lie beyond the grid.
    """
    if tau.counts.min() == tau.counts.max():
        return eta
    odds = eta / (1 - eta) * float(tau.counts.min() / tau.counts.max())
    return odds / (1 + odds)


def agents_nll(counts: Ints, tau: TrajectoryDataset) -> Floats:
    """The negative log-evidence, in nats, of the agents in each pair of states: counts (..., K) to (...)."""
    pairs = np.maximum(np.bincount(tau.agent, tau.lengths - 1), 1)  # of each agent, those that are over left out
    prior = PRIOR_VISITS * tau.K * pairs / pairs.sum()
    return -log_evidence(counts, prior)


def chained_nll(codes: Iterable[Labels], tau: TrajectoryDataset) -> float:
    """The same of the states of all trajectories at h = 1, 2, ..., -1 where one is over, per pair; lower is better."""
    nats, n_pairs = 0.0, 0
    for s, s_next in pairwise(codes):
        counts = crossed(s, s_next, tau.agent)
        nats += float(agents_nll(counts, tau).sum())
        n_pairs += int(counts.sum())
    return nats / max(n_pairs, 1)
