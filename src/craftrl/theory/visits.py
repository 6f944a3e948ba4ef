"""How often each agent visits each pair of latent states: counted from labels, or computed from a world.

Paper: Sections 2.3, 2.5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import check_kind, check_whole
from craftrl.data.labels import as_array, as_labels
from craftrl.envs.exbmdp import ExBMDP, check_tables, reachable_states
from craftrl.envs.policies import MarkovPolicy
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.states.visits import count_visits

__all__ = ["Visits", "empirical_visits", "population_visits", "possible_pairs"]

Ints = NDArray[np.int64]
Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]
MOST_AGENTS = 10**6


@dataclass(frozen=True)
class Visits:
    """Visits as shares of all trajectories; lists over h, entry h-1 belonging to h.

    pairs     |D*_k(s_h, s_{h+1})| / |tau| for each agent k, shape (K, |S_h|, |S_{h+1}|), for h in 1..H-1
    possible  the pairs that the coverage assumption speaks of, shape (|S_h|, |S_{h+1}|)
    singles   |D*(s_h)| / |tau|, shape (|S_h|,), for h in 1..H
    present   the states that nu' speaks of, shape (|S_h|,)
    """

    pairs: list[Floats]
    possible: list[Bools]
    singles: list[Floats]
    present: list[Bools]


def possible_pairs(world: ExBMDP) -> list[Bools]:
    """Which pairs (s_h, s_{h+1}) the dynamics allow, s_h being reachable: entry h-1 is for h in 1..H-1.

    Paper: Section 2.5
    """
    check_tables(world)
    return [actions > 0 for actions in world.reachable_pairs()]


def empirical_visits(
    agent: ArrayLike,
    states: ArrayLike,
    n_agents: int | None = None,
    possible: Sequence[ArrayLike] | None = None,
) -> Visits:
    """Visits counted from `agent` (n,) and `states` (n, H); a state of -1 is unknown and counts nowhere."""
    k, s = _checked(agent, states)
    if n_agents is not None:
        check_whole("n_agents", n_agents, 2, MOST_AGENTS)
    K = int(k.max()) + 1 if n_agents is None else int(n_agents)
    if K < 2 or k.max() >= K:
        raise InvalidDataError(
            f"There must be at least two agents, numbered below n_agents; labels up to {int(k.max())} and "
            f"n_agents = {K} were given; the assumptions compare agents."
        )
    n, H = s.shape
    allowed = _allowed(possible, H)
    sizes = [max(int(s[:, h - 1].max()) + 1, 1) for h in range(1, H + 1)]
    if allowed is not None:
        named = [len(table) for table in allowed] + [allowed[-1].shape[1]]
        sizes = [max(size, n_states) for size, n_states in zip(sizes, named)]
    pairs = [count_visits(k, s[:, h - 1], s[:, h], sizes=(K, sizes[h - 1], sizes[h])) / n for h in range(1, H)]
    singles = [count_visits(s_h, sizes=(size,)) / n for s_h, size in zip(s.T, sizes)]
    counting = [table.sum(axis=0) > 0 for table in pairs]
    present = [share > 0 for share in singles]
    for h, table in enumerate(allowed or [], start=1):
        counting[h - 1][: table.shape[0], : table.shape[1]] |= table
        present[h - 1] |= counting[h - 1].any(axis=1)
        present[h] |= counting[h - 1].any(axis=0)
    return Visits(pairs, counting, singles, present)


def population_visits(
    world: ExBMDP, policies: Sequence[MarkovPolicy], weights: Sequence[float] | None = None
) -> Visits:
    """The shares in the limit of many trajectories, by a forward recursion over the latent dynamics."""
    check_tables(world)
    w = _shares(policies, weights)
    occupancy = np.zeros((len(policies), world.n_states(1)))
    occupancy[:, 0] = w
    pairs, singles = [], [occupancy.sum(axis=0)]
    for h in range(1, world.H):
        taken = occupancy[:, :, None] * np.stack([_table(policy, world, h) for policy in policies])
        leads_to = np.eye(world.n_states(h + 1))[world.T(h)]  # (|S_h|, |A|, |S_{h+1}|)
        pairs.append(np.einsum("ksa,sat->kst", taken, leads_to))
        occupancy = pairs[-1].sum(axis=1)
        singles.append(occupancy.sum(axis=0))
    return Visits(pairs, possible_pairs(world), singles, reachable_states(world))


def _allowed(possible: Sequence[ArrayLike] | None, H: int) -> list[Bools] | None:
    if possible is None:
        return None
    check_kind("possible", possible, (list, tuple), "a list of tables, as possible_pairs(world) returns")
    allowed = [as_array("possible", table).astype(bool) for table in possible]
    if len(allowed) != H - 1 or any(table.ndim != 2 for table in allowed):
        raise InvalidDataError(
            f"possible must hold one table (|S_h|, |S_h+1|) for each h in 1..{H - 1}; {len(allowed)} were given; "
            "use possible_pairs(world)."
        )
    return allowed


def _checked(agent: ArrayLike, states: ArrayLike) -> tuple[Ints, Ints]:
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
    return k, s


def _table(policy: MarkovPolicy, world: ExBMDP, h: int) -> Floats:
    """pi(a | s_h), checked to be one of this world's."""
    steps, needed = len(policy.tables), world.T(h).shape
    if steps < h or policy.pi(h).shape != needed:
        given = policy.pi(h).shape if steps >= h else "none"
        raise InvalidParameterError(
            f"A policy must have a table of shape {needed} for h = {h}; {given} was given; build it for this world."
        )
    return policy.pi(h)


def _shares(policies: Sequence[MarkovPolicy], weights: Sequence[float] | None) -> Floats:
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
    return w / w.sum()
