"""Latent actions: numbers that moves of different states share, from how often each agent makes each move.

A move is a pair of states, one following the other. Where the world is deterministic, the successor names the action
within a state; where actions slip, the agents' different habits tell their effects apart (see factoring.py).
Which moves of different states are one action is another question, and the counts alone cannot answer it
(`craftrl.planning.ties`). So names come with groups: within a group one relabelling makes all names right, between
groups nothing is claimed. What the answer rests on is in `conditions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from craftrl.arguments import check_flag, check_kind, check_whole, shown
from craftrl.core.relabelling import best_matching
from craftrl.data.labels import as_array, as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.evaluation import count_visits
from craftrl.planning.effects import Condition, Effects, deterministic_effects, factored_effects
from craftrl.planning.naming import Names, name_moves, with_stay
from craftrl.planning.ties import by_commuting, by_vectors

__all__ = [
    "Agreement",
    "Condition",
    "LatentActions",
    "accuracy_by_group",
    "agreement",
    "ceiling",
    "find_latent_actions",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ACTIONS = 1000
CLEAR = 0.9  # how likely one latent action must be for a move to be clearly its
MOST_COUNTED = 2**53  # up to there floats are exact


@dataclass(frozen=True)
class LatentActions:
    """A small set of actions behind the moves of N states.

    n           how many
    edges       (E, 2) the moves, state and successor, sorted
    share       (E, n) Pr(successor | state, latent action). For each state and latent action they sum to 1 over the
                state's moves, or are all 0 where it is not known what that action does there
    posterior   (E, n) Pr(latent action | move)
    policies    (K, N, n) Pr(latent action | state) for each agent; NaN where it never left that state. Actions that
                share a move share its probability equally
    consistent  (N,) the group of each state, the largest group first: names agree within a group up to one permutation
    conditions  what the answer rests on: did it hold, and where not
    """

    n: int
    edges: Ints
    share: Floats
    posterior: Floats
    policies: Floats
    consistent: Ints
    conditions: tuple[Condition, ...]

    @property
    def n_states(self) -> int:
        return len(self.consistent)

    def of_moves(self, s: ArrayLike, t: ArrayLike) -> Ints:
        """The most likely latent action of moves s -> t, each (m,); -1 where that move is not known."""
        place = self._places(s, t)
        return np.where(place >= 0, self.posterior.argmax(axis=1)[place], -1) if len(self.edges) else place

    def certainty(self, s: ArrayLike, t: ArrayLike) -> Floats:
        """How likely the latent action of `of_moves` is, (m,); below 1 for a move that several make, 0 if unknown."""
        place = self._places(s, t)
        likely = np.zeros(len(place))
        likely[place >= 0] = self.posterior.max(axis=1, initial=0)[place[place >= 0]]
        return likely

    def _places(self, s: ArrayLike, t: ArrayLike) -> Ints:
        """The rows of moves in `edges`, -1 for those that are not there."""
        start, end = as_labels("s", s, 1), as_labels("t", t, 1)
        if start.shape != end.shape:
            raise InvalidDataError(f"There must be one t per s; {start.size} and {end.size} were given.")
        N = self.n_states
        inside = (start >= 0) & (end >= 0) & (start < N) & (end < N)
        key, keys = np.where(inside, start * N + end, -1), self.edges[:, 0] * N + self.edges[:, 1]
        place = np.searchsorted(keys, key)
        found = place < len(keys)
        found[found] = keys[place[found]] == key[found]
        return np.where(found, place, -1)

    def __str__(self) -> str:
        sizes = np.bincount(self.consistent)
        head = f"{self.n} latent actions, {len(self.edges)} moves, {self.n_states} states in {len(sizes)} groups"
        return "\n".join([head, *(str(condition) for condition in self.conditions)])


def find_latent_actions(
    counts: Sequence[Any],
    *,
    n: int | Literal["auto"] = "auto",
    deterministic: bool | Literal["auto"] = "auto",
    features: ArrayLike | None = None,
    same_habits: bool = False,
    staying: bool = False,
    seed: int = 0,
) -> LatentActions:
    """Latent actions from counts of moves: one (N, N) matrix per agent, sparse or not.

    n              how many latent actions there are; "auto": as few as the moves need, which is the largest number of
                   successors of a state, or the largest rank where actions slip
    deterministic  whether an action has one successor in a state. "auto": yes, unless n is given and some state has
                   more successors. Without n it cannot be told: a world with as many actions as successors makes
                   any counts
    features       (E, d) numbers of each move, in the order of `edges` (sorted by state, then successor), that one
                   action has in every state, such as the change of a position
    same_habits    whether every agent takes each action with the same probability in every state. Counts can speak
                   against it, never for it: habits that are shuffled from state to state look the same
    staying        whether staying in place is an action of its own that every state has, as in games where one may do
                   nothing; else a move to the same state is a bump, which any action may make
    seed           of the random starts
    """
    tables = _checked_counts(counts)
    _check_options(n, deterministic, seed, same_habits=same_habits, staying=staying)
    edges, by_agent = _edges(tables)
    given = _checked_features(features, len(edges))
    N, degree = tables[0].shape[0], np.bincount(edges[:, 0], minlength=1)
    slips = deterministic is False or (deterministic == "auto" and n != "auto" and int(degree.max(initial=0)) > n)
    most = None if n == "auto" else int(n)
    if slips:
        effects = factored_effects(edges, by_agent, N, most, np.random.default_rng(seed))
    else:
        effects = deterministic_effects(edges, by_agent, N, most, staying)
    names, conditions = _named(effects, given, same_habits, staying, seed)
    return _assembled(effects, names, (*effects.conditions, *conditions))


def _named(
    effects: Effects, features: Floats | None, same_habits: bool, staying: bool, seed: int
) -> tuple[Names, list[Condition]]:
    """Names of the usual moves of all states, by all ties there are, and what they rest on."""
    found, n = effects.successors, effects.n
    if staying and n > 1:
        found, n = [tuple(t for t in usual if t != s) for s, usual in enumerate(found)], n - 1
    ties, moves = {"moves commute": by_commuting(found, n)}, effects.usual_moves()
    if features is not None:
        ties["features"] = by_vectors(moves, effects.expected(features), n, "features", seed)
    if same_habits:
        ties["same habits"] = by_vectors(moves, np.sqrt(effects.habits()), n, "agents' habits", seed)
    names = name_moves(found, [pair for tie in ties.values() for pair in tie.pairs], n)
    if n < effects.n:
        names = with_stay(names, [s for s, usual in enumerate(effects.successors) if s in usual], effects.n)
    said = [Condition(name, tie.holds, tie.where, tie.sentence) for name, tie in ties.items()]
    return names, [*said, _one_permutation(names, effects)]


def _one_permutation(names: Names, effects: Effects) -> Condition:
    """Whether names agree over all states."""
    left = np.array([bool(found) for found in effects.successors])
    sizes = np.bincount(names.group[left], minlength=1)
    apart = np.flatnonzero(left & (names.group != sizes.argmax()))
    said = (
        f"Names agree in {len(np.flatnonzero(sizes))} groups of states, the largest of {sizes.max()} of {left.sum()}."
    )
    if names.contradicting:
        said += f" Ties of {len(names.contradicting)} states contradict one another and were left out."
    return Condition("one permutation", not len(apart), tuple(apart.tolist()), said)


def _assembled(effects: Effects, names: Names, conditions: tuple[Condition, ...]) -> LatentActions:
    n, N, K = effects.n, len(names.group), len(effects.visits)
    share = np.zeros((len(effects.edges), n))
    weight = np.zeros((len(effects.edges), n))
    policies = np.full((K, N, n), np.nan)
    for local in effects.states:
        seen = effects.visits[:, local.state] > 0
        policies[seen, local.state] = 0.0
        usual = [int(t) for t in effects.edges[local.moves[local.share.argmax(axis=1)], 1]]
        called = names.of[local.state]
        for i, t in enumerate(usual):
            mine = called.get(t, (i,)) if effects.successors[local.state] else (i,)
            for a in mine:
                share[local.moves, a] = local.share[i]
                policies[seen, local.state, a] = local.policies[seen, i] / len(mine)
                often = effects.visits[seen, local.state] @ local.policies[seen, i]
                weight[local.moves, a] = often / len(mine) * local.share[i]
    posterior = weight / weight.sum(axis=1, keepdims=True)
    return LatentActions(n, effects.edges, share, posterior, policies, names.group, conditions)


def _checked_counts(counts: Any) -> list[csr_array]:
    check_kind("counts", counts, (list, tuple, np.ndarray), "a list with one matrix of counts per agent")
    tables = () if isinstance(counts, np.ndarray) and not counts.ndim else counts
    given = [table if issparse(table) else as_array("counts", table) for table in tables]
    shapes = [tuple(table.shape) for table in given]
    if not given or any(len(shape) != 2 or shape[0] < 1 or shape != (shapes[0][0],) * 2 for shape in shapes):
        raise InvalidDataError(
            f"counts must be square matrices of one size, one per agent and of one state or more; shapes "
            f"{shown(shapes)} were given."
        )
    checked = [csr_array(table) for table in given]
    if not all(table.dtype.kind in "biuf" and _can_be_counts(table.data) for table in checked):
        raise InvalidDataError("counts must be numbers of 0 or more, up to 2**53; others were given; count moves.")
    return checked


def _can_be_counts(numbers: NDArray[Any]) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers >= 0).all() and (numbers <= MOST_COUNTED).all())


def _check_options(n: Any, deterministic: Any, seed: Any, **flags: Any) -> None:
    if not (isinstance(n, str) and n == "auto"):
        check_whole("n", n, 1, MOST_ACTIONS, "or give 'auto'")
    if not (isinstance(deterministic, str) and deterministic == "auto"):
        check_flag("deterministic", deterministic, "or give 'auto'")
    for name, value in flags.items():
        check_flag(name, value)
    check_whole("seed", seed, 0, 2**32 - 1)


def _checked_features(features: Any, n_edges: int) -> Floats | None:
    if features is None:
        return None
    given = as_array("features", features)
    if given.ndim != 2 or len(given) != n_edges or not given.shape[1] or given.dtype.kind not in "biuf":
        raise InvalidParameterError(
            f"features must have one row of numbers for each of the {n_edges} moves; shape {given.shape} was given."
        )
    return given.astype(float)


def _edges(tables: list[csr_array]) -> tuple[Ints, Floats]:
    """All moves, sorted, and how often each agent made each: (E, 2), (K, E)."""
    total = csr_array(sum(table.astype(float) for table in tables)).tocoo()
    made = total.data > 0
    edges = np.stack([total.row[made], total.col[made]], axis=1).astype(np.int64)
    edges = edges[np.lexsort(edges.T[::-1])]
    if not len(edges):
        return edges, np.zeros((len(tables), 0))
    by_agent = [np.asarray(table[edges[:, 0], edges[:, 1]], dtype=float).ravel() for table in tables]
    return edges, np.stack(by_agent)


@dataclass(frozen=True)
class Agreement:
    """Shares of transitions whose latent action is the true one.

    by_group  up to one relabelling in each group of states whose names are said to agree
    overall   up to one relabelling for all states
    by_state  up to one relabelling in each state: what names within states are worth. More than by_group where
              names were said to agree and do not
    ceiling   the most that any function of state and successor could reach: a move that two actions make is
              right for one of them at best
    clear     as by_group, of those transitions alone whose move one latent action makes (`CLEAR`), so that bumps, which
              several may make, do not blur it: are names that are claimed right?
    clear_share  how many transitions those are
    largest   the share of transitions that leave states of the largest group
    """

    by_group: float
    overall: float
    by_state: float
    ceiling: float
    clear: float
    clear_share: float
    largest: float


def agreement(latent: LatentActions, s: ArrayLike, t: ArrayLike, true_actions: ArrayLike) -> Agreement:
    """Of transitions s -> t (m,) with true actions (m,); those with an unknown action, -1, are left out.

    Transitions that have no latent action count as wrong.
    """
    check_kind("latent", latent, LatentActions, "LatentActions, as find_latent_actions gives")
    start, end, action = _transitions(s, t, true_actions)
    known = action >= 0
    start, end, action = start[known], end[known], action[known]
    code = latent.of_moves(start, end)
    inside = (start >= 0) & (start < latent.n_states)
    group = np.where(inside, latent.consistent[np.where(inside, start, 0)], -1)
    clear = latent.certainty(start, end) >= CLEAR
    return Agreement(
        by_group=accuracy_by_group(code, action, group),
        overall=accuracy_by_group(code, action, np.zeros_like(start)),
        by_state=accuracy_by_group(code, action, start),
        ceiling=ceiling(start, end, action),
        clear=accuracy_by_group(code[clear], action[clear], group[clear]),
        clear_share=float(clear.mean()) if len(clear) else 0.0,
        largest=float((group == 0).mean()) if len(group) else 0.0,
    )


def accuracy_by_group(codes: ArrayLike, truth: ArrayLike, group: ArrayLike) -> float:
    """Share of codes (m,) that are right under the best one-to-one relabelling of each group (m,); -1 is wrong."""
    code, true, g = as_labels("codes", codes, 1), as_labels("truth", truth, 1), as_labels("group", group, 1)
    tables = count_visits(g, code, true)
    hits = sum(int(table[r, c]) for table in tables for r, c in best_matching(table).items())
    return hits / max(len(true), 1)


def ceiling(s: ArrayLike, t: ArrayLike, true_actions: ArrayLike) -> float:
    """The share that the most frequent action of each move s -> t makes up."""
    start, end, action = _transitions(s, t, true_actions)
    _, move = np.unique(np.stack([start, end]), axis=1, return_inverse=True)
    return float(count_visits(move.ravel(), action).max(axis=1, initial=0).sum() / max(len(action), 1))


def _transitions(s: ArrayLike, t: ArrayLike, true_actions: ArrayLike) -> tuple[Ints, Ints, Ints]:
    """States, successors and actions, one of each per transition."""
    start, end, action = (
        as_labels(name, x).ravel() for name, x in (("s", s), ("t", t), ("true_actions", true_actions))
    )
    if not start.shape == end.shape == action.shape:
        raise InvalidDataError(
            f"There must be one s, one t and one action per transition; {start.size}, {end.size} and {action.size} "
            "were given."
        )
    return start, end, action
