"""alpha, eta, nu and nu': how different the agents are, and how well they cover the states.

The paper states its assumptions for the data at hand (`empirical_assumptions`) and sets the bounds of its own
experiment from the known world (`population_assumptions`). Both reduce to one table per step, the visits of
each agent to each pair of states, and one search for the worst pair.

Paper: Section 2.4 (pi_emp), Equations 3-7, Appendix D
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, check_whole, shown
from craftrl.data.labels import as_array, as_labels
from craftrl.envs.exbmdp import ExBMDP, check_tables, reachable_states
from craftrl.envs.policies import MarkovPolicy
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.states.visits import count_visits

__all__ = ["Assumptions", "Attained", "empirical_assumptions", "population_assumptions", "possible_pairs"]

Ints = NDArray[np.int64]
Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]
MOST_AGENTS = 10**6


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
        named = zip(("alpha", "eta", "nu", "nu'"), (self.alpha, self.eta, self.nu, self.nu_prime))
        return "\n".join(f"{name:<5} = {attained}" for name, attained in named)


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
    agent: ArrayLike,
    states: ArrayLike,
    *,
    n_agents: int | None = None,
    possible: Sequence[ArrayLike] | None = None,
    lengths: ArrayLike | None = None,
) -> Assumptions:
    """alpha, eta, nu and nu' of labelled data: `agent` (n,) and `states` (n, H), -1 for an unknown state.

    Shares are taken of all trajectories that go on so long, which in the paper are all n: `lengths` (n,) says how many
    steps each has, where they differ. Unknown labels can only lower nu and nu'.
    Data alone cannot tell a pair that is impossible from one that nobody happened to visit: only visited pairs
    count, unless `possible` (what `possible_pairs(world)` returns) names the others, which make nu zero.

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
    if n_agents is not None:
        check_whole("n_agents", n_agents, 2, MOST_AGENTS)
    K = int(k.max()) + 1 if n_agents is None else int(n_agents)
    if K < 2 or k.max() >= K:
        raise InvalidDataError(
            f"There must be at least two agents, numbered below n_agents; labels up to {int(k.max())} and "
            f"n_agents = {K} were given; the assumptions compare agents."
        )
    n_steps = np.full(len(k), s.shape[1]) if lengths is None else as_labels("lengths", lengths)
    if n_steps.shape != k.shape or n_steps.min() < 1:
        raise InvalidDataError(
            f"lengths must be one integer of at least 1 for each of {len(k)} trajectories; {shown(lengths)} was given."
        )
    present = np.arange(s.shape[1]) < n_steps[:, None]
    allowed = None if possible is None else _allowed(possible, s.shape[1])
    return _worst_case(_counted(k, np.where(present, s, -1), K, allowed, present.sum(axis=0)))


def population_assumptions(
    world: ExBMDP, policies: Sequence[MarkovPolicy], weights: Sequence[float] | None = None
) -> Assumptions:
    """The same for infinitely many trajectories of Markov policies in a known world.

    `weights` are the agents' shares of the trajectories, equal unless given. All pairs that the dynamics
    allow count, whether or not the policies visit them.

    Paper: Appendix D
    """
    return _worst_case(population_visits(world, policies, weights))


def possible_pairs(world: ExBMDP) -> list[Bools]:
    """Which pairs (s_h, s_{h+1}) the dynamics allow, s_h being reachable: entry h-1 is for h in 1..H-1.

    Paper: Section 2.5
    """
    check_tables(world)
    return [actions > 0 for actions in world.reachable_pairs()]


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
    possible = possible_pairs(world)
    occupancy = np.zeros((len(policies), world.n_states(1)))
    occupancy[:, 0] = w / w.sum()
    pairs, singles = [], [occupancy.sum(axis=0)]
    for h in range(1, world.H):
        taken = occupancy[:, :, None] * np.stack([_table(policy, world, h) for policy in policies])
        leads_to = np.eye(world.n_states(h + 1))[world.T(h)]  # (|S_h|, |A|, |S_{h+1}|)
        pairs.append(np.einsum("ksa,sat->kst", taken, leads_to))
        occupancy = pairs[-1].sum(axis=1)
        singles.append(occupancy.sum(axis=0))
    return Visits(pairs, possible, singles, reachable_states(world))


def _table(policy: MarkovPolicy, world: ExBMDP, h: int) -> Floats:
    """pi(a | s_h), checked to be one of this world's."""
    given = policy.pi(h) if len(policy.tables) >= h else None
    needed = world.T(h).shape
    if given is None or given.shape != needed:
        raise InvalidParameterError(
            f"A policy must have a table of shape {needed} for h = {h}; {'none' if given is None else given.shape} "
            "was given; build it for this world."
        )
    return given


def _allowed(possible: Sequence[ArrayLike], H: int) -> list[Bools]:
    check_kind("possible", possible, (list, tuple), "a list of tables, as possible_pairs(world) returns")
    allowed = [as_array("possible", table).astype(bool) for table in possible]
    if len(allowed) != H - 1 or any(table.ndim != 2 for table in allowed):
        raise InvalidDataError(
            f"possible must hold one table (|S_h|, |S_h+1|) for each h in 1..{H - 1}; {len(allowed)} were given; "
            "use possible_pairs(world)."
        )
    return allowed


def _counted(k: Ints, s: Ints, K: int, allowed: list[Bools] | None, n: Ints) -> Visits:
    """Visits counted from labels, of the n[h-1] trajectories that have a step h; a state of -1 counts nowhere."""
    H, n = s.shape[1], np.maximum(n, 1)
    sizes = [max(int(s_h.max()) + 1, 1) for s_h in s.T]
    if allowed is not None:
        named = [len(table) for table in allowed] + [allowed[-1].shape[1]]
        sizes = [max(size, n_states) for size, n_states in zip(sizes, named)]
    pairs = [count_visits(k, s[:, h - 1], s[:, h], sizes=(K, sizes[h - 1], sizes[h])) / n[h] for h in range(1, H)]
    singles = [count_visits(s_h, sizes=(size,)) / n_h for s_h, size, n_h in zip(s.T, sizes, n)]
    possible = [table.sum(axis=0) > 0 for table in pairs]
    present = [share > 0 for share in singles]
    for h, table in enumerate(allowed or [], start=1):
        possible[h - 1][: table.shape[0], : table.shape[1]] |= table
        present[h - 1] |= possible[h - 1].any(axis=1)
        present[h] |= possible[h - 1].any(axis=0)
    return Visits(pairs, possible, singles, present)


def _worst_case(visits: Visits) -> Assumptions:
    pairs = list(enumerate(visits.pairs, start=1))
    if not any(table.any() for _, table in pairs):
        raise InvalidDataError(
            "At least one pair of consecutive states must be visited; none is; give known states for h and h+1."
        )
    singles = enumerate(zip(visits.singles, visits.present), start=1)
    return Assumptions(
        alpha=_least([*_alphas(pairs), Attained(math.inf, None)]),
        eta=_least(_eta(h, table) for h, table in pairs),
        nu=_least(_smallest(table.sum(axis=0), visits.possible[h - 1], h) for h, table in pairs),
        nu_prime=_least(_smallest(share, present, h) for h, (share, present) in singles),
    )


def _alphas(pairs: list[tuple[int, Floats]]) -> Iterable[Attained]:
    """For each state, the two successors on whose log-odds the agents disagree least.

    With d_k = ln(visits_k(s, s') / visits_k(s, s'')), two agents' disagreement is |d_i - d_j|, so the best
    pair of agents is the one with the largest and the smallest d. An agent that takes neither transition has
    no d and says nothing; where fewer than two agents speak, the successors are not told apart at all: 0.
    """
    for h, table in pairs:
        for s in range(table.shape[1]):
            succ = np.flatnonzero(table[:, s].sum(axis=0) > 0)
            if len(succ) < 2:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                log = np.log(table[:, s, succ])
                d = log[:, :, None] - log[:, None, :]  # (K, successors, successors)
                spread = np.nan_to_num(np.fmax.reduce(d) - np.fmin.reduce(d), nan=0.0, posinf=np.inf)
            left, right = np.triu_indices(len(succ), k=1)
            worst = int(spread[left, right].argmin())
            a, b = int(left[worst]), int(right[worst])
            speaks = np.flatnonzero(~np.isnan(d[:, a, b]))
            order = speaks[np.argsort(d[speaks, a, b], kind="stable")]
            agents = (int(order[-1]), int(order[0])) if len(order) >= 2 else ()
            yield Attained(float(spread[a, b]), h, (s, int(succ[a]), int(succ[b])), agents)


def _eta(h: int, table: Floats) -> Attained | None:
    """The least visits_i / (visits_i + visits_j) over agents i, j: rarest against most frequent agent."""
    least, most = table.min(axis=0), table.max(axis=0)
    seen = most > 0
    found = _smallest(least / np.where(seen, least + most, 1), seen, h)
    if found is None:
        return None
    s, s_next = found.states
    visits = table[:, s, s_next]
    agents = (int(visits.argmin()), int(visits.argmax())) if visits.min() < visits.max() else (0, 1)
    return Attained(found.value, h, found.states, agents)


def _smallest(share: Floats, counts: Bools, h: int) -> Attained | None:
    """The least entry of `share` among those that count."""
    if not counts.any():
        return None
    at = np.unravel_index(np.where(counts, share, np.inf).argmin(), share.shape)
    return Attained(float(share[at]), h, tuple(int(s) for s in at))


def _least(candidates: Iterable[Attained | None]) -> Attained:
    """The first of the smallest, so that ties go to the earliest step."""
    return min((candidate for candidate in candidates if candidate is not None), key=lambda attained: attained.value)
