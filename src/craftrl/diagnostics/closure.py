"""Are the states closed: does x_h say more of s_{h+1} than s_h does, or x_{h+1} more of s_h than s_{h+1} does?

If policies see no noise (Equation 1), noise knows nothing of the moves. So given the state s_h and the agent, s_{h+1}
is independent of everything else in x_h; and given s_{h+1} and the agent, s_h is independent of everything else in
x_{h+1}. States that were fused fail this: what x_h says beyond the fused state tells where the agent goes next. So do
codes that follow noise at one step and the state at the next. For every function psi of a probing class that is a
chi-square test of psi(x_h) against s_{h+1} within each cell (s_h, agent), and backwards; the strongest is reported.

Paper: Equation 1 (the noise-free policy property), Section 2.2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from craftrl.core.labels import Labels, n_labels, paired, renamed, tally
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.given import check_codes, prepare_probe
from craftrl.oracles.counting import CountingOracle, PreparedCounting

__all__ = ["Closure", "closure_by_step", "closure_test"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
LEAST_EXPECTED = 5.0  # entries of a table of which fewer counts are expected are left out: the usual rule


@dataclass(frozen=True)
class Closure:
    """What observations say of the neighbouring state beyond their own, one entry for each h = 1..H-1.

    p_value  of the strongest probe of either direction, times the number of probes, at most 1
    nats     conditional mutual information of that probe and the neighbouring state, less what chance alone gives
    """

    p_value: Floats
    nats: Floats


def closure_test(codes: Ints, tau: TrajectoryDataset, probe: CountingOracle | PreparedCounting) -> Closure:
    """Test the states `codes` (n, H), -1 for none, with every function of the probing class, step by step."""
    codes = check_codes(codes, tau)
    return closure_by_step(list(codes.T), prepare_probe(probe, tau, "closure_test"))


def closure_by_step(codes: Sequence[Labels], prepared: PreparedCounting) -> Closure:
    """The same for the states of each step by themselves, wherever they lie."""
    found = [_at_step(codes[h - 1], codes[h], prepared, h) for h in range(1, prepared.tau.H)]
    p_value, nats = np.array(found).T
    return Closure(p_value, nats)


def _at_step(s_h: Labels, s_next: Labels, prepared: PreparedCounting, h: int) -> tuple[float, float]:
    both = [strongest_within(s_h, s_next, prepared, h), strongest_within(s_next, s_h, prepared, h + 1)]
    log_p, nats = min(both)
    n_probes = prepared.n_encoders(h) + prepared.n_encoders(h + 1)
    return float(np.exp(min(log_p + np.log(n_probes), 0.0))), max(nats, 0.0)


def strongest_within(own: Labels, other: Labels, prepared: PreparedCounting, h: int) -> tuple[float, float]:
    """ln p and nats of the probe of x_h that depends most on the state `other` given (own, agent)."""
    tau, n_other = prepared.tau, n_labels(other)
    visited = paired(paired(own, tau.agent, tau.K), other, n_other)
    visits = tally(visited, n_labels(own) * tau.K * n_other)
    found = np.flatnonzero(visits)  # in order: those of one cell are neighbours
    if not len(found) or not (found % n_other).any():
        return 0.0, 0.0
    group = renamed(visited, np.where(visits > 0, np.cumsum(visits > 0) - 1, -1))
    counts = prepared.group_counts(h, group, len(found))  # (groups, F, V)
    tables = np.split(counts, np.flatnonzero(np.diff(found // n_other)) + 1)
    statistic, free = (np.sum(parts, axis=0) for parts in zip(*map(pearson_of_large, tables)))
    with np.errstate(divide="ignore"):  # p may be too small for a float
        log_p = np.where(free > 1e-9, np.log(chdtrc(np.maximum(free, 1e-9), statistic)), 0.0)
    best = int(np.argmin(log_p))
    return float(log_p[best]), float((statistic[best] - free[best]) / (2 * max(int(visits.sum()), 1)))


def pearson_of_large(table: Ints) -> tuple[Floats, Floats]:
    """Pearson's statistic of tables (R, F, V) and its mean where rows and columns are independent, for each of the F.

    Entries of which little is expected are left out: the chi-square law does not hold for them. The mean of an entry is
    (1 - row share) (1 - column share) N / (N - 1), whichever others are left out; of all of them it is the degrees of
    freedom times N / (N - 1).
    """
    rows, columns = table.sum(axis=2)[:, :, None], table.sum(axis=0)[None]
    total = np.maximum(columns.sum(axis=2, keepdims=True), 2)
    expected = rows * columns / total
    large = expected >= LEAST_EXPECTED
    off = np.divide((table - expected) ** 2, expected, out=np.zeros_like(expected), where=large)
    mean = np.where(large, (1 - rows / total) * (1 - columns / total), 0.0) * total / (total - 1)
    return off.sum(axis=(0, 2)), mean.sum(axis=(0, 2))
