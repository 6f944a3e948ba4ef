"""Do the log-odds tell the agents apart at all? Chance, and a test of each step against it.

Log-odds that know nothing are all alike, and CRAFT then finds one state wherever it looks: a failure that looks like a
finding. So every oracle says, for each h, how probable it is that log-odds as good as its f_h come about where the
agent has nothing to do with the pair (x_h, x_{h+1}).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

__all__ = ["LEVEL", "above_chance", "chance_loss", "held_out_p_value", "shares_loss", "table_p_value"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
LEVEL = 0.01  # of the steps that are called better than chance, at most so large a share is not


def chance_loss(agent: Ints) -> float:
    """The log-loss, in nats, of knowing how often each agent occurs and nothing else; ln K if equally often."""
    return shares_loss(np.bincount(agent))


def shares_loss(counts: Ints) -> float:
    """The same from how often each agent occurs."""
    counts = np.trim_zeros(counts, "b")
    return float(entr(counts / counts.sum()).sum()) if len(counts) else 0.0


def held_out_p_value(log_p: Floats, agent: Ints) -> float:
    """How likely log-probabilities (m, K) of the agents are so right by chance alone, on pairs not learned from.

    A pair's gain is the log-probability of its agent less that of an agent drawn by the shares; `log_p` is centred
    first, which changes no sum. If pairs say nothing of agents, the mean gain is zero, whatever the log-probabilities
    are, calibrated or not: it is compared with its standard error over the trajectories (one-sided t-test).
    """
    from scipy.stats import t

    m, K = log_p.shape
    if m < 2 or len(np.unique(agent)) < K:
        return 1.0
    share = np.bincount(agent, minlength=K) / m
    centred = log_p - log_p.mean(axis=0)
    gain = centred[np.arange(m), agent] - centred @ share
    error = float(gain.std(ddof=1)) / np.sqrt(m)
    return float(t.sf(gain.mean() / error, m - 1)) if error > 0 else 1.0


def table_p_value(counts: Ints, n_tried: int) -> float:
    """The same for a table that was chosen, as the best of `n_tried`, on the very pairs that it counts.

    `counts` (cells, K) says how often each agent has each pair of values. Pearson's statistic of independence, scaled
    to its exact mean where counts are small, and Bonferroni's correction for the choice.
    """
    from scipy.stats import chi2

    total, cells, agents = int(counts.sum()), counts.sum(axis=1), counts.sum(axis=0)
    free = int(max((cells > 0).sum() - 1, 0) * max((agents > 0).sum() - 1, 0))
    if not free or total < 2:
        return 1.0
    expected = np.outer(cells, agents) / total
    pearson = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0).sum()
    log_p = chi2.logsf(pearson * (total - 1) / total, free)
    return float(np.exp(min(log_p + np.log(max(n_tried, 1)), 0.0)))


def above_chance(p_values: Sequence[float]) -> NDArray[np.bool_]:
    """Which of many tests count: at most a share of LEVEL of those that do is expected to be there by chance.

    Where many steps are far from chance, one near it is believed more readily than where none is (Benjamini and
    Hochberg, Journal of the Royal Statistical Society B 57, 1995).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.sort(p)
    passed = np.flatnonzero(order <= LEVEL * np.arange(1, len(p) + 1) / max(len(p), 1))
    return p <= (order[passed[-1]] if len(passed) else -1.0)
