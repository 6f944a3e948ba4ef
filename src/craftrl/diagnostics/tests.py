"""Tests of learned states by every function of a finite class, without ground truth.

residual  If the states are right and the policies see no noise, the agent depends on (x_h, x_{h+1}) through
          (s_h, s_{h+1}) alone. So within each pair of states no function of x_h or x_{h+1} may tell the agents apart.
closure   Noise knows nothing of the moves. So given s_h and the agent, s_{h+1} is independent of everything else in
          x_h; and given s_{h+1} and the agent, s_h is independent of everything else in x_{h+1}. States that were fused
          fail this, and so do codes that follow noise at one step and the state at the next.
start     If all trajectories begin in one state, some encoder phi of x_2 holds all that (x_1, x_2) tell of the agent.

The first two are read off the same counts: how often each function has each value among the trajectories of one agent
with one pair of states. The strongest function counts, corrected for their number.

Paper: Equation 1 (the noise-free policy property), Sections 2.2 and 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from craftrl.core.evidence import dependence, shares_loss
from craftrl.core.labels import Labels, n_labels, paired, renamed, tally
from craftrl.core.starts import StartTest
from craftrl.engine.counting import pair_counts

if TYPE_CHECKING:
    from craftrl.oracles.counting import PreparedCounting

__all__ = ["StateTests", "log_likelihood", "run_tests", "start_test"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

SIGNIFICANT = 0.01  # over all steps of one model together
AT_ONCE = 64  # encoders of x_1 whose pairs with all of x_2 are counted together
PRIOR_WEIGHTS = (1.0, 4.0, 16.0, 64.0)  # trajectories that x_2's word alone counts for, against a cell's own


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


# -- the start ----------------------------------------------------------------------------------------------------


def start_test(prepared: PreparedCounting) -> StartTest:
    """Do all trajectories begin in one state? Both tests on the values of all encoders of steps 1 and 2.

    Which encoder of x_2 is the right one is not known, and a wrong one must not raise an alarm: with
    phi(x_2) = s_2 XOR e, noise in x_1 *does* tell of the agent. So the best pair of encoders, chosen and trained on one
    half of the trajectories, is compared on the other half with *every* phi, each at its best on that very half. The
    ratio of the two likelihoods exceeds 1/p with probability p at most if there is one start, whatever phi is the right
    one, in any amount of data (the split likelihood ratio of Wasserman, Ramdas and Balakrishnan, PNAS 117, 2020); both
    halves take their turn, and the two ratios are averaged.
    """
    tau = prepared.tau
    first = prepared.group_counts(1, tau.agent, tau.K)
    log_p = dependence(first, np.zeros(tau.K, dtype=np.int64))[0].min() + np.log(first.shape[1])
    turns = [_split_ratio(prepared, turn) for turn in (0, 1)]
    n = max(int(tau.running(2).sum()), 1)
    log_ratio = float(logsumexp([ratio for ratio, _ in turns]) - np.log(2))
    return StartTest(
        p_first=float(np.exp(min(log_p, 0.0))),
        p_beyond=float(np.exp(min(-log_ratio, 0.0))),
        added=sum(ratio for ratio, _ in turns) / n,
        told=sum(told for _, told in turns) / n,
    )


def _split_ratio(prepared: PreparedCounting, turn: int) -> tuple[float, float]:
    """ln of the likelihood ratio on half `turn`, and by how much the pair beats the agents' shares there."""
    first, second = prepared.step(1), prepared.step(2)
    seen, unseen = ((first.half(half, prepared.seed), second.half(half, prepared.seed)) for half in (1 - turn, turn))
    blocks = (slice(start, start + AT_ONCE) for start in range(0, first.size, AT_ONCE))
    best = (_best_pair(pair_counts(*seen, block, slice(None)), block.start) for block in blocks)
    _, i, j = max(best, key=lambda found: found[0])
    trained, tested = (pair_counts(*half, slice(i, i + 1), slice(j, j + 1))[0, 0] for half in (seen, unseen))
    by_pair = _predicted(trained, tested)
    alone = pair_counts(unseen[0].nothing(), unseen[1], slice(0, 1), slice(None))[0, :, 0]  # (F, N_s, K)
    shares = alone[0].sum(axis=0)
    prior = -shares_loss(shares) * float(shares.sum())
    return by_pair - max(prior, float(log_likelihood(alone).max())), by_pair - prior


def _best_pair(counts: Ints, first: int) -> tuple[float, int, int]:
    """Of tables (I, F, N_1, N_2, K), the largest log-likelihood of the agents and where it is, ties to the first."""
    likelihood = log_likelihood(counts.reshape(*counts.shape[:2], -1, counts.shape[-1]))
    i, j = divmod(int(np.argmax(likelihood)), likelihood.shape[1])
    return float(likelihood[i, j]), first + i, j


def log_likelihood(counts: Ints) -> Floats:
    """Of the agents in tables (..., cells, K), each by its own shares."""
    total = counts.sum(axis=-1)
    return np.asarray(xlogy(counts, counts).sum(axis=(-2, -1)) - xlogy(total, total).sum(axis=-1))


def _predicted(trained: Ints, tested: Ints) -> float:
    """The log-likelihood of counts (N_1, N_2, K) by what other counts teach.

    A cell's shares are drawn towards those of its x_2 alone, by weights that are averaged over: a likelihood too.
    """
    alone = trained.sum(axis=0) + 0.5
    alone = alone / alone.sum(axis=-1, keepdims=True)
    size = trained.sum(axis=-1, keepdims=True)
    each = [np.log((trained + weight * alone) / (size + weight)) for weight in PRIOR_WEIGHTS]
    return float(logsumexp([(tested * log_p).sum() for log_p in each]) - np.log(len(each)))
