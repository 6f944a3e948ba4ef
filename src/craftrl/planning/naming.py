"""Which moves of different states are one action: ties between moves, and the names that follow from them.

Within a state different moves are different actions. Between states nothing in the counts of moves names them: rename
the actions of one state, change the agents' habits there to match, and every count stays. So a tie always rests on
something more, and two kinds are known here.

Commuting moves. In worlds where actions shift a place (grids, roads, tori) it does not matter which of two actions
comes first. Take a move s -> u by an action a, and another, s -> v by b. Then b leads from u to where a leads from v: a
square closes. For each s -> u, the moves of s are matched with those of u so that as many squares close as can, and
those pairs are tied that every such matching has. Whether moves commute in a world at all is seen: where they do not,
as with an agent that turns and walks, most moves have no matching that closes, and nothing is tied.

Vectors. Where a caller knows numbers that one action has in every state, such as the change of a position, or habits
that do not depend on the state, moves with the same numbers are tied.

Names are one number per action in each group of states that ties hold together: one relabelling makes the whole group
right. They go on from one state along ties. A move without a tie is named where only one name is left for it, and a
move that stays in place gets all names that are left: several actions may bump. A state with a move that could have two
names stays in a group of its own, and so do states whose ties make one action of two of their moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from craftrl.arrays import Floats, Ints

Move = tuple[int, int]
Ties = list[tuple[Move, Move]]  # pairs of moves that are one action
Successors = Sequence[tuple[int, ...]]  # of each state the usual successors of its actions; () where unknown
Names = dict[int, tuple[int, ...]]  # of one state: the names of the actions that lead to each successor

MAX_NAMED = 5  # states named in a sentence
MAX_BROKEN = 0.05  # share of moves without a matching; worlds that commute have none, turning ones a third or more
MAX_UNCLEAR = 0.1  # share of moves whose vector lies between two actions
CLEAR = 0.5  # a vector is at most this much as far from its own centre as from the next
NEVER, COVERED = -1000.0, 50.0  # weights in a matching: squares that had to close, moves that some action must make


@dataclass(frozen=True)
class Condition:
    """Something that the answer rests on: whether it holds (None: cannot be told), in which states not, in words."""

    name: str
    holds: bool | None
    where: tuple[int, ...]
    sentence: str

    def __str__(self) -> str:
        said = {True: "yes", False: "no", None: "not known"}[self.holds]
        some = ", ".join(map(str, self.where[:MAX_NAMED]))
        more = f" and {len(self.where) - MAX_NAMED} more" if len(self.where) > MAX_NAMED else ""
        return f"{self.name}: {said}. {self.sentence}" + (f" Not in states {some}{more}." if some else "")


# -- ties ----------------------------------------------------------------------------------------------------------


def by_commuting(successors: Successors, n: int) -> tuple[Ties, Condition]:
    """Ties of neighbouring states in a world with n actions whose moves commute."""
    name, moves = "moves commute", _moves(successors)
    walks = connected_components(_graph(len(successors), moves), connection="strong")[0]
    if walks == len(successors) and all(s != t for s, t in moves):
        said = "No state is ever left and met again, so that bumps cannot be told from moves: no squares."
        return [], Condition(name, False, (), said)
    tried = [(s, u) for s, u in moves if s != u and successors[u]]
    matched = {move: _matched(successors, *move, n) for move in tried}
    broken = [s for (s, _), found in matched.items() if found is None]
    where, share = tuple(sorted(set(broken))), len(broken) / max(len(tried), 1)
    if share > MAX_BROKEN:
        said = f"Moves do not commute: {share:.0%} of moves close no squares, so none was taken for evidence."
        return [], Condition(name, False, where, said)
    pairs = [((s, v), (u, w)) for (s, u), found in matched.items() for v, w in found or ()]
    said = f"Of {len(tried)} moves {len(broken)} close no squares where they should; "
    return pairs, Condition(name, bool(pairs), where, f"{said}squares tied {len(pairs)} pairs of moves.")


def _matched(successors: Successors, s: int, u: int, n: int) -> list[Move] | None:
    """Pairs (v, w): the action of s -> v is that of u -> w in every best matching; None if squares had to close.

    Rows are the actions at s: its moves, and as many more as n has, which share a move with another. Columns are the
    moves of u, and room for actions that bump at u or share a move there. A pair counts 1 for a square that closes, 0
    where nothing speaks for or against it, `NEVER` for one that had to close. A square that ends where it began, at s,
    closes for any two moves that can be undone; where a bump may hide the square that was meant, it counts nothing.
    """
    rows, bumps = list(successors[s]), u in successors[u]
    columns = [w for w in successors[u] if w != u]
    spare = n if bumps else max(n - len(columns), 0)
    weight = np.zeros((max(n, len(rows)), len(columns) + spare))
    for i, v in enumerate(rows):
        if v in (s, u) or not successors[v]:
            continue
        roomy = any(x in successors[x] and len(successors[x]) < n for x in (u, v))  # several actions may bump there
        hidden = (bumps and s in successors[s]) or roomy
        excused = 0.0 if v in successors[v] else NEVER
        for j, w in enumerate(columns):
            weight[i, j] = excused if w not in successors[v] else float(not (w == s and hidden))
        weight[i, len(columns) :] = float(bumps and u in successors[v])
    weight[:, : len(columns)] += COVERED
    chosen = linear_sum_assignment(weight, maximize=True)
    best = weight[chosen].sum()
    if best < COVERED * len(columns) - 0.5:
        return None
    found = []
    for i, j in zip(*chosen):
        if i < len(rows) and j < len(columns) and rows[i] != s:
            without = weight.copy()
            without[i, j] = 10 * NEVER
            if without[linear_sum_assignment(without, maximize=True)].sum() < best - 0.5:
                found.append((rows[i], columns[j]))
    return found


def by_vectors(
    name: str, moves: Sequence[Move], vectors: Floats, n: int, what: str, seed: int
) -> tuple[Ties, Condition]:
    """Ties of all moves whose vectors (M, d) lie about one of n centres; moves that stay in place are left out.

    A move is tied where its vector is clearly one centre's and no other move of its state is.
    """
    from sklearn.cluster import KMeans  # takes a second to import

    rows = [i for i, (s, t) in enumerate(moves) if s != t and np.isfinite(vectors[i]).all()]
    k = min(n, len(np.unique(vectors[rows], axis=0)))
    if k < 2:
        return [], Condition(name, False, (), f"By their {what} all moves are alike, so none was tied.")
    means = KMeans(k, n_init=10, random_state=seed).fit(vectors[rows])
    near = np.sort(means.transform(vectors[rows]), axis=1)
    own = [(moves[i][0], centre) for i, centre in zip(rows, means.labels_.tolist())]
    times = Counter(own)
    clear = (near[:, 0] <= CLEAR * near[:, 1]) & [times[pair] == 1 for pair in own]
    unclear = float((~clear).mean())
    where = tuple(sorted({moves[i][0] for i, good in zip(rows, clear) if not good}))
    if unclear > MAX_UNCLEAR:
        said = f"By their {what}, {unclear:.0%} of moves are unclear, so none was tied."
        return [], Condition(name, False, where, said)
    pairs: Ties = []
    for centre in range(k):
        pairs.extend(pairwise(moves[i] for i, mine in zip(rows, clear & (means.labels_ == centre)) if mine))
    return pairs, Condition(
        name, True, where, f"By their {what}, {1 - unclear:.0%} of moves are clearly of one action."
    )


# -- names ---------------------------------------------------------------------------------------------------------


def name_moves(successors: Successors, ties: Ties, n: int) -> tuple[list[Names], Ints, int]:
    """Names of the moves of each state, the group of each, the largest first; how many states' ties contradict."""
    N = len(successors)
    tied = sorted({move for pair in ties for move in pair})
    place = {move: i for i, move in enumerate(tied)}
    classes = connected_components(_graph(len(tied), [(place[a], place[b]) for a, b in ties]), directed=False)[1]
    action = dict(zip(tied, classes.tolist()))  # a number for each set of moves that ties join
    near = connected_components(_graph(N, [(a[0], b[0]) for a, b in ties]), directed=False)[1]
    names: list[Names] = [{} for _ in range(N)]
    group = np.full(N, -1)
    contradicting = 0
    for component in np.flatnonzero(np.bincount(near, minlength=1) > 1):
        states = np.flatnonzero(near == component).tolist()
        try:
            parts = _groups(successors, states, action, n)
        except _Contradiction:
            contradicting += len(states)
            continue
        for part in parts:
            group[list(part)] = group.max() + 1
            for s, found in part.items():
                names[s] = found
    for s in np.flatnonzero(group < 0).tolist():
        group[s] = group.max() + 1
        names[s] = _of_state(s, successors[s], {}, action, n) or {}
    _, index, sizes = np.unique(group, return_inverse=True, return_counts=True)
    order = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
    return names, order[index], contradicting


class _Contradiction(Exception):
    """Two moves of a state are one action by their ties."""


def _groups(successors: Successors, states: list[int], action: dict[Move, int], n: int) -> list[dict[int, Names]]:
    """Groups of two states or more, each from the fullest state on: {state: names}."""
    pending, parts = list(states), []
    while pending:
        first = max(pending, key=lambda s: (sum((s, t) in action for t in successors[s]), len(successors[s]), -s))
        name: dict[int, int] = {}  # of each set of tied moves
        part: dict[int, Names] = {}
        waiting, grown = [first, *(s for s in pending if s != first)], True
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
) -> Names | None:
    """Names of one state's moves given those of tied ones, `name`, which grows; None where a move could have two."""
    loud = [t for t in successors if t != s]
    known = {t: name[action[s, t]] for t in loud if action.get((s, t)) in name}
    if len(set(known.values())) < len(known):
        raise _Contradiction
    unnamed = [t for t in loud if t not in known]
    left = [a for a in range(n) if a not in known.values()]
    forced = len(unnamed) == len(left) == 1
    if unnamed and not (forced or not set(left) & set(name.values())):
        return None
    for t, a in zip(unnamed, left):
        known[t] = a
        if (s, t) in action:
            name[action[s, t]] = a
    names: Names = {t: (a,) for t, a in known.items()}
    if s in successors:
        names[s] = tuple(left[len(unnamed) :])
    return names


def _moves(successors: Successors) -> list[Move]:
    return [(s, t) for s, found in enumerate(successors) for t in found]


def _graph(size: int, edges: list[Move]) -> coo_array:
    rows, columns = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
