"""Tests of learned states by every function of a finite class, without ground truth.

residual  If the states are right and the policies see no noise, the agent depends on (x_h, x_{h+1}) through
          (s_h, s_{h+1}) alone. So within each pair of states no function of x_h or x_{h+1} may tell the agents apart.
closure   Noise knows nothing of the moves. So given s_h and the agent, s_{h+1} is independent of everything else in
          x_h; and given s_{h+1} and the agent, s_h is independent of everything else in x_{h+1}. States that were fused
          fail this, and so do codes that follow noise at one step and the state at the next.
split     States are no finer than needed. Two of them that some function reads as one must differ in who comes there,
          from where, or to where: else noise has split a state.
doubt     The coupling's costs are minus log-likelihoods, so that exp(-cost) weighs every chain of encoders. If chains
          that read the observations otherwise have much of the weight, the data does not decide.

Residual and closure are p-values of the strongest function, corrected for their number; split is a Bayes factor.

Paper: Equation 1 (the noise-free policy property), Sections 2.2 and 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from craftrl.arrays import Bools, Floats, Ints
from craftrl.core.encoders import named_states
from craftrl.core.evidence import dependence, log_evidence
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, crossed, n_labels, paired, renamed, tally

if TYPE_CHECKING:
    from craftrl.oracles.finite import PreparedCounting


SIGNIFICANT = 0.01  # over all steps of one model together
SAME = 0.95  # of every state's observations, on which two codes must agree to be the same
RARE = 0.01  # of the observations of a step: states that fewer are in are not judged


@dataclass(frozen=True)
class StateTests:
    """What is left of agents and moves in the observations once the states are known, one entry for each h = 1..H-1
    unless said otherwise.

    known       mutual information of the agent and (s_h, s_{h+1}) in nats, less what chance alone gives
    log_p       ln of how likely s_{h+1} tells the agents apart as well by chance, given s_h; uncorrected for any choice
    residual    conditional mutual information of the agent and the strongest function, given both states, likewise
    p_residual  how likely the strongest function tells as much by chance
    closure     conditional mutual information of the neighbouring state and the strongest function, likewise
    p_closure   how likely that is by chance
    n_encoders  (H,): functions at each step
    split       (H,): ln of the Bayes factor for two states against one, of the two states that are most alike and that
                some function reads as one; infinite where there are none
    unnamed     (H,): the share of observations whose code stands for no state that was found
    doubt       (H,): the weight of encoders that read observations of the step otherwise, between 0 and 1
    doubted     the weight of chains of encoders that do so at any step; NaN where this was not asked
    """

    known: Floats
    log_p: Floats
    residual: Floats
    p_residual: Floats
    closure: Floats
    p_closure: Floats
    n_encoders: NDArray[np.int64]
    split: Floats
    unnamed: Floats
    doubt: Floats
    doubted: float

    @property
    def explained(self) -> Floats:
        """Of what the states and the strongest function tell of the agent, the states' share (H-1,); 1 where the
        function's part is not significant."""
        left = np.where(self.p_residual * len(self.p_residual) < SIGNIFICANT, self.residual, 0.0)
        total = self.known + left
        return np.divide(self.known, total, out=np.ones_like(total), where=left > 0)


def run_tests(
    codes: Labels,
    n_states: Sequence[int],
    prepared: PreparedCounting,
    path: Sequence[int] | None = None,
    grid: Grid | None = None,
    by_step: bool = True,
) -> StateTests:
    """Test what encoders read, codes (n, H) with -1 for none, by every function of a finite class.

    The states are taken at their word: a code that stands for none of the `n_states` found is one of the commonest.

    path, grid  the numbers in their classes of the encoders that read the states, and the grid of the losses by which
                chains of encoders are compared with theirs; None asks no such thing
    by_step     whether each step has states of its own; those of all steps may be alike at one and differ at another
    """
    H = prepared.tau.H
    named = list(named_states(codes, n_states).T)
    known, log_p, residual, p_residual, closure, p_closure = np.array(
        [_at_pair(h, named[h - 1], named[h], prepared) for h in range(1, H)]
    ).T
    n_encoders = np.array([prepared.n_encoders(h) for h in range(1, H + 1)])
    split = np.array([_split(h, named, prepared) if by_step else np.inf for h in range(1, H + 1)])
    unnamed = (codes >= np.asarray(n_states)).sum(axis=0) / np.maximum((codes >= 0).sum(axis=0), 1)
    unnamed *= np.asarray(n_states) > 1  # where there is one state, any code serves
    doubt, doubted = np.full(H, np.nan), np.nan
    if path is not None and grid is not None:
        doubt, doubted = _doubt(path, prepared, grid)
    both = known, log_p, residual, p_residual, closure, p_closure
    return StateTests(*both, n_encoders, split, unnamed, doubt, doubted)


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


def _split(h: int, codes: list[Labels], prepared: PreparedCounting) -> float:
    """ln of the Bayes factor of the two states of h that are most alike, of those that some function reads as one."""
    s, tau = codes[h - 1], prepared.tau
    visits = tally(s)
    S = len(visits)
    if S < 3:  # one state in place of two needs no function
        return np.inf
    counts = prepared.group_counts(h, s, S)  # (S, |Phi_h|, N_s)
    value = counts.argmax(axis=2)
    coarser = (counts.max(axis=2) >= SAME * visits[:, None]).all(axis=0)
    coarser &= (value != value[visits.argmax()]).any(axis=0)
    as_one = (value[:, None] == value)[:, :, coarser].any(axis=2)
    common = visits >= RARE * visits.sum()
    as_one &= common[:, None] & common & ~np.eye(S, dtype=bool)
    if not as_one.any():
        return np.inf
    nats = two_or_one(crossed(s, tau.agent))
    for neighbour in codes[max(h - 2, 0) : h - 1] + codes[h : h + 1]:
        moves = crossed(s, neighbour, tau.agent)
        nats = nats + sum(two_or_one(moves[..., k]) for k in range(tau.K))
    return float(nats[as_one].min())


def two_or_one(counts: Ints) -> Floats:
    """ln of the Bayes factor (S, S) that two rows of counts (S, C) follow two laws, against one (Jeffreys' prior)."""
    counts = counts[:, counts.any(axis=0)]
    if not counts.size:
        return np.zeros((len(counts), len(counts)))
    prior = np.full(counts.shape[1], 0.5)
    both = log_evidence(counts, prior)
    return np.asarray(both[:, None] + both - log_evidence(counts[:, None] + counts, prior))


def _doubt(path: Sequence[int], prepared: PreparedCounting, grid: Grid) -> tuple[Floats, float]:
    """The weight of encoders that read the observations of a step otherwise, (H,), and of chains that do at any step.

    A code of which the other is a function, or that is one of the other, does not read otherwise: whether states are
    fused or split is asked by the other tests.
    """
    costs = prepared.chain_costs(path, grid)
    same: list[Bools] = [np.ones(len(costs[0]), dtype=bool)]
    for h in range(2, prepared.tau.H + 1):
        same.append(_same(prepared.group_counts(h, prepared.values(h, path[h - 1]), prepared.N_s)))
    there, only, back = [np.zeros(len(costs[0]))], np.zeros(len(costs[0])), [np.zeros(costs[-1].shape[1])]
    for cost, agrees in zip(costs, same[1:]):
        there.append(logsumexp(there[-1][:, None] - cost, axis=0))
        only = np.where(agrees, logsumexp(only[:, None] - cost, axis=0), -np.inf)
    for cost in reversed(costs):
        back.append(logsumexp(back[-1] - cost, axis=1))
    total = logsumexp(there[-1])
    weights = [np.exp(a + b - total) for a, b in zip(there, reversed(back))]
    doubt = [float(weight[~agrees].sum()) for weight, agrees in zip(weights, same)]
    return np.array(doubt), float(-np.expm1(min(logsumexp(only) - total, 0.0)))


def _same(counts: Ints) -> Bools:
    """(F,): which of F functions with these counts (S, F, V) on the values of one code are a function of it, or it of
    them, on nearly all observations of every value that is not rare."""
    visits = counts.sum(axis=2)
    rare = visits < RARE * visits.sum(axis=0)
    coarser = (counts.max(axis=2) >= SAME * visits) | rare
    most = counts == counts.max(axis=0)
    finer = ((counts * most).sum(axis=2) >= SAME * visits) | rare
    return np.asarray(coarser.all(axis=0) | finer.all(axis=0))
