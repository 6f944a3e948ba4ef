"""alpha, eta, nu and nu': how different the agents are, and how well they cover the states.

The paper states its assumptions for the data at hand (`empirical_assumptions`) and sets the bounds of its own
experiment from the known world (`population_assumptions`). Both reduce to one table per step, the visits of
each agent to each pair of states, and one function that looks for the worst pair.

Paper: Section 2.4 (pi_emp), Equations 3-7, Appendix D
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.policies import MarkovPolicy
from craftrl.errors import InvalidDataError
from craftrl.theory.visits import Visits, empirical_visits, population_visits

__all__ = ["Assumptions", "Attained", "empirical_assumptions", "pi_emp", "population_assumptions"]

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]


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
        where = f"h = {self.h}, state {state}"
        if successors:
            where += " -> " + " | ".join(map(str, successors))
        if self.agents:
            where += ", agents " + " and ".join(map(str, self.agents))
        return f"{self.value:.6g} at {where}"


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
        return "\n".join(
            f"{name:<5} = {attained}"
            for name, attained in (
                ("alpha", self.alpha),
                ("eta", self.eta),
                ("nu", self.nu),
                ("nu'", self.nu_prime),
            )
        )


def empirical_assumptions(
    agent: ArrayLike,
    states: ArrayLike,
    *,
    n_agents: int | None = None,
    possible: Sequence[ArrayLike] | None = None,
) -> Assumptions:
    """alpha, eta, nu and nu' of labelled data: `agent` (n,) and `states` (n, H), -1 for an unknown state.

    Shares are taken of all n trajectories, as in the paper, so unknown labels can only lower nu and nu'.
    Data alone cannot tell a pair that is impossible from one that nobody happened to visit: only visited pairs
    count, unless `possible` (what `possible_pairs(world)` returns) names the others, which make nu zero.

    Where one agent never takes a transition that another takes, eta is 0; where it also takes another
    transition out of that state, alpha is infinite there and so does not restrict.

    Paper: Equations 4-7
    """
    return _worst_case(empirical_visits(agent, states, n_agents, possible))


def population_assumptions(
    world: ExBMDP, policies: Sequence[MarkovPolicy], weights: Sequence[float] | None = None
) -> Assumptions:
    """The same for infinitely many trajectories of Markov policies in a known world.

    `weights` are the agents' shares of the trajectories, equal unless given. All pairs that the dynamics
    allow count, whether or not the policies visit them.

    Paper: Appendix D
    """
    return _worst_case(population_visits(world, policies, weights))


def pi_emp(agent: ArrayLike, states: ArrayLike, *, n_agents: int | None = None) -> list[Floats]:
    """pi^emp_k(s_{h+1} | s_h): entry h-1 has shape (K, |S_h|, |S_{h+1}|); NaN where agent k never is in s_h.

    Paper: Equation 3
    """
    pairs = empirical_visits(agent, states, n_agents).pairs
    with np.errstate(invalid="ignore"):
        return [visits / visits.sum(axis=2, keepdims=True) for visits in pairs]


def _worst_case(visits: Visits) -> Assumptions:
    pairs = list(enumerate(visits.pairs, start=1))
    seen = [(table.sum(axis=0) > 0) for _, table in pairs]
    if not any(table.any() for table in seen):
        raise InvalidDataError(
            "At least one pair of consecutive states must be visited; none is; give known states for h and h+1."
        )
    return Assumptions(
        alpha=_least(_alphas(pairs), Attained(math.inf, None)),
        eta=_least(_eta(h, table, seen[h - 1]) for h, table in pairs),
        nu=_least(_smallest(table.sum(axis=0), visits.possible[h - 1], h) for h, table in pairs),
        nu_prime=_least(
            _smallest(share, present, h)
            for h, (share, present) in enumerate(zip(visits.singles, visits.present), start=1)
        ),
    )


def _alphas(pairs: list[tuple[int, Floats]]) -> Iterable[Attained]:
    for h, table in pairs:
        for s in range(table.shape[1]):
            succ = np.flatnonzero(table[:, s].sum(axis=0) > 0)
            if len(succ) >= 2:
                yield _alpha(h, s, succ, table[:, s, succ])


def _alpha(h: int, s: int, succ: NDArray[np.integer], visits: Floats) -> Attained:
    """The two successors of s on whose log-odds the agents disagree least; `visits` is (K, len(succ)).

    With d_k = ln(visits_k(s, s') / visits_k(s, s'')), two agents' disagreement is |d_i - d_j|, so the best
    pair of agents is the one with the largest and the smallest d. An agent that takes neither transition has
    no d and says nothing; where fewer than two agents speak, the successors are not told apart at all: 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(visits)
        d = log[:, :, None] - log[:, None, :]
        spread = np.fmax.reduce(d) - np.fmin.reduce(d)
    spread = np.nan_to_num(spread, nan=0.0, posinf=np.inf)
    left, right = np.triu_indices(len(succ), k=1)
    worst = int(spread[left, right].argmin())
    a, b = int(left[worst]), int(right[worst])
    speaks = np.flatnonzero(~np.isnan(d[:, a, b]))
    order = speaks[np.argsort(d[speaks, a, b], kind="stable")]
    agents = (int(order[-1]), int(order[0])) if len(order) >= 2 else ()
    return Attained(float(spread[a, b]), h, (s, int(succ[a]), int(succ[b])), agents)


def _eta(h: int, table: Floats, seen: Bools) -> Attained | None:
    """The least visits_i / (visits_i + visits_j) over agents i, j: rarest against most frequent agent."""
    if not seen.any():
        return None
    least, most = table.min(axis=0), table.max(axis=0)
    share = np.where(seen, least / np.where(seen, least + most, 1), np.inf)
    s, s_next = np.unravel_index(share.argmin(), share.shape)
    visits = table[:, s, s_next]
    agents = (int(visits.argmin()), int(visits.argmax())) if visits.min() < visits.max() else (0, 1)
    return Attained(float(share[s, s_next]), h, (int(s), int(s_next)), agents)


def _smallest(share: Floats, counts: Bools, h: int) -> Attained | None:
    """The least entry of `share` among those that count."""
    if not counts.any():
        return None
    at = np.unravel_index(np.where(counts, share, np.inf).argmin(), share.shape)
    return Attained(float(share[at]), h, tuple(int(s) for s in at))


def _least(candidates: Iterable[Attained | None], otherwise: Attained | None = None) -> Attained:
    """The first of the smallest, so that ties go to the earliest step."""
    found = [candidate for candidate in candidates if candidate is not None]
    if not found:
        assert otherwise is not None
        return otherwise
    return min(found, key=lambda attained: attained.value)
