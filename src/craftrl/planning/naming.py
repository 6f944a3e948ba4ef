"""From ties between moves to names: one number per action in each group of states that ties hold together.

A group is a set of states in all of which every move has its name, so that one relabelling makes the whole group right.
Names spread from one state along ties. A move without a tie is named where only one name is left for it, and a move
that stays in place gets all names that are left: several actions may bump. A state with a move that could have two
names stays in a group of its own. Ties that contradict one another, by which two moves of a state would be one action,
hold nothing together: all their states stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from craftrl.planning.ties import Move

__all__ = ["Names", "name_moves", "with_stay"]


class _Contradiction(Exception):
    pass


@dataclass(frozen=True)
class Names:
    """of[s][t]: the names of the actions that lead from s to t; group (N,); states whose ties contradict another."""

    of: list[dict[int, tuple[int, ...]]]
    group: NDArray[np.int64]
    contradicting: tuple[int, ...]


def name_moves(successors: Sequence[tuple[int, ...]], pairs: Iterable[tuple[Move, Move]], n: int) -> Names:
    """Names of all moves from ties between pairs of them."""
    N, tied = len(successors), list(pairs)
    action = _classes(tied)
    of: list[dict[int, tuple[int, ...]]] = [{} for _ in range(N)]
    group = np.full(N, -1)
    contradicting: list[int] = []
    for states in _components(N, tied):
        try:
            parts = _spread(successors, states, action, n)
        except _Contradiction:
            parts = []
            contradicting.extend(states)
        for part in parts:
            group[list(part)] = group.max() + 1
            for s, names in part.items():
                of[s] = names
    for s in np.flatnonzero(group < 0).tolist():
        group[s] = group.max() + 1
        of[s] = _of_state(s, successors[s], {}, action, n) or {}
    return Names(of, _numbered(group), tuple(contradicting))


def with_stay(names: Names, stays: Iterable[int], n: int) -> Names:
    """The same names, with the last one, n-1, for staying in place; in states that `stays` lists, bumps stay too."""
    of = [dict(found) for found in names.of]
    for s in stays:
        used = {a for called in of[s].values() for a in called}
        of[s][s] = tuple(a for a in range(n) if a not in used)
    return Names(of, names.group, names.contradicting)


def _classes(tied: list[tuple[Move, Move]]) -> dict[Move, int]:
    """A number for each set of moves that ties join."""
    moves = sorted({move for pair in tied for move in pair})
    place = {move: i for i, move in enumerate(moves)}
    joined = connected_components(_graph(len(moves), [(place[a], place[b]) for a, b in tied]), directed=False)[1]
    return {move: int(joined[i]) for move, i in place.items()}


def _components(N: int, tied: list[tuple[Move, Move]]) -> list[list[int]]:
    """Sets of two states or more that ties connect."""
    joined = connected_components(_graph(N, [(a[0], b[0]) for a, b in tied]), directed=False)[1]
    found = [np.flatnonzero(joined == c).tolist() for c in range(joined.max(initial=-1) + 1)]
    return [states for states in found if len(states) > 1]


def _graph(size: int, edges: list[Move]) -> coo_array:
    rows, columns = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))


def _spread(
    successors: Sequence[tuple[int, ...]], states: list[int], action: dict[Move, int], n: int
) -> list[dict[int, dict[int, tuple[int, ...]]]]:
    """Groups of two states or more: {state: {successor: names}} each, the fullest state first."""
    pending, parts = list(states), []
    while pending:
        first = max(pending, key=lambda s: (sum((s, t) in action for t in successors[s]), len(successors[s]), -s))
        name: dict[int, int] = {}
        part: dict[int, dict[int, tuple[int, ...]]] = {}
        waiting = [first, *(s for s in pending if s != first)]
        grown = True
        while grown:
            grown = False
            for s in list(waiting):
                known = any(action.get((s, t)) in name for t in successors[s])
                found = _of_state(s, successors[s], name, action, n) if known or s == first else None
                if found is not None:
                    part[s] = found
                    waiting.remove(s)
                    grown = True
        pending = [s for s in pending if s not in part]
        if len(part) > 1:
            parts.append(part)
    return parts


def _of_state(
    s: int, successors: tuple[int, ...], name: dict[int, int], action: dict[Move, int], n: int
) -> dict[int, tuple[int, ...]] | None:
    """Names of one state's moves given those of tied ones, `name`, which grows; None where a move could have two."""
    loud = [t for t in successors if t != s]
    known = {t: name[action[s, t]] for t in loud if action.get((s, t)) in name}
    if len(set(known.values())) < len(known):
        raise _Contradiction
    open_moves = [t for t in loud if t not in known]
    left = [a for a in range(n) if a not in known.values()]
    forced = len(open_moves) == len(left) == 1
    if open_moves and not (forced or not set(left) & set(name.values())):
        return None
    for t, a in zip(open_moves, left):
        known[t] = a
        if (s, t) in action:
            name[action[s, t]] = a
    names: dict[int, tuple[int, ...]] = {t: (a,) for t, a in known.items()}
    if s in successors:
        names[s] = tuple(left[len(open_moves) :])
    return names


def _numbered(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups numbered by size, the largest first."""
    _, index, sizes = np.unique(group, return_inverse=True, return_counts=True)
    order = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
    return order[index]
