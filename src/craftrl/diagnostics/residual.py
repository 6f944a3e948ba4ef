"""Does anything in the observations tell the agents apart once the states are known?

If the states are right and the policies see no noise, the agent depends on (x_h, x_{h+1}) through (s_h, s_{h+1})
alone. So for every function psi of a probing class, psi(x_h) and psi(x_{h+1}) must be independent of the agent
within each cell of (s_h, s_{h+1}). That is a chi-square test for each psi, and we report the strongest.

Paper: Equation 1 (the noise-free policy property), Section 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.labels import Labels, n_labels, paired, renamed, tally
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.given import check_codes, prepare_probe
from craftrl.oracles.counting import CountingOracle, PreparedCounting

__all__ = ["Residual", "pair_cells", "residual_by_step", "residual_information", "strongest_dependence"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

SIGNIFICANT = 0.01  # over all steps of one model together


@dataclass(frozen=True)
class Residual:
    """What is left of the agent in (x_h, x_{h+1}) given (s_h, s_{h+1}), one entry for each h = 1..H-1.

    known    mutual information of the agent and (s_h, s_{h+1}) in nats, less what chance alone gives
    nats     conditional mutual information of the agent and the strongest probe, likewise
    p_value  of the strongest probe, times the number of probes (Bonferroni), at most 1
    probe    the strongest probe: the step whose observation it reads, h or h+1, and its index in the class there
    """

    known: Floats
    nats: Floats
    p_value: Floats
    probe: tuple[tuple[int, int], ...]

    def explained(self, level: float = SIGNIFICANT) -> Floats:
        """Of what the states and the strongest probe tell of the agent, the states' share; 1 where p > level / (H-1).

        Shape (H-1,).
        """
        left_over = np.where(self.p_value * len(self.p_value) < level, self.nats, 0.0)
        total = self.known + left_over
        return np.divide(self.known, total, out=np.ones_like(total), where=left_over > 0)


def residual_information(codes: Ints, tau: TrajectoryDataset, probe: CountingOracle | PreparedCounting) -> Residual:
    """Test the states `codes` (n, H), -1 for none, against every function of the probing class, step by step."""
    codes = check_codes(codes, tau)
    return residual_by_step(list(codes.T), prepare_probe(probe, tau, "residual_information"))


def residual_by_step(codes: Sequence[Labels], prepared: PreparedCounting) -> Residual:
    """The same for the states of each step by themselves, wherever they lie."""
    known, nats, p_value, found = zip(*(_at_step(h, codes, prepared) for h in range(1, prepared.tau.H)))
    return Residual(np.array(known), np.array(nats), np.array(p_value), found)


def _at_step(
    h: int, codes: Sequence[Labels], prepared: PreparedCounting
) -> tuple[float, float, float, tuple[int, int]]:
    K = prepared.tau.K
    group, agents_in_cell = pair_cells(codes[h - 1], codes[h], prepared.tau)
    _, states_know, _ = strongest_dependence(agents_in_cell[None, None])
    candidates = []
    for step in (h, h + 1):
        counts = prepared.group_counts(step, group, agents_in_cell.size)
        tables = counts.reshape(-1, K, *counts.shape[1:]).transpose(2, 0, 1, 3)
        candidates.append((*strongest_dependence(tables), step))
    log_p, nats, index, step = min(candidates)
    n_probes = prepared.n_encoders(h) + prepared.n_encoders(h + 1)
    p_value = float(np.exp(min(log_p + np.log(n_probes), 0.0)))
    return max(states_know, 0.0), max(nats, 0.0), p_value, (step, index)


def pair_cells(s_h: Labels, s_next: Labels, tau: TrajectoryDataset) -> tuple[Labels, NDArray[np.int64]]:
    """A number for every agent in every pair of states that occurs, -1 where one is missing; and how often it is there.

    Agent k in the c-th pair has the number c * K + k; the counts are (pairs, K).
    """
    visited = paired(paired(s_h, s_next, n_labels(s_next)), tau.agent, tau.K)
    n_pairs = n_labels(s_h) * n_labels(s_next)
    visits = tally(visited, n_pairs * tau.K).reshape(n_pairs, tau.K)
    occurs = visits.any(axis=1)
    names = np.where(occurs, np.cumsum(occurs) - 1, -1)[:, None] * tau.K + np.arange(tau.K)
    return renamed(visited, names.ravel()), visits[occurs]


def strongest_dependence(tables: NDArray[np.integer]) -> tuple[float, float, int]:
    """Of tables (F, C, K, V), the one whose rows and columns depend most on one another within the C cells.

    Returned are ln p, the dependence in nats per count, less what chance gives, and the index in 0..F-1. Pearson's
    statistic, summed over cells, and not the likelihood ratio: it keeps close to its chi-square where counts are
    small. Its mean within a cell of N counts is df * N / (N - 1) exactly, and it is scaled to have mean df.
    """
    from scipy.stats import chi2

    total = tables.sum(axis=(2, 3))
    rows, columns = tables.sum(axis=3), tables.sum(axis=2)
    expected = rows[..., :, None] * columns[..., None, :] / np.maximum(total, 1)[..., None, None]
    pearson = np.divide((tables - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)
    df = ((rows > 0).sum(axis=2) - 1).clip(0) * ((columns > 0).sum(axis=2) - 1).clip(0)
    by_chance = (df * total / np.maximum(total - 1, 1)).sum(axis=1)
    statistic, free = pearson.sum(axis=(1, 2, 3)), df.sum(axis=1)
    scaled = statistic * free / np.maximum(by_chance, 1)
    log_p = np.where(free > 0, chi2.logsf(scaled, np.maximum(free, 1)), 0.0)
    best = int(np.argmin(log_p))
    n = max(int(total[best].sum()), 1)
    return float(log_p[best]), float((statistic[best] - by_chance[best]) / (2 * n)), best
