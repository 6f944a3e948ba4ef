"""Policies for any world: one that covers it, and agents that differ from it and from one another.

CRAFT asks for agents that prefer different successors in every state (alpha), while every possible pair of
states is visited often (nu) and by both agents (eta). So a base policy spreads out as evenly as the dynamics
allow, and each agent tilts it a little.

Paper: Section 2.5 (coverage, policy diversity)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind
from craftrl.envs.exbmdp import ExBMDP, Ints, check_tables
from craftrl.envs.numbers import check_contrast, check_seed
from craftrl.envs.policies import MarkovPolicy, tilted

Floats = NDArray[np.floating]

DRAWS = 64  # orders of successors tried; the one with the best coverage is kept
JITTER = 0.3  # how far, in log-odds, an order departs from strict balancing

__all__ = ["contrasting_policies", "coverage_policy", "successor_ranks"]


def contrasting_policies(
    world: ExBMDP, alpha: float = 1.0, base: MarkovPolicy | None = None, seed: int = 0
) -> tuple[MarkovPolicy, MarkovPolicy]:
    """Two agents whose log-odds of any two successors of a state are at least alpha apart, in every state.

    The successors of a state get ranks one apart about 0. Agent A chooses a successor with probability
    proportional to base * exp(alpha rank / 2), agent B with exp(-alpha rank / 2). Several actions may lead to
    one successor, as moves into walls do: they share its rank, for only the successor is ever seen. High ranks
    go to successors that A has visited less than B so far, up to a little chance, and of some such draws
    the one is kept in which the rarest pair of states is visited most, counted for the agent that visits
    it less. `base` is `coverage_policy(world)` unless given.

    Paper: Equation 5 (alpha)
    """
    check_tables(world)
    check_contrast(alpha)
    alpha = float(alpha)
    check_seed(seed)
    check_kind("base", base, (MarkovPolicy, type(None)), "a MarkovPolicy or None")
    base = coverage_policy(world) if base is None else base
    rng = np.random.default_rng(seed)
    drawn = [_balanced_pair(world, alpha, base, rng) for _ in range(DRAWS)]
    _, tables = max(drawn, key=lambda draw: draw[0])
    return MarkovPolicy([pi[0] for pi in tables]), MarkovPolicy([pi[1] for pi in tables])


def _balanced_pair(
    world: ExBMDP, alpha: float, base: MarkovPolicy, rng: np.random.Generator
) -> tuple[float, list[Floats]]:
    """One draw: the least visited pair's share, and both agents' tables for each h, (2, n_states(h), |A|)."""
    least, tables = 1.0, []
    visits = np.ones((2, 1))  # Pr(s_h) for each agent
    for h in range(1, world.H):
        T, pi = world.T(h), np.repeat(base.pi(h)[None], 2, axis=0)
        pairs = np.zeros((2, world.n_states(h), world.n_states(h + 1)))  # Pr(s_h, s_{h+1})
        for s in np.argsort(-visits.sum(axis=0), kind="stable"):
            arrived = pairs.sum(axis=1) + 1e-3
            behind = np.log(arrived[1] / arrived[0]) + JITTER * rng.standard_normal(arrived.shape[1])
            for k, sign in enumerate((1, -1)):
                pi[k, s] = tilted(base.pi(h)[s], sign * alpha / 2 * successor_ranks(T[s], behind))
                np.add.at(pairs[k, s], T[s], visits[k, s] * pi[k, s])
        least = min(least, pairs[pairs > 0].min())
        tables.append(pi)
        visits = pairs.sum(axis=1)
    return least, tables


def successor_ranks(successor: Ints, preference: Floats) -> Floats:
    """The rank of each action's successor, shape (|A|,): one apart, centred about 0, the most preferred highest.

    `successor` (|A|,) is one row of T, and `preference` has one entry for each state at h+1; equal ones rank by
    number. Actions with one successor share its rank.
    """
    found, which = np.unique(successor, return_inverse=True)
    rank = np.empty(len(found))
    rank[np.argsort(preference[found], kind="stable")] = np.arange(len(found)) - (len(found) - 1) / 2
    return rank[which]


def coverage_policy(world: ExBMDP) -> MarkovPolicy:
    """The policy whose rarest pair of states (s*_h, s*_{h+1}) is visited most often: the greatest nu.

    A linear programme over the flow Pr(s*_h, s*_{h+1}) through the layered graph of T: flow in equals flow
    out, and the least flow on any possible edge is as large as it can be. For comparison, nu of uniformly
    random play falls like |A|^-H in worlds where some state is far from the start.

    Paper: Equation 4 (nu)
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    check_tables(world)
    edges = [np.argwhere(actions > 0) for actions in world.reachable_pairs()]  # for each h, (n_pairs, 2)
    first = np.cumsum([0, *(len(e) for e in edges)])
    nu = int(first[-1])  # the last variable is the least flow itself
    rows: list[tuple[int, int, float]] = [(0, i, 1.0) for i in range(first[1])]
    n_rows = 1
    for h in range(2, world.H):
        before, after = edges[h - 2], edges[h - 1]
        for s in np.unique(after[:, 0]):
            rows += [(n_rows, first[h - 2] + i, -1.0) for i in np.flatnonzero(before[:, 1] == s)]
            rows += [(n_rows, first[h - 1] + i, 1.0) for i in np.flatnonzero(after[:, 0] == s)]
            n_rows += 1
    r, c, v = zip(*rows)
    conserve = csr_array((v, (r, c)), shape=(n_rows, nu + 1))
    i = np.arange(nu)
    above = csr_array((np.r_[-np.ones(nu), np.ones(nu)], (np.r_[i, i], np.r_[i, np.full(nu, nu)])), shape=(nu, nu + 1))
    start = np.eye(1, n_rows)[0]
    solution = linprog(-np.eye(1, nu + 1, nu)[0], above, np.zeros(nu), conserve, start, method="highs")
    flows = np.split(np.maximum(solution.x[:-1], 0), first[1:-1])
    return MarkovPolicy([_from_flow(world, h, e, x) for h, (e, x) in enumerate(zip(edges, flows), start=1)])


def _from_flow(world: ExBMDP, h: int, edges: Ints, flow: Floats) -> Floats:
    """pi(a | s) with Pr(s' | s) in proportion to the flow; actions with one successor share it equally."""
    T = world.T(h)
    weight = np.ones((world.n_states(h), world.n_states(h + 1)))
    weight[np.unique(edges[:, 0])] = 0
    weight[edges[:, 0], edges[:, 1]] = flow
    same = (T[:, :, None] == T[:, None, :]).sum(axis=2)
    table = np.take_along_axis(weight, T, axis=1) / same
    return table / table.sum(axis=1, keepdims=True)
