"""Latent actions: numbers that moves of different states share, from how often each agent makes each move.

A move is a pair of states, one following the other. Where the world is deterministic, the successor names the action
within a state; where actions slip, the agents' different habits tell their effects apart. Which moves of different
states are one action is another question, and the counts alone cannot answer it (`craftrl.planning.naming`). So names
come with groups: within a group one relabelling makes all names right, between groups nothing is claimed. What the
answer rests on is in `conditions`.

Where actions slip. The rows of P (K, m), the successor distributions of K agents in one state, are mixtures of the
effects of the actions: P = habits (K, r) @ effects (r, m), all rows probability vectors. Habits times an invertible
matrix, and effects times its inverse, give the same P, so something must say which pair is meant. Here it is the one
whose effects span the least volume. It is the true one, up to the order of the actions, where the rank of P is r and
the habits are sufficiently scattered: their convex hull holds the ball that is inscribed in the simplex of all
policies (Fu, Huang and Sidiropoulos 2019; Schur 2026, arXiv 2603.17577, for agents and actions).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError
from scipy.special import softmax

from craftrl.arguments import check_flag, check_kind, check_whole
from craftrl.arrays import Floats, Ints
from craftrl.data.labels import as_array, as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.graph import StateGraph
from craftrl.planning.naming import Condition, by_commuting, by_vectors, name_moves

MAX_ACTIONS = 1000
SCATTERED = 0.95  # how much of the inscribed ball the habits must hold, with room for sampling error
MIN_VISITS = 64  # visits of an agent per successor: by then its distribution is known to about 0.05 in total variation
BEYOND = 1.0  # how far a singular value must lie beyond the largest that noise has
VOLUME = 2.0  # weight of the log-volume beside the log-likelihood, in nats; between 1 and 6 nothing changes
TINY = 1e-12


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
    group       (N,) the group of each state, the largest group first: names agree within a group up to one permutation
    conditions  what the answer rests on: did it hold, and where not
    """

    n: int
    edges: Ints
    share: Floats
    posterior: Floats
    policies: Floats
    group: Ints
    conditions: tuple[Condition, ...]

    @property
    def n_states(self) -> int:
        return len(self.group)

    def of_moves(self, s: ArrayLike, t: ArrayLike) -> Ints:
        """The most likely latent action of moves s -> t, each (m,); -1 where that move is not known."""
        row = self._rows(s, t)
        return np.where(row >= 0, self.posterior.argmax(axis=1)[row], -1) if len(self.edges) else row

    def certainty(self, s: ArrayLike, t: ArrayLike) -> Floats:
        """How likely the latent action of `of_moves` is, (m,); below 1 for a move that several make, 0 if unknown."""
        row = self._rows(s, t)
        likely = np.zeros(len(row))
        likely[row >= 0] = self.posterior.max(axis=1, initial=0)[row[row >= 0]]
        return likely

    def _rows(self, s: ArrayLike, t: ArrayLike) -> Ints:
        """The rows of moves in `edges`, -1 for those that are not there."""
        start, end = as_labels("s", s, 1), as_labels("t", t, 1)
        if start.shape != end.shape:
            raise InvalidDataError(f"There must be one t per s; {start.size} and {end.size} were given.")
        row_of = {move: row for row, move in enumerate(map(tuple, self.edges.tolist()))}
        return np.array([row_of.get(move, -1) for move in zip(start.tolist(), end.tolist())], dtype=np.int64)

    def __str__(self) -> str:
        sizes = np.bincount(self.group)
        head = f"{self.n} latent actions, {len(self.edges)} moves, {self.n_states} states in {len(sizes)} groups"
        return "\n".join([head, *(str(condition) for condition in self.conditions)])


def find_latent_actions(
    graph: StateGraph,
    *,
    n: int | None = None,
    deterministic: bool = True,
    features: ArrayLike | None = None,
    staying: bool = False,
) -> LatentActions:
    """Latent actions from how often each agent made each move of a graph of states.

    n              how many latent actions there are; by default as few as the moves need, which is the largest number
                   of successors of a state, or the largest rank where actions slip
    deterministic  whether an action has one successor in a state. Without n it cannot be told: a world with as many
                   actions as successors makes any counts
    features       (E, d) numbers of each move, in the order of `graph.edges`, that one action has in every state, such
                   as the change of a position, or how often each agent makes this move if agents take each action
                   equally often everywhere
    staying        whether staying in place is an action of its own that every state has, as in games where one may do
                   nothing; else a move to the same state is a bump, which any action may make
    """
    if n is not None:
        check_whole("n", n, 1, MAX_ACTIONS)
    check_flag("deterministic", deterministic)
    check_flag("staying", staying)
    check_kind("graph", graph, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    edges, made = graph.edges, graph.made
    given = None if features is None else as_array("features", features).astype(float)
    if given is not None and (given.ndim != 2 or len(given) != len(edges) or not given.shape[1]):
        raise InvalidParameterError(
            f"features must have one row of numbers for each of the {len(edges)} moves; shape {given.shape} was given."
        )
    if deterministic:
        states, n_actions, conditions = _each_move(graph, n, staying)
    else:
        states, n_actions, conditions = _factored(graph, n)

    # names of the usual moves of all states, by all ties there are
    distinct = {s: here.usual for s, here in states.items() if len(set(here.usual)) == len(here.usual)}
    apart = staying and n_actions > 1  # staying in place is an action of its own, and gets the last name
    free = n_actions - apart
    successors = [tuple(t for t in distinct.get(s, ()) if not (apart and t == s)) for s in range(graph.n)]
    ties, condition = by_commuting(successors, free)
    conditions.append(condition)
    moves = [(s, t) for s, here in states.items() for t in here.usual]
    if given is not None:
        vectors = [here.effects @ given[here.rows] for here in states.values()]
        more, condition = by_vectors(moves, np.concatenate([*vectors, given[:0]]), free)
        ties += more
        conditions.append(condition)
    names, group, contradicting = name_moves(successors, ties, free)
    for s in (s for s in distinct if apart and s in distinct[s]):
        names[s][s] = tuple(set(range(n_actions)).difference(*names[s].values()))
    sizes = np.bincount(group[list(distinct)], minlength=1)
    alone = tuple(s for s in sorted(distinct) if group[s] != sizes.argmax())
    said = f"Names agree in {(sizes > 0).sum()} groups of states, the largest of {sizes.max()} of {len(distinct)}."
    if contradicting:
        said += f" Ties of {contradicting} states contradict one another and were left out."
    conditions.append(Condition("one permutation", not alone, alone, said))

    share, weight = np.zeros((len(edges), n_actions)), np.zeros((len(edges), n_actions))
    policies = np.full((len(made), graph.n, n_actions), np.nan)
    for s, here in states.items():
        left = made[:, here.rows].sum(axis=1)
        policies[left > 0, s] = 0.0
        for i, t in enumerate(here.usual):
            called = names[s].get(t, (i,))  # a state in which two actions do the same has no names
            for a in called:
                share[here.rows, a] = here.effects[i]
                policies[left > 0, s, a] = here.habits[left > 0, i] / len(called)
                weight[here.rows, a] = left[left > 0] @ policies[left > 0, s, a] * here.effects[i]
    posterior = weight / weight.sum(axis=1, keepdims=True)
    return LatentActions(n_actions, edges, share, posterior, policies, group, tuple(conditions))


# -- within each state ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _State:
    """One state: where its m moves are, its actions' effects (r, m), the agents' habits (K, r), NaN if unseen.

    usual  (r,): the likeliest successor of each action
    """

    rows: slice
    effects: Floats
    habits: Floats
    usual: list[int]


Found = tuple[dict[int, _State], int, list[Condition]]  # each state, how many actions there are, what that rests on


def _each_move(graph: StateGraph, n: int | None, staying: bool) -> Found:
    """Every move is an action of its state; with `staying` every state has the action that stays, seen or not."""
    states, needed = {}, 1
    for s in np.flatnonzero(graph.out_degree).tolist():
        made, after = graph.made[:, graph.rows(s)], graph.successors(s).tolist()
        left = made.sum(axis=1, keepdims=True)
        habits = np.where(left > 0, made / np.where(left > 0, left, 1), np.nan)
        states[s] = _State(graph.rows(s), np.eye(len(after)), habits, after)
        needed = max(needed, len(after) + (staying and s not in after))
    where = tuple(s for s, here in states.items() if n is not None and len(here.usual) > n)
    said = f"A state has up to {needed} successors, so a deterministic world has {needed} actions or more"
    if where:
        said += f", yet there are {n}; give deterministic=False."
    else:
        said += f". Counts cannot tell it from actions that slip{'; give n if it is known' if n is None else ''}."
    return states, max(needed, n or 1), [Condition("deterministic", False if where else None, where, said)]


def _factored(graph: StateGraph, n: int | None) -> Found:
    """Effects of each state's actions from the agents' different habits.

    With no more agents in a state than n actions, the least volume only takes each agent for an action. There moves
    are read as in a deterministic world, where there are not too many of them.
    """
    states, rank, ball = {}, {}, dict[int, float]()
    visits = {s: graph.made[:, graph.rows(s)].sum(axis=1) for s in np.flatnonzero(graph.out_degree).tolist()}
    for s, left in visits.items():
        made, after = graph.made[left > 0, graph.rows(s)], graph.successors(s)
        rank[s] = rank_above_noise(made)
        if n is not None and len(made) <= n and len(after) <= n:
            found, effects = made / made.sum(axis=1, keepdims=True), np.eye(len(after))
        else:
            found, effects = factor(made, rank[s] if n is None else min(rank[s], n))
            ball[s] = scatter(found)
        habits = np.full((len(left), len(effects)), np.nan)
        habits[left > 0] = found
        states[s] = _State(graph.rows(s), effects, habits, after[effects.argmax(axis=1)].tolist())
    n = max(rank.values(), default=1) if n is None else n
    poor, flat = (tuple(s for s, value in of.items() if value < least) for of, least in ((rank, n), (ball, SCATTERED)))
    lone = tuple(s for s, left in visits.items() if (left > 0).sum() <= n)
    few = tuple(s for s, left in visits.items() if left[left > 0].min() < MIN_VISITS * graph.out_degree[s])
    K, agents = len(graph.counts), f"More agents than the {n} actions are needed; {len(graph.counts)} were given"
    agents += "; where there are fewer, moves are read as in a deterministic world if they are not too many" * bool(
        lone
    )
    said = f"The successors of {K} agents show {n} actions in {len(rank) - len(poor)} of {len(rank)} states"
    said += "; elsewhere actions do the same, or agents behave too much alike." if poor else "."
    scattered = (
        "Elsewhere the policies found are scattered enough. That they are the true ones cannot be told from "
        "counts: it needs agents that nearly never take some actions."
    )
    return (
        states,
        n,
        [
            Condition("deterministic", False, (), "Taken not to be: effects come from the agents' different habits."),
            Condition("more agents than actions", not lone, lone, f"{agents}."),
            Condition("rank", not poor, poor, said),
            Condition("scattered policies", False if flat else None, flat, scattered),
            Condition(
                "enough data", not few, few, f"Every agent should have left a state {MIN_VISITS} times per successor."
            ),
        ],
    )


def factor(counts: Floats, r: int) -> tuple[Floats, Floats]:
    """Habits (K, r) and effects (r, m) for one state's counts (K, m).

    They have the least -log-likelihood + VOLUME * log-volume of the effects.
    """
    if r == 1:
        return np.ones((len(counts), 1)), counts.sum(axis=0, keepdims=True) / counts.sum()
    P = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    # The distributions of r agents furthest from one another, by successive projection: exact where r agents each
    # always take one action of their own (Donoho and Stodden 2003: separability).
    chosen = qr(P.T, mode="r", pivoting=True)[1][:r]
    (K, m), total = counts.shape, counts.sum()

    def unpacked(theta: Floats) -> tuple[Floats, Floats]:
        return softmax(theta[: K * r].reshape(K, r), axis=1), softmax(theta[K * r :].reshape(r, m), axis=1)

    def loss(theta: Floats) -> tuple[float, Floats]:
        habits, effects = unpacked(theta)
        mixed = habits @ effects + TINY
        gram = effects @ effects.T + 1e-6 * np.eye(r)
        ratio = counts / mixed
        to_habits = -ratio @ effects.T
        to_effects = -habits.T @ ratio + VOLUME * np.linalg.solve(gram, effects)
        value = -(counts * np.log(mixed)).sum() + VOLUME / 2 * np.linalg.slogdet(gram)[1]
        parts = [_through_softmax(habits, to_habits), _through_softmax(effects, to_effects)]
        return float(value) / total, np.concatenate([part.ravel() for part in parts]) / total

    theta = np.concatenate([np.zeros(K * r), np.log(P[chosen] + 1e-3).ravel()])
    limits = {"maxiter": 300, "maxfun": 400, "ftol": 1e-11, "gtol": 1e-8}
    found = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=[(-12, 12)] * len(theta), options=limits)
    return unpacked(found.x)


def rank_above_noise(counts: Floats) -> int:
    """How many actions the agents' successor distributions can carry: the rank of their table above sampling noise.

    The table of standardised residuals from independence of agent and successor has the variance 1 in every entry if
    there is nothing but noise, and then its largest singular value is about sqrt(K-1) + sqrt(m-1).
    """
    seen = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(seen.shape, default=0) < 2:
        return 1
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    values = np.linalg.svd((seen - expected) / np.sqrt(expected), compute_uv=False)
    noise = np.sqrt(seen.shape[0] - 1) + np.sqrt(seen.shape[1] - 1)
    return 1 + int((values > noise + BEYOND).sum())


def scatter(habits: Floats) -> float:
    """How much of the inscribed ball the agents' habits (K, r) hold: 1 or more is sufficiently scattered.

    The least distance of a facet of their convex hull from the uniform policy, over the radius of the ball; negative
    where the uniform policy lies outside, and 0 where the hull is flat. Infinite for fewer than three actions, where
    least volume always finds two agents that never take one of them, whatever the truth.
    """
    r = habits.shape[1]
    if r < 3:
        return np.inf
    basis = np.linalg.svd(np.eye(r) - 1 / r)[0][:, : r - 1]
    try:
        hull = ConvexHull((habits - 1 / r) @ basis)
    except (QhullError, ValueError):
        return 0.0
    return float(-hull.equations[:, -1].max() * np.sqrt(r * (r - 1)))


def _through_softmax(p: Floats, gradient: Floats) -> Floats:
    return p * (gradient - (p * gradient).sum(axis=1, keepdims=True))
