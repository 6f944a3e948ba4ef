"""alpha, eta, nu and nu': how different the agents are, and how well they cover the states.

The paper states its assumptions for the data at hand (`empirical_assumptions`) and sets the bounds of its own
experiment from the known world (`population_assumptions`). Both reduce to one table per step, the visits of
each agent to each pair of states, and one search for the worst pair.

Paper: Section 2.4 (pi_emp), Equations 3-7, Appendix D
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from craftrl.arguments import check_kind, is_whole, quoted
from craftrl.arrays import Bools, Floats
from craftrl.data.labels import as_array, as_labels
from craftrl.envs.agents import MarkovPolicy
from craftrl.envs.exbmdp import ExBMDP, check_tables, reachable_states
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.evaluation import count_visits

MAX_AGENTS = 10**6


@dataclass(frozen=True)
class Attained:
    """A bound and where the data attains it, so that a user knows which states to visit more.

    value   the bound itself
    h       the step; None if nothing restricts the bound
    states  (s_h,) for nu'; (s_h, s_{h+1}) for nu and eta; (s_h, s_{h+1}, s'_{h+1}) for alpha
    agents  the agents that attain it: (rarest, most frequent) for eta, the two that differ most for alpha
    """

    value: float
    h: int | None
    states: tuple[int, ...] = ()
    agents: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.h is None:
            return f"{self.value:.6g} (no state has two successors)"
        state, *successors = self.states
        to = f" -> {' | '.join(map(str, successors))}" if successors else ""
        by = f", agents {' and '.join(map(str, self.agents))}" if self.agents else ""
        return f"{self.value:.6g} at h = {self.h}, state {state}{to}{by}"


@dataclass(frozen=True)
class Assumptions:
    """The four quantities of the paper's assumptions, each with the states that attain it.

    alpha     the least difference between agents' log-odds of two successors of one state
    eta       the least share of one agent among the visits to a pair of states
    nu        the least share of trajectories that visit a possible pair of states
    nu_prime  the least share of trajectories that visit a state

    Paper: Section 2.5
    """

    alpha: Attained
    eta: Attained
    nu: Attained
    nu_prime: Attained

    def __str__(self) -> str:
        return f"alpha = {self.alpha}\neta   = {self.eta}\nnu    = {self.nu}\nnu'   = {self.nu_prime}"


@dataclass(frozen=True)
class Visits:
    """Visits as shares of all trajectories that go on so long; lists over h, entry h-1 belonging to h.

    pairs     |D*_k(s_h, s_{h+1})| / |tau| for each agent k, shape (K, |S_h|, |S_{h+1}|), for h in 1..H-1
    possible  the pairs that the coverage assumption speaks of, shape (|S_h|, |S_{h+1}|)
    singles   |D*(s_h)| / |tau|, shape (|S_h|,), for h in 1..H
    present   the states that nu' speaks of, shape (|S_h|,)

    Paper: Section 2.3
    """

    pairs: list[Floats]
    possible: list[Bools]
    singles: list[Floats]
    present: list[Bools]


def empirical_assumptions(
    agent: ArrayLike, states: ArrayLike, *, n_agents: int | None = None, lengths: ArrayLike | None = None
) -> Assumptions:
    """alpha, eta, nu and nu' of labelled data: `agent` (n,) and `states` (n, H), -1 for an unknown state.

    Shares are taken of all trajectories that go on so long, which in the paper are all n: `lengths` (n,) says how many
    steps each has, where they differ. Unknown labels can only lower nu and nu'.
    Data alone cannot tell a pair that is impossible from one that nobody happened to visit: only visited pairs
    count. In a known world `population_assumptions` speaks of all possible ones.

    Where one agent never takes a transition that another takes, eta is 0; where it also takes another
    transition out of that state, alpha is infinite there and so does not restrict.

    Paper: Equations 4-7
    """
    k, s = as_labels("agent", agent), as_labels("states", states)
    if k.ndim != 1 or s.ndim != 2 or len(k) != len(s) or len(k) == 0 or s.shape[1] < 2:
        raise InvalidDataError(
            "agent must be integers of shape (n,) and states integers of shape (n, H) with H >= 2; "
            f"shapes {k.shape} and {s.shape} were given."
        )
    if k.min() < 0 or s.min() < -1:
        raise InvalidDataError(
            f"Agents are numbered from 0 and states from 0, with -1 for unknown; {min(k.min(), s.min())} was given."
        )
    K = int(k.max()) + 1 if n_agents is None else n_agents
    if not (is_whole(K) and max(2, int(k.max()) + 1) <= K <= MAX_AGENTS):
        raise InvalidDataError(
            f"There must be at least two agents, numbered below n_agents; labels up to {int(k.max())} and n_agents = "
            f"{quoted(K)} were given; the assumptions compare agents."
        )
    n_steps = np.full(len(k), s.shape[1]) if lengths is None else as_labels("lengths", lengths)
    if n_steps.shape != k.shape or n_steps.min() < 1:
        raise InvalidDataError(
            f"lengths must be one integer of at least 1 for each of {len(k)} trajectories; {quoted(lengths)} was given."
        )
    going_on = np.arange(s.shape[1]) < n_steps[:, None]
    s, n = np.where(going_on, s, -1), np.maximum(going_on.sum(axis=0), 1)
    sizes, steps = np.maximum(s.max(axis=0) + 1, 1), range(1, s.shape[1])
    pairs = [count_visits(k, s[:, h - 1], s[:, h], sizes=(K, sizes[h - 1], sizes[h])) / n[h] for h in steps]
    singles = [count_visits(s_h, sizes=(size,)) / n_h for s_h, size, n_h in zip(s.T, sizes, n)]
    if not any(table.any() for table in pairs):
        raise InvalidDataError(
            "At least one pair of consecutive states must be visited; none is; give known states for h and h+1."
        )
    return _worst_case(Visits(pairs, [table.sum(axis=0) > 0 for table in pairs], singles, [x > 0 for x in singles]))


def population_assumptions(
    world: ExBMDP, policies: Sequence[MarkovPolicy], weights: Sequence[float] | None = None
) -> Assumptions:
    """The same for infinitely many trajectories of Markov policies in a known world.

    `weights` are the agents' shares of the trajectories, equal unless given. All pairs that the dynamics
    allow count, whether or not the policies visit them.

    Paper: Appendix D
    """
    return _worst_case(population_visits(world, policies, weights))


def population_visits(
    world: ExBMDP, policies: Sequence[MarkovPolicy], weights: Sequence[float] | None = None
) -> Visits:
    """The shares in the limit of many trajectories, by a forward recursion over the latent dynamics."""
    check_kind("policies", policies, (list, tuple), "a list with the policy of each agent")
    if len(policies) < 2 or not all(isinstance(policy, MarkovPolicy) for policy in policies):
        raise InvalidParameterError(
            "Population values need Markov policies of at least two agents; other policies have no finite "
            "description: collect data and use empirical_assumptions."
        )
    w = np.ones(len(policies)) if weights is None else as_array("weights", weights).astype(float)
    if w.shape != (len(policies),) or not (w > 0).all() or not np.isfinite(w.sum()):
        raise InvalidParameterError(
            f"weights must be one positive number per policy; {weights} was given for {len(policies)} policies."
        )
    check_tables(world)
    possible = [actions > 0 for actions in world.reachable_pairs()]
    occupancy = np.outer(w / w.sum(), np.arange(world.n_states(1)) == 0)
    visits = Visits([], possible, [occupancy.sum(axis=0)], reachable_states(world))
    for h in range(1, world.H):
        needed, tables = world.T(h).shape, list[Floats]()
        for policy in policies:
            tables.append(policy.pi(h))
            if tables[-1].shape != needed:
                raise InvalidParameterError(
                    f"A policy must have a table of shape {needed} for h = {h}; {tables[-1].shape} was given; build it "
                    "for this world."
                )
        leads_to = np.eye(world.n_states(h + 1))[world.T(h)]  # (|S_h|, |A|, |S_{h+1}|)
        visits.pairs.append(np.einsum("ksa,sat->kst", occupancy[:, :, None] * np.stack(tables), leads_to))
        occupancy = visits.pairs[-1].sum(axis=1)
        visits.singles.append(occupancy.sum(axis=0))
    return visits


def _worst_case(visits: Visits) -> Assumptions:
    """The first of the smallest of each, so that ties go to the earliest step.

    alpha: with d_k = ln(visits_k(s, s') / visits_k(s, s'')), two agents' disagreement on the successors s' and s'' is
    |d_i - d_j|, so the best pair of agents is the one with the largest and the smallest d. An agent that takes neither
    transition has no d and says nothing; where fewer than two agents speak, the successors are not told apart: 0.
    eta: the least visits_i / (visits_i + visits_j) over agents i, j, the rarest against the most frequent agent.
    """
    alpha, eta, nu, nu_prime = (list[Attained]() for _ in range(4))
    for h, (table, possible) in enumerate(zip(visits.pairs, visits.possible), start=1):
        nu += _smallest(table.sum(axis=0), possible, h)
        least, most = table.min(axis=0), table.max(axis=0)
        for worst in _smallest(least / np.where(most > 0, least + most, 1), most > 0, h):
            i, j = worst.states
            of = table[:, i, j]
            pair = (int(of.argmin()), int(of.argmax())) if of.min() < of.max() else (0, 1)
            eta.append(replace(worst, agents=pair))
        for s in range(table.shape[1]):
            succ = np.flatnonzero(table[:, s].sum(axis=0) > 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                log = np.log(table[:, s, succ])
                d = log[:, :, None] - log[:, None, :]  # (K, successors, successors)
                spread = np.nan_to_num(np.fmax.reduce(d) - np.fmin.reduce(d), nan=0.0, posinf=np.inf)
            for worst in _smallest(spread, np.triu(np.ones_like(spread, dtype=bool), k=1), h):
                i, j = worst.states
                of = d[:, i, j]
                order = np.argsort(of, kind="stable")[: np.count_nonzero(~np.isnan(of))].tolist()
                agents = (order[-1], order[0]) if len(order) >= 2 else ()
                alpha.append(Attained(worst.value, h, (s, int(succ[i]), int(succ[j])), agents))
    for h, (share, present) in enumerate(zip(visits.singles, visits.present), start=1):
        nu_prime += _smallest(share, present, h)
    found = ([*alpha, Attained(math.inf, None)], eta, nu, nu_prime)
    return Assumptions(*(min(each, key=lambda attained: attained.value) for each in found))


def _smallest(share: Floats, counts: Bools, h: int) -> list[Attained]:
    """The least entry of `share` among those that count, if any does."""
    where: list[int] = np.argwhere(counts)[share[counts].argmin()].tolist() if counts.any() else []
    return [Attained(float(share[tuple(where)]), h, tuple(where))] if where else []
