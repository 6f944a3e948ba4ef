"""Which moves of different states are one action: the evidence that videos hold, as ties between moves.

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
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = ["Ties", "by_commuting", "by_vectors"]

Floats = NDArray[np.float64]
Move = tuple[int, int]
Successors = Sequence[tuple[int, ...]]

MOST_BROKEN = 0.05  # share of moves without a matching; worlds that commute have none, turning ones a third or more
MOST_UNCLEAR = 0.1  # share of moves whose vector lies between two actions
CLEAR = 0.5  # a vector is at most this much as far from its own centre as from the next
NEVER, COVERED = -1000.0, 50.0  # weights in a matching: squares that had to close, moves that some action must make


@dataclass(frozen=True)
class Ties:
    """Pairs of moves that are one action, whether the evidence can be trusted, and a sentence on it."""

    pairs: tuple[tuple[Move, Move], ...]
    holds: bool
    where: tuple[int, ...]
    sentence: str


def by_commuting(successors: Successors, n: int) -> Ties:
    """Ties of neighbouring states in a world whose moves commute; `successors[s]` are those of s, () if unknown."""
    if is_acyclic(successors):
        return Ties(
            (), False, (), "No state is ever left and met again, so that bumps cannot be told from moves: no squares."
        )
    pairs: list[tuple[Move, Move]] = []
    broken: list[int] = []
    tried = 0
    for s, u in [(s, u) for s, found in enumerate(successors) for u in found if u != s and successors[u]]:
        matched = _matched(successors, s, u, n)
        tried += 1
        if matched is None:
            broken.append(s)
        else:
            pairs.extend(((s, v), (u, w)) for v, w in matched)
    share = len(broken) / max(tried, 1)
    where = tuple(sorted(set(broken)))
    if share > MOST_BROKEN:
        said = f"Moves do not commute: {share:.0%} of moves close no squares, so none was taken for evidence."
        return Ties((), False, where, said)
    said = (
        f"Of {tried} moves {len(broken)} close no squares where they should; squares tied {len(pairs)} pairs of moves."
    )
    return Ties(tuple(pairs), bool(pairs), where, said)


def by_vectors(moves: Sequence[Move], vectors: Floats, n: int, what: str, seed: int = 0) -> Ties:
    """Ties of all moves whose vectors (M, d) lie about one of n centres; moves that stay in place are left out.

    A move is tied where its vector is clearly one centre's and no other move of its state is.
    """
    from sklearn.cluster import KMeans  # dear to import

    loud = np.array([i for i, (s, t) in enumerate(moves) if s != t and np.isfinite(vectors[i]).all()], dtype=np.int64)
    k = min(n, len(np.unique(vectors[loud], axis=0)))
    if k < 2:
        return Ties((), False, (), f"By their {what} all moves are alike, so none was tied.")
    means = KMeans(k, n_init=10, random_state=seed).fit(vectors[loud])
    near = np.sort(means.transform(vectors[loud]), axis=1)
    clear = near[:, 0] <= CLEAR * near[:, 1]
    seen = [(moves[i][0], int(centre)) for i, centre in zip(loud, means.labels_)]
    times = Counter(seen)
    alone = np.array([times[pair] == 1 for pair in seen])
    unclear = float((~(clear & alone)).mean())
    where = tuple(sorted({moves[i][0] for i in loud[~(clear & alone)]}))
    if unclear > MOST_UNCLEAR:
        return Ties((), False, where, f"By their {what}, {unclear:.0%} of moves are unclear, so none was tied.")
    pairs: list[tuple[Move, Move]] = []
    for centre in range(k):
        tied = [moves[i] for i in loud[clear & alone & (means.labels_ == centre)]]
        pairs.extend(pairwise(tied))
    return Ties(tuple(pairs), True, where, f"By their {what}, {1 - unclear:.0%} of moves are clearly of one action.")


def is_acyclic(successors: Successors) -> bool:
    """Whether no walk ever comes back to a state, as where states of different steps are different states."""
    waiting = np.bincount([t for found in successors for t in found], minlength=len(successors))
    ready = np.flatnonzero(waiting == 0).tolist()
    for s in ready:  # grows while it is walked along
        for t in successors[s]:
            waiting[t] -= 1
            if waiting[t] == 0:
                ready.append(t)
    return len(ready) == len(successors)


def _matched(successors: Successors, s: int, u: int, n: int) -> list[Move] | None:
    """Pairs (v, w): the action of s -> v is that of u -> w in every best matching; None if squares had to close.

    Rows are the actions at s: its moves, and as many more as n has, which share a move with another. Columns are the
    moves of u, and room for actions that bump at u or share a move there.
    """
    rows, columns = list(successors[s]), [w for w in successors[u] if w != u]
    weight = _weights(successors, s, u, n)
    best = _heaviest(weight)
    if best < COVERED * len(columns) - 0.5:
        return None
    found = []
    for i, j in zip(*linear_sum_assignment(weight, maximize=True)):
        if i < len(rows) and j < len(columns) and rows[i] != s:
            without = weight.copy()
            without[i, j] = 10 * NEVER
            if _heaviest(without) < best - 0.5:
                found.append((rows[i], columns[j]))
    return found


def _weights(successors: Successors, s: int, u: int, n: int) -> Floats:
    """What each matched pair counts: 1 a square that closes, 0 nothing for or against, `NEVER` one that had to close.

    A square that ends where it began, at s, closes for any two moves that can be undone. Where a bump may hide the
    square that was meant, it counts nothing.
    """
    rows, columns, bumps = list(successors[s]), [w for w in successors[u] if w != u], u in successors[u]
    spare = n if bumps else max(n - len(columns), 0)
    weight = np.zeros((max(n, len(rows)), len(columns) + spare))
    for i, v in enumerate(rows):
        if v in (s, u) or not successors[v]:
            continue
        hidden = (bumps and s in successors[s]) or any(_has_room_for_bumps(successors, x, n) for x in (u, v))
        excused = 0.0 if v in successors[v] else NEVER
        for j, w in enumerate(columns):
            weight[i, j] = excused if w not in successors[v] else float(not (w == s and hidden))
        weight[i, len(columns) :] = float(bumps and u in successors[v])
    weight[:, : len(columns)] += COVERED
    return weight


def _has_room_for_bumps(successors: Successors, s: int, n: int) -> bool:
    """Whether staying in s may be what several actions do."""
    return s in successors[s] and len(successors[s]) < n


def _heaviest(weight: Floats) -> float:
    return float(weight[linear_sum_assignment(weight, maximize=True)].sum())
