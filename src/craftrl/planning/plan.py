"""Plans: the shortest and the most reliable path of grounded moves to a goal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from craftrl.arguments import check_kind, check_whole, is_whole, shown
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.grounding import Grounding, KnownMoves

__all__ = ["By", "Plan", "UnreachableGoal", "check_by", "check_goals", "distances", "plan_path"]

By = Literal["shortest", "reliable"]
Floats = NDArray[np.floating]

TIE = 1e-6  # of two paths that are equally good, the more reliable or the shorter one is taken
NAMED = 5  # moves that a sentence names


@dataclass(frozen=True)
class Plan:
    """A path of moves: `actions[i]` leads from `nodes[i]` to `nodes[i + 1]`, the last of which is in `goal`.

    probability  that all moves succeed, as far as labels tell
    """

    goal: frozenset[int]
    nodes: tuple[int, ...]
    actions: tuple[int, ...]
    probability: float

    def __len__(self) -> int:
        return len(self.actions)


class UnreachableGoal(InvalidDataError):
    """No plan leads to the goal.

    missing  moves on a way that the videos show and that would have to be grounded; none where they show no way
    nearest  the state that a plan reaches and that is nearest to the goal in the videos; None where they show no way
    too_far  whether the videos show a way, but only one with more moves than may be made
    """

    def __init__(
        self,
        sentence: str,
        missing: tuple[tuple[int, int], ...] = (),
        nearest: int | None = None,
        too_far: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.missing = missing
        self.nearest = nearest
        self.too_far = too_far


def plan_path(
    grounding: Grounding, start: int, goals: Collection[int], *, by: By = "shortest", horizon: int | None = None
) -> Plan:
    """The best path from `start` to the nearest of `goals`, all numbers of `grounding.graph`.

    by       "shortest": fewest moves; "reliable": the path most likely to succeed
    horizon  the most moves that it may have; None for any number
    """
    check_kind("grounding", grounding, Grounding, "a Grounding")
    check_whole("start", start, 0, grounding.graph.n - 1)
    goal = check_goals(grounding, goals)
    check_by(by)
    if horizon is not None:
        check_whole("horizon", horizon, 0)
    known, at = grounding.known_moves(), sorted(goal)
    cost = _costs(known, by)
    distance, before = dijkstra(_graph(known, cost, grounding.graph.n), indices=int(start), return_predecessors=True)
    end = at[int(np.argmin(distance[at]))]
    path = _back(before, int(start), end) if np.isfinite(distance[end]) else None
    if path is not None and horizon is not None and len(path) - 1 > horizon:
        path = _within(known, cost, int(start), at, horizon, grounding.graph.n)
    if path is None:
        raise _unreachable(grounding, known, int(start), goal, horizon)
    return _as_plan(known, goal, path)


def distances(grounding: Grounding, goals: Collection[int]) -> Floats:
    """How many moves the goal is away from each state, by grounded moves alone; inf where none lead there."""
    check_kind("grounding", grounding, Grounding, "a Grounding")
    known = grounding.known_moves()
    return _to_goal(known.s, known.t, check_goals(grounding, goals), grounding.graph.n)


def check_by(by: Any) -> None:
    """One of the two things to plan for."""
    if not (isinstance(by, str) and by in ("shortest", "reliable")):
        raise InvalidParameterError(f'by must be "shortest" or "reliable"; {shown(by)} was given.')


def check_goals(grounding: Grounding, goals: Collection[int]) -> frozenset[int]:
    """Goals as a set of numbers of states, one or more."""
    n = grounding.graph.n
    try:
        given = list(goals)
    except TypeError:
        given = []
    if not given or not all(is_whole(goal) and 0 <= goal < n for goal in given):
        raise InvalidParameterError(
            f"Goals must be one or more states, numbered 0..{n - 1}; {shown(goals)} was given; see grounding.graph."
        )
    return frozenset(int(goal) for goal in given)


def _costs(known: KnownMoves, by: By) -> Floats:
    doubt = -np.log(np.minimum(known.chance, 1.0))
    return 1 + TIE * doubt if by == "shortest" else doubt + TIE


def _graph(known: KnownMoves, cost: Floats, n: int) -> csr_array:
    return csr_array((cost, (known.s, known.t)), shape=(n, n))


def _back(before: NDArray[np.integer], start: int, end: int) -> list[int]:
    path = [end]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return path[::-1]


def _within(known: KnownMoves, cost: Floats, start: int, goals: list[int], horizon: int, n: int) -> list[int] | None:
    """The cheapest path of at most `horizon` moves, by going on from all paths of one move less."""
    distance = np.full((horizon + 1, n), np.inf)
    distance[0, start] = 0.0
    for step in range(horizon):
        distance[step + 1] = distance[step]
        np.minimum.at(distance[step + 1], known.t, distance[step, known.s] + cost)
    end = goals[int(np.argmin(distance[-1, goals]))]
    if not np.isfinite(distance[-1, end]):
        return None
    path = [end]
    for step in range(horizon, 0, -1):
        if distance[step, path[-1]] < distance[step - 1, path[-1]]:
            into = np.flatnonzero(known.t == path[-1])
            path.append(int(known.s[into[np.argmin(distance[step - 1, known.s[into]] + cost[into])]]))
    return path[::-1]


def _as_plan(known: KnownMoves, goal: frozenset[int], path: list[int]) -> Plan:
    move = {(int(s), int(t)): i for i, (s, t) in enumerate(zip(known.s, known.t))}
    taken = [move[pair] for pair in pairwise(path)]
    chance = float(np.prod(known.chance[taken])) if taken else 1.0
    return Plan(goal, tuple(path), tuple(int(a) for a in known.action[taken]), chance)


def _to_goal(s: NDArray[np.integer], t: NDArray[np.integer], goal: frozenset[int], n: int) -> Floats:
    """The number of moves from each state to the nearest goal, over moves s -> t."""
    graph = csr_array((np.ones(len(s)), (t, s)), shape=(n, n))
    return dijkstra(graph, indices=sorted(goal), unweighted=True, min_only=True)


def _unreachable(
    grounding: Grounding, known: KnownMoves, start: int, goal: frozenset[int], horizon: int | None
) -> UnreachableGoal:
    """Whether the videos show no way, or which moves of one are not grounded; and how near a plan comes."""
    n, edges = grounding.graph.n, grounding.graph.edges
    s, t = (np.concatenate(pair) for pair in ((edges[:, 0], known.s), (edges[:, 1], known.t)))
    away = _to_goal(s, t, goal, n)
    here, there = grounding.graph.text(start), _texts(grounding, goal)
    most = np.inf if horizon is None else horizon
    if not (np.isfinite(away[start]) and away[start] <= most):
        too_far = bool(np.isfinite(away[start]))
        left = f" in the {horizon} moves left (the shortest way has {away[start]:.0f})" if too_far else ""
        return UnreachableGoal(
            f"The videos must show a way to the goal; none leads from {here} to {there}{left}; choose another goal, or "
            "add videos that go there.",
            too_far=too_far,
        )
    reached = dijkstra(_graph(known, np.ones(len(known.s)), n), indices=start, unweighted=True)
    in_time = np.isfinite(reached) & (reached + away <= most)
    nearest = int(np.lexsort((reached, np.where(in_time, away, np.inf)))[0])
    missing = _not_grounded(grounding, known, away, nearest)
    named = ", ".join(grounding.graph.text(*move) for move in missing[:NAMED])
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    return UnreachableGoal(
        f"Every move on the way must be grounded in an action; from {here} to {there} these are not: {named}{more}; "
        "add labels of them, or call explore.",
        tuple(missing),
        nearest,
    )


def _not_grounded(grounding: Grounding, known: KnownMoves, away: Floats, start: int) -> list[tuple[int, int]]:
    """The moves of a shortest way in the videos that are not grounded."""
    made, node, missing = set(zip(known.s.tolist(), known.t.tolist())), start, []
    while away[node] > 0:
        ahead = np.union1d(grounding.graph.successors(node), known.t[known.s == node])
        after = int(ahead[np.argmin(away[ahead])])
        if (node, after) not in made:
            missing.append((node, after))
        node = after
    return missing


def _texts(grounding: Grounding, goal: frozenset[int]) -> str:
    texts = [grounding.graph.text(node) for node in sorted(goal)]
    return " or ".join(texts[:NAMED]) + (" or others" if len(texts) > NAMED else "")
