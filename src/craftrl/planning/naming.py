"""Which moves of different states are one action: ties between moves, and the names that follow from them.

Within a state different moves are different actions. Between states nothing in the counts of moves names them: rename
the actions of one state, change the agents' habits there to match, and every count stays. So a tie always rests on
something more, and two kinds are known here.

Commuting moves. In worlds where actions shift a place (grids, roads, tori) it does not matter which of two actions
comes first. Take a move s -> u by an action a, and another, s -> v by b. Then b leads from u to where a leads from v: a
square closes. For each s -> u, the moves of s are matched with those of u so that as many squares close as can, and
those pairs are tied that every such matching has. Whether moves commute in a world at all is seen: where they do not,
as with an agent that turns and walks, most moves have no matching that closes, and nothing is tied.

Vectors. Where a caller knows numbers that one action has in every state, such as the change of a position, moves with
the same numbers are tied.

Names are one number per action in each group of states that ties hold together: one relabelling makes the whole group
right. The state with the most tied moves numbers them, and all states follow whose moves are tied to these. A move that
stays in place gets all names that are left: several actions may bump. A state with a move that nothing ties stays in a
group of its own, and so do states where ties make one action of two moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np
from scipy.cluster.hierarchy import DisjointSet
from scipy.optimize import linear_sum_assignment

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
    name = "moves commute"
    try:
        TopologicalSorter(dict(enumerate(successors))).prepare()
        said = "No state is ever left and met again, so that bumps cannot be told from moves: no squares."
        return [], Condition(name, False, (), said)
    except CycleError:
        tried = [(s, u) for s, found in enumerate(successors) for u in found if s != u and successors[u]]
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
    weight = np.zeros((max(n, len(rows)), len(columns) + n))
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
    pairs, best = _best(weight)
    if best < COVERED * len(columns) - 0.5:
        return None
    found = []
    for i, j in pairs:
        if i < len(rows) and j < len(columns) and rows[i] != s:
            without = weight.copy()
            without[i, j] = 10 * NEVER
            if _best(without)[1] < best - 0.5:
                found.append((rows[i], columns[j]))
    return found


def _best(weight: Floats) -> tuple[list[tuple[int, int]], float]:
    chosen = linear_sum_assignment(weight, maximize=True)
    return list(zip(*chosen)), float(weight[chosen].sum())


def by_vectors(moves: Sequence[Move], vectors: Floats, n: int) -> tuple[Ties, Condition]:
    """Ties of all moves whose vectors (M, d) lie about one of n centres; moves that stay in place are left out.

    A move is tied where its vector is clearly one centre's and no other move of its state is.
    """
    from sklearn.cluster import KMeans  # takes a second to import

    name, rows = "features", [i for i, (s, t) in enumerate(moves) if s != t]
    k = min(n, len(np.unique(vectors[rows], axis=0)))
    if k < 2:
        return [], Condition(name, False, (), "By their features all moves are alike, so none was tied.")
    means = KMeans(k, n_init=10, random_state=0).fit(vectors[rows])
    near = np.sort(means.transform(vectors[rows]), axis=1)
    own = [(moves[i][0], centre) for i, centre in zip(rows, means.labels_.tolist())]
    times = Counter(own)
    clear = (near[:, 0] <= CLEAR * near[:, 1]) & [times[pair] == 1 for pair in own]
    where = tuple(sorted({s for (s, _), good in zip(own, clear) if not good}))
    if 1 - clear.mean() > MAX_UNCLEAR:
        said = f"By their features, {1 - clear.mean():.0%} of moves are unclear, so none was tied."
        return [], Condition(name, False, where, said)
    of_centre = ([moves[i] for i, (_, c), good in zip(rows, own, clear) if good and c == centre] for centre in range(k))
    pairs = [pair for tied in of_centre for pair in pairwise(tied)]
    return pairs, Condition(
        name, True, where, f"By their features, {clear.mean():.0%} of moves are clearly of one action."
    )


# -- names ---------------------------------------------------------------------------------------------------------


def name_moves(successors: Successors, ties: Ties, n: int) -> tuple[list[Names], Ints, int]:
    """Names of the moves of each state, the group of each, the largest first; how many states' ties contradict."""
    tied, near = DisjointSet(move for pair in ties for move in pair), DisjointSet(range(len(successors)))
    for a, b in ties:
        tied.merge(a, b)
        near.merge(a[0], b[0])
    number = {move: i for i, moves in enumerate(tied.subsets()) for move in moves}
    loud = [[t for t in found if t != s] for s, found in enumerate(successors)]
    action = [[number.get((s, t), -1) for t in moves] for s, moves in enumerate(loud)]  # -1: not tied
    twice = [s for s, found in enumerate(action) if any(found.count(i) > 1 for i in found if i >= 0)]
    contradicting = {s for state in twice for s in near.subset(state)}
    action = [[-1] * len(found) if s in contradicting else found for s, found in enumerate(action)]
    names: list[Names] = [{} for _ in successors]
    groups: list[list[int]] = []
    pending = sorted(range(len(names)), key=lambda s: (action[s].count(-1) - len(loud[s]), -len(successors[s]), s))
    while pending:
        first, *others = pending
        name = {i: a for a, i in enumerate(action[first]) if i >= 0}
        names[first] = {t: (a,) for a, t in enumerate(loud[first])}
        groups.append([first, *(s for s in others if action[s] and name.keys() >= set(action[s]))])
        for s in groups[-1]:
            names[s] = names[s] or {t: (name[i],) for t, i in zip(loud[s], action[s])}
            if s in successors[s]:
                names[s][s] = tuple(set(range(n)).difference(*names[s].values()))
        pending = [s for s in pending if s not in groups[-1]]
    groups.sort(key=lambda states: (-len(states), min(states)))
    group = np.empty(len(names), dtype=np.int64)
    for g, states in enumerate(groups):
        group[states] = g
    return names, group, len(contradicting)
