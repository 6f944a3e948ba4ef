"""Choosing alpha, eta and nu from the data alone.

The paper takes them as known. What they are for is to read states off the log-odds, and how well that went shows in
the data: the encoders that come out, each shared by the pairs on both its sides, tell the agents apart as well as
any chain of encoders can only if they are right (`docs/chain.md`). So `auto` bounds are those whose encoders have
the least chained loss, found by halving and doubling one bound at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import xlogy

from craftrl.core.craft import Bounds
from craftrl.core.encoders import encode_dataset
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.base import Encoder
from craftrl.states.visits import count_visits, pair_labels

__all__ = ["LIMITS", "START", "chained_loss", "search_bounds"]

START = Bounds(alpha=1.0, eta=0.2, nu=0.1)
# Beyond these a bound says nothing: alpha is cut off at 1 in Line 1, eta = 1/2 leaves a single bin.
LIMITS = {"alpha": (0.05, 1.0), "eta": (0.005, 0.45), "nu": (0.001, 0.8)}


def chained_loss(encoders: Sequence[Encoder], tau: TrajectoryDataset) -> float:
    """How badly the encoders of all steps together tell the agents apart, in nats per pair; lower is better.

    The log-loss of the agent given (phi_h, phi_{h+1}), summed over h, each pair of codes with its best
    prediction, plus (K-1)/2 ln n for each pair of codes that occurs (the Bayesian information criterion), so that
    states split for nothing do not pay. No ground truth enters.
    """
    total, n_pairs = 0.0, 0
    codes = encode_dataset(encoders, tau)
    for h in range(1, tau.H):
        counts = count_visits(pair_labels(codes[:, h - 1], codes[:, h]), tau.agent)
        visits = counts.sum(axis=1)
        total += xlogy(visits, visits).sum() - xlogy(counts, counts).sum()
        total += (tau.K - 1) / 2 * np.log(max(tau.n, 2)) * int((visits > 0).sum())
        n_pairs += int(visits.sum())
    return float(total / n_pairs)


def search_bounds(loss: Callable[[Bounds], float], start: Bounds, free: Sequence[str]) -> Bounds:
    """Halve or double one free bound at a time while that lowers the loss; larger bounds win ties.

    Deterministic; each combination is tried once. A larger bound asks more of the data, and where both explain it
    equally well it is the better guide.
    """
    tried: dict[Bounds, float] = {}

    def of(bounds: Bounds) -> float:
        if bounds not in tried:
            tried[bounds] = loss(bounds)
        return tried[bounds]

    best = start
    while True:
        before = best
        for name in free:
            low, high = LIMITS[name]
            for factor in (2.0, 0.5):
                moved = replace(best, **{name: min(max(getattr(best, name) * factor, low), high)})
                if of(moved) < of(best) - 1e-12:
                    best = moved
        if best == before:
            return best
