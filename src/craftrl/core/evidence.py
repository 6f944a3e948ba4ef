"""How likely is it by chance alone? The tests that everything learned is put to.

Log-odds that know nothing are all alike, and CRAFT then finds one state wherever it looks: a failure that looks like a
finding. So every oracle says, for each h, how probable it is that log-odds as good as its f_h come about where the
agent has nothing to do with the pair (x_h, x_{h+1}). States are tested by tables of counts (`dependence`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, gammaincc, gammaln, stdtr

from craftrl.arrays import Floats, Ints

LEVEL = 0.01  # of the steps that are called better than chance, at most so large a share is not
CONTRADICTED = 1e-3  # how likely a test may be to fail by chance, over all steps of one model together
MIN_EXPECTED = 2.0  # of an entry of a table; rarer rows and columns are counted together


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
    are, calibrated or not.
    """
    m, K = log_p.shape
    if m < 2 or len(np.unique(agent)) < K:
        return 1.0
    share = np.bincount(agent, minlength=K) / m
    centred = log_p - log_p.mean(axis=0)
    return paired_p_value(centred[np.arange(m), agent] - centred @ share)


def paired_p_value(gain: Floats) -> float:
    """How likely the mean of these gains, one per trajectory, is so far above zero by chance (one-sided t-test)."""
    m = len(gain)
    error = float(gain.std(ddof=1)) / np.sqrt(m) if m > 1 else 0.0
    return float(stdtr(m - 1, -gain.mean() / error)) if error > 0 else 1.0


def dependence(counts: Ints, stratum: Ints) -> tuple[Floats, Floats]:
    """Whether the groups of each stratum differ in the values of each of F functions: ln p (F,) and nats (F,).

    counts   (G, F, V): how often each function has each value in each group
    stratum  (G,): rising numbers; the groups of one stratum are the rows of one table

    Pearson's statistic, summed over strata, against the gamma law with its exact mean and variance. The second is the
    dependence per count, less what chance alone gives; below 0 where there is less than that.
    """
    from craftrl.core.pearson import pearson

    first = np.append(np.flatnonzero(np.diff(stratum, prepend=-1)), len(counts))
    statistic, mean, variance = pearson(counts, first, MIN_EXPECTED).T
    some = variance > 1e-9
    scale = np.divide(variance, mean, out=np.ones_like(mean), where=some)
    log_p = np.where(some, log_gamma_tail(mean / scale, statistic / scale), 0.0)
    total = counts.sum(axis=(0, 2), dtype=np.int64)
    return log_p, (statistic - mean) / (2 * np.maximum(total, 1))


def log_evidence(counts: Ints | Floats, prior: Floats) -> Floats:
    """ln of the probability of labels that occur so often, counts (..., C), where their chances have a Dirichlet prior
    that weighs as much as so many counts of each, (..., C)."""
    of_all = gammaln(prior.sum(axis=-1)) - gammaln(counts.sum(axis=-1) + prior.sum(axis=-1))
    return np.asarray(of_all + (gammaln(counts + prior) - gammaln(prior)).sum(axis=-1))


def log_gamma_tail(shape: Floats, x: Floats) -> Floats:
    """ln of the chance that a gamma variable of this shape, with scale 1, is above x; where that is too small for a
    float, its first-order expansion."""
    shape, x = np.maximum(shape, 1e-9), np.asarray(x, dtype=np.float64)
    tail = gammaincc(shape, x)
    far = (shape - 1) * np.log(np.maximum(x, 1e-300)) - x - gammaln(shape)
    return np.where(tail > 1e-280, np.log(np.maximum(tail, 1e-300)), np.minimum(far, -640.0))


def above_chance(p_values: Sequence[float]) -> NDArray[np.bool_]:
    """Which of many tests count: at most a share of LEVEL of those that do is expected to be there by chance.

    Where many steps are far from chance, one near it is believed more readily than where none is (Benjamini and
    Hochberg, Journal of the Royal Statistical Society B 57, 1995).
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.sort(p)
    passed = np.flatnonzero(order <= LEVEL * np.arange(1, len(p) + 1) / max(len(p), 1))
    return p <= (order[passed[-1]] if len(passed) else -1.0)
