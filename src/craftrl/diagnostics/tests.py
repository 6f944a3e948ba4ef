"""Tests of learned states by every function of a finite class, without ground truth.

residual  If the states are right and the policies see no noise, the agent depends on (x_h, x_{h+1}) through
          (s_h, s_{h+1}) alone. So within each pair of states no function of x_h or x_{h+1} may tell the agents apart.
closure   Noise knows nothing of the moves. So given s_h and the agent, s_{h+1} is independent of everything else in
          x_h; and given s_{h+1} and the agent, s_h is independent of everything else in x_{h+1}. States that were fused
          fail this, and so do codes that follow noise at one step and the state at the next.

Both are read off the same counts: how often each function has each value among the trajectories of one agent
with one pair of states. The strongest function counts, corrected for their number.

Paper: Equation 1 (the noise-free policy property), Sections 2.2 and 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.core.evidence import dependence
from craftrl.core.labels import Labels, n_labels, paired, renamed, tally

if TYPE_CHECKING:
    from craftrl.oracles.finite import PreparedCounting

__all__ = ["StateTests", "log_likelihood", "run_tests"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

SIGNIFICANT = 0.01  # over all steps of one model together


@dataclass(frozen=True)
class StateTests:
    """What is left of agents and moves in the observations once the states are known, one entry for each h = 1..H-1.

    known       mutual information of the agent and (s_h, s_{h+1}) in nats, less what chance alone gives
    log_p       ln of how likely s_{h+1} tells the agents apart as well by chance, given s_h; uncorrected for any choice
    residual    conditional mutual information of the agent and the strongest function, given both states, likewise
    p_residual  how likely the strongest function tells as much by chance
    closure     conditional mutual information of the neighbouring state and the strongest function, likewise
    p_closure   how likely that is by chance
    n_encoders  (H,): functions at each step
    """

    known: Floats
    log_p: Floats
    residual: Floats
    p_residual: Floats
    closure: Floats
    p_closure: Floats
    n_encoders: NDArray[np.int64]

    @property
    def explained(self) -> Floats:
        """Of what the states and the strongest function tell of the agent, the states' share (H-1,); 1 where the
        function's part is not significant."""
        left = np.where(self.p_residual * len(self.p_residual) < SIGNIFICANT, self.residual, 0.0)
        total = self.known + left
        return np.divide(self.known, total, out=np.ones_like(total), where=left > 0)


def run_tests(codes: Sequence[Labels], prepared: PreparedCounting) -> StateTests:
    """Test the states of each step, codes (n,) with -1 for none, by every function of a finite class."""
    H = prepared.tau.H
    known, log_p, residual, p_residual, closure, p_closure = np.array(
        [_at_pair(h, codes[h - 1], codes[h], prepared) for h in range(1, H)]
    ).T
    n_encoders = np.array([prepared.n_encoders(h) for h in range(1, H + 1)])
    return StateTests(known, log_p, residual, p_residual, closure, p_closure, n_encoders)


def _at_pair(h: int, s_h: Labels, s_next: Labels, prepared: PreparedCounting) -> tuple[float, ...]:
    """known, log_p, residual, p_residual, closure and p_closure of the pair (h, h+1)."""
    tau = prepared.tau
    shape = n_labels(s_h), n_labels(s_next), tau.K
    cell = paired(paired(s_h, s_next, shape[1]), tau.agent, tau.K)
    visits = tally(cell, int(np.prod(shape)))
    found = np.flatnonzero(visits)
    if not len(found):
        return 0.0, 0.0, 0.0, 1.0, 0.0, 1.0
    group = renamed(cell, np.where(visits > 0, np.cumsum(visits > 0) - 1, -1))
    here, after = (prepared.group_counts(step, group, len(found)) for step in (h, h + 1))
    s, t, k = np.unravel_index(found, shape)
    n_probes = here.shape[1] + after.shape[1]
    agents = [_strongest(counts, (s, t), k) for counts in (here, after)]
    moves = [_strongest(here, (s, k), t), _strongest(after, (t, k), s)]
    table = visits.reshape(shape)
    known = dependence(table.reshape(-1, 1, tau.K), np.zeros(shape[0] * shape[1], dtype=np.int64))[1][0]
    by_next = np.ascontiguousarray(table.transpose(0, 2, 1)).reshape(-1, 1, shape[1])
    added = dependence(by_next, np.repeat(np.arange(shape[0]), tau.K))[0][0]
    of_tests = [(nats, float(np.exp(min(log_p + np.log(n_probes), 0.0)))) for log_p, nats in (min(agents), min(moves))]
    return max(float(known), 0.0), float(added), *of_tests[0], *of_tests[1]


def _strongest(counts: Ints, within: tuple[Ints, Ints], rows: Ints) -> tuple[float, float]:
    """ln p and nats of the function that differs most between `rows` within the strata of two labels."""
    order = np.lexsort((rows, within[1], within[0]))
    _, stratum = np.unique(within[0][order] * (within[1].max() + 1) + within[1][order], return_inverse=True)
    log_p, nats = dependence(np.ascontiguousarray(counts[order]), stratum)
    best = int(np.argmin(log_p))
    return float(log_p[best]), max(float(nats[best]), 0.0)


def log_likelihood(counts: Ints) -> Floats:
    """Of the agents in tables (..., cells, K), each by its own shares."""
    total = counts.sum(axis=-1)
    return np.asarray(xlogy(counts, counts).sum(axis=(-2, -1)) - xlogy(total, total).sum(axis=-1))
