"""Agents: policies that see the latent history and never the noise, and pairs of them that differ in every state.

The paper asks only that actions be independent of the noise over both entire datasets: a policy may look at all latent
states so far, and may change from one episode to the next. CRAFT asks for agents that prefer different successors in
every state (alpha), while every possible pair of states is visited often (nu) and by both (eta): a base policy spreads
out as evenly as the dynamics allow, and each agent tilts it a little.

Paper: Section 2.4, Equation 1 (the noise-free policy property), Section 2.5 (coverage, policy diversity)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, check_number, is_whole, quoted
from craftrl.arrays import Floats, Ints
from craftrl.data.labels import as_array
from craftrl.envs.exbmdp import ExBMDP, check_seed, check_tables
from craftrl.errors import InvalidParameterError

DRAWS = 64  # orders of successors tried; the one with the best coverage is kept
JITTER = 0.3  # how far, in log-odds, an order departs from strict balancing


class Policy(ABC):
    """Action probabilities of many trajectories at once.

    A policy that learns from its earlier episodes sets `batch`: before each batch of so many episodes, `collect` calls
    `look_back` with the latent states of those before.
    """

    batch: int | None = None

    @abstractmethod
    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        """Pr(a_h | s*_1..s*_h) for each trajectory, shape (n, |A|).

        `history` has shape (n, h): the latent states so far, so h is its width. `episode` has shape (n,):
        which episode of the agent's this is, for policies that change over time.
        """

    def look_back(self, past: Ints) -> None:  # noqa: B027
        """Take note of the agent's earlier episodes, latent states of shape (m, H)."""


class MarkovPolicy(Policy):
    """pi(a | s*_h, h), from one table of shape (n_states(h), |A|) for each h in 1..H-1."""

    def __init__(self, tables: Sequence[ArrayLike]) -> None:
        check_kind("tables", tables, (list, tuple, np.ndarray), "a list with one table for each h in 1..H-1")
        if getattr(tables, "shape", (1,)) == () or not len(tables):
            raise InvalidParameterError("tables must hold one table for each h in 1..H-1; none was given.")
        self.tables = [np.asarray(as_array("tables", table), dtype=float) for table in tables]
        for h, table in enumerate(self.tables, start=1):
            if table.ndim != 2 or not table.size or (table < 0).any() or not np.allclose(table.sum(axis=1), 1):
                raise InvalidParameterError(
                    f"Each row of a policy's table must be a probability vector; that for h = {h} is not."
                )

    def pi(self, h: int) -> Floats:
        """The table for step h, shape (n_states(h), |A|)."""
        if not (is_whole(h) and 1 <= h <= len(self.tables)):
            raise InvalidParameterError(
                f"A policy must have a table for every step; h = {quoted(h)} was given, and there are "
                f"{len(self.tables)}, from h = 1; build it for this world."
            )
        return self.tables[h - 1]

    def probabilities(self, history: Ints, episode: Ints) -> Floats:
        h = history.shape[1]
        table, s_h = self.pi(h), history[:, -1]
        if s_h.size and s_h.max() >= len(table):
            raise InvalidParameterError(
                f"A policy must know every state; that for h = {h} has {len(table)} rows, and state {s_h.max()} was "
                "reached; build it for this world."
            )
        return table[s_h]


def check_contrast(alpha: Any) -> None:
    """How far apart agents are in log-odds: with 100, one of them never does what the other does."""
    check_number("alpha", alpha, "a positive number of at most 100", lambda a: 0 < a <= 100)


def choose_actions(policy: Policy, history: Ints, episode: Ints, n_actions: int, u: Floats) -> Ints:
    """The actions that a policy, which may be the caller's, takes where u (n,) is uniform on [0, 1)."""
    p = np.asarray(policy.probabilities(history, episode))
    if p.shape != (len(history), n_actions) or p.dtype.kind not in "biuf" or not np.isfinite(p).all():
        raise InvalidParameterError(
            f"A policy must give a probability for each action, shape ({len(history)}, {n_actions}); "
            f"{type(policy).__name__} gave {p.dtype} of shape {p.shape} at h = {history.shape[1]}; build it for this "
            "world."
        )
    return (u[:, None] >= np.cumsum(p[:, :-1], axis=1)).sum(axis=1)


def tilted(base: Floats, tilt: Floats) -> NDArray[np.float64]:
    """Probabilities proportional to base * exp(tilt), along the last axis; shapes as given.

    Of two agents with one base, the log-odds of two choices differ by as much as their tilts' differences do.
    """
    weight = base * np.exp(tilt)
    return weight / weight.sum(axis=-1, keepdims=True)


# -- contrasting agents -------------------------------------------------------------------------------------------


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
    check_seed(seed)
    check_kind("base", base, (MarkovPolicy, type(None)), "a MarkovPolicy or None")
    base = coverage_policy(world) if base is None else base
    rng = np.random.default_rng(seed)
    _, tables = max((_balanced_pair(world, float(alpha), base, rng) for _ in range(DRAWS)), key=lambda drawn: drawn[0])
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
    by_step = [np.argwhere(actions > 0) for actions in world.reachable_pairs()]  # for each h, (n_pairs, 2)
    n = np.array([len(pairs) for pairs in by_step])
    nu, step, (s, t) = int(n.sum()), np.repeat(np.arange(len(n)), n), np.concatenate(by_step).T
    most = max(s.max(), t.max()) + 1
    left, leaves = np.unique(step * most + s, return_inverse=True)  # a row for each state of each step but the last
    goes_on = step + 1 < len(n)
    enters = np.searchsorted(left, (step + 1) * most + t)[goes_on]
    rows, columns = np.r_[leaves, enters], np.r_[np.arange(nu), np.flatnonzero(goes_on)]
    conserve = csr_array((np.r_[np.ones(nu), -np.ones(len(enters))], (rows, columns)), shape=(len(left), nu + 1))
    i = np.arange(nu)  # the last variable, number nu, is the least flow itself
    above = csr_array((np.r_[-np.ones(nu), np.ones(nu)], (np.r_[i, i], np.r_[i, np.full(nu, nu)])), shape=(nu, nu + 1))
    start = np.eye(1, len(left))[0]
    solution = linprog(-np.eye(1, nu + 1, nu)[0], above, np.zeros(nu), conserve, start, method="highs")
    flows, tables = np.split(np.maximum(solution.x[:-1], 0), np.cumsum(n)[:-1]), []
    for h, (pairs, flow) in enumerate(zip(by_step, flows), start=1):
        weight = np.ones((world.n_states(h), world.n_states(h + 1)))
        weight[np.unique(pairs[:, 0])] = 0
        weight[tuple(pairs.T)] = flow
        table = shared_equally(weight, world.T(h))
        tables.append(table / table.sum(axis=1, keepdims=True))
    return MarkovPolicy(tables)


def shared_equally(successor: Floats, T: Ints) -> Floats:
    """The weight of each action in each state, (n, |A|), from that of each successor; actions that lead to the same one
    share it equally."""
    same = (T[:, :, None] == T[:, None, :]).sum(axis=2)
    return np.asarray(np.take_along_axis(successor, T, axis=1) / same)
