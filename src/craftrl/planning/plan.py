"""Plans: the shortest and the most reliable path of grounded moves to a goal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from scipy.sparse import csr_array, eye, kron
from scipy.sparse.csgraph import dijkstra

from craftrl.arguments import check_choice, check_kind, check_whole, is_whole, quoted
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.graph import StateGraph
from craftrl.planning.grounding import Grounding, KnownMoves

By = Literal["shortest", "reliable"]

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
    graph = grounding.graph
    check_whole("start", start, 0, graph.n - 1)
    goal = check_goals(graph, goals)
    check_choice("by", by, get_args(By))
    if horizon is not None:
        check_whole("horizon", horizon, 0)
    known, ends = grounding.known_moves(), sorted(goal)
    doubt = -np.log(np.minimum(known.chance, 1.0))
    ways = known.costing(1 + TIE * doubt if by == "shortest" else doubt + TIE, graph.n)
    path = _cheapest(ways, int(start), ends)
    if horizon is not None and len(path) - 1 > horizon:
        # in a copy of the graph for each number of moves every path is short enough
        copies = [copy * graph.n + node for copy in range(horizon + 1) for node in ends]
        ways = kron(eye(horizon + 1, k=1), ways, format="csr")  # else of many moves a dense one, in which none costs 0
        path = [node % graph.n for node in _cheapest(ways, int(start), copies)]
    if not path:
        raise _unreachable(graph, known, int(start), goal, horizon)
    row = {move: i for i, move in enumerate(zip(known.s.tolist(), known.t.tolist()))}
    taken = [row[move] for move in pairwise(path)]
    return Plan(goal, tuple(path), tuple(known.action[taken].tolist()), float(np.prod(known.chance[taken])))


def check_goals(graph: StateGraph, goals: Collection[int]) -> frozenset[int]:
    """Goals as a set of numbers of states, one or more."""
    given = list(goals) if isinstance(goals, Collection) and getattr(goals, "ndim", True) else []
    if not given or not all(is_whole(goal) and 0 <= goal < graph.n for goal in given):
        raise InvalidParameterError(
            f"Goals must be one or more states, numbered 0..{graph.n - 1}; {quoted(goals)} was given; see "
            "grounding.graph."
        )
    return frozenset(int(goal) for goal in given)


def _cheapest(ways: Any, start: int, ends: list[int]) -> list[int]:
    """The cheapest path to one of the ends; [] for none."""
    distance, before = dijkstra(ways, indices=start, return_predecessors=True)
    path = [ends[int(np.argmin(distance[ends]))]]
    if not np.isfinite(distance[path[0]]):
        return []
    while path[0] != start:
        path.insert(0, int(before[path[0]]))
    return path


def _unreachable(
    graph: StateGraph, known: KnownMoves, start: int, goal: frozenset[int], horizon: int | None
) -> UnreachableGoal:
    """Whether the videos show no way, or which moves of one are not grounded; and how near a plan comes."""
    s, t = np.concatenate([graph.edges, np.stack([known.s, known.t], axis=1)]).T
    back = csr_array((np.ones(len(s)), (t, s)), shape=(graph.n, graph.n))
    away, after, _ = dijkstra(back, indices=sorted(goal), unweighted=True, min_only=True, return_predecessors=True)
    texts = [graph.text(node) for node in sorted(goal)]
    here, there = graph.text(start), " or ".join(texts[:NAMED]) + (" or others" if len(texts) > NAMED else "")
    most = np.inf if horizon is None else horizon
    if not (np.isfinite(away[start]) and away[start] <= most):
        too_far = bool(np.isfinite(away[start]))
        left = f" in the {horizon} moves left (the shortest way has {away[start]:.0f})" if too_far else ""
        return UnreachableGoal(
            f"The videos must show a way to the goal; none leads from {here} to {there}{left}; choose another goal, or "
            "add videos that go there.",
            too_far=too_far,
        )
    reached = dijkstra(known.costing(known.chance, graph.n), indices=start, unweighted=True)
    nearest = int(np.lexsort((reached, np.where(np.isfinite(reached) & (reached + away <= most), away, np.inf)))[0])
    way, made = [nearest], set(zip(known.s.tolist(), known.t.tolist()))
    while away[way[-1]] > 0:
        way.append(int(after[way[-1]]))
    missing = [move for move in pairwise(way) if move not in made]
    named = ", ".join(graph.text(*move) for move in missing[:NAMED])
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    return UnreachableGoal(
        f"Every move on the way must be grounded in an action; from {here} to {there} these are not: {named}{more}; "
        "add labels of them, or call explore.",
        tuple(missing),
        nearest,
    )
