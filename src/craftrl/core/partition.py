"""Which codes are one state? The coarsest partition that is sufficient for the agents, closed and complete.

Every observation has a code, a small number that knows more than the state: codes of one state differ by noise. Blocks
of codes are states where

- they are sufficient: the agents' moves between blocks hold all that codes tell of the agents;
- they are closed: given the agent, codes of one block go to the same blocks, and come from the same;
- they are complete: what is left inside a block moves by itself.

The score of a partition is the evidence of one model: moves from a block may depend on the agent, never on the code,

    score = sum over blocks [ scatter(agents' moves) - scatter(codes' moves out) - scatter(codes' moves in) ],

where scatter is the log Bayes factor of rows of counts that differ from what the rest explains, against rows that
follow it. It is 0 for a single block, and what noise adds to a partition costs more than it brings. `driven` is the
third condition, for a split of one block; a split gains what it shows of it, a merge loses what it hides.
`core.search` looks for the best partition; docs/theory.md has the proofs, and what no data can tell.
"""

from __future__ import annotations

from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform

from craftrl.core.labels import Labels

__all__ = [
    "ENOUGH",
    "GAIN",
    "Floats",
    "Ints",
    "Moves",
    "connected_parts",
    "count_moves",
    "driven",
    "log_prior",
    "merge_gain",
    "ratios",
    "renumbered",
    "rescored",
    "score",
    "sweep",
    "tidy",
    "with_start",
    "worth",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CONCENTRATIONS = np.array([2.0, 16.0, 128.0])  # rows that scatter strongly, mildly, hardly; a fourth: not at all
SPELLS = 10  # of time: noise and habits may change from one to the next
ENOUGH = 5.0  # nats from which on there is evidence: agents that do not differ reach 3
GAIN = 1e-6  # nats that count as more
DRIVEN_GAPS = (2, 3)  # steps over which a split of a block is compared with the blocks in between


class Moves(NamedTuple):
    """The moves of M codes; code M is a virtual start, from which every trajectory comes.

    code     (n, H): the codes of all trajectories, -1 where one is over
    entries  (2, m, 4): spell of time, agent, the other code, how often; by the code that is left (0) or entered (1)
    starts   (2, M + 2): entries[way, starts[way, c] : starts[way, c + 1]] are those of code c
    share    (K, M + 1): of the moves out of a code, those of each agent
    visits   (2, spells, M + 1): moves out of and into each code, by spell
    places   (M, d): where codes lie; d = 0 where they lie nowhere
    tree     (M, e): the neighbours of a code in the shortest tree that joins all places, -1 for none
    """

    code: Ints
    entries: Ints
    starts: Ints
    share: Floats
    visits: Floats
    places: Floats
    tree: Ints


def count_moves(
    code: Labels,
    agent: Labels,
    n_codes: int,
    places: Floats | None = None,
    spells: int = SPELLS,
    from_start: bool = True,
) -> Moves:
    """Moves of codes (n, H), -1 where a trajectory is over, by agents (n,).

    places      (M, d): where codes lie; needed where partitions are looked for, since blocks join those near by alone
    spells      of time that are told apart
    from_start  whether moves from the virtual start count
    """
    n, H = code.shape
    spell = np.append(0, 1 + np.arange(H - 1) * (spells - 1) // max(H - 1, spells - 1))
    first = np.full(n, n_codes)
    rows = [
        np.stack([np.full(n, spell[h]), agent, code[:, h - 1] if h else first, code[:, h]], axis=1)[code[:, h] >= 0]
        for h in range(0 if from_start else 1, H)
    ]
    found, often = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    K = int(agent.max()) + 1
    share, visits = np.zeros((K, n_codes + 1)), np.zeros((2, int(spell.max()) + 1, n_codes + 1))
    np.add.at(share, (found[:, 1], found[:, 2]), often)
    entries, starts = np.zeros((2, len(found), 4), np.int64), np.zeros((2, n_codes + 2), np.int64)
    for way in (0, 1):
        np.add.at(visits[way], (found[:, 0], found[:, 2 + way]), often)
        order = np.argsort(found[:, 2 + way], kind="stable")
        entries[way] = np.column_stack([found[:, :2], found[:, 3 - way], often])[order]
        starts[way] = np.searchsorted(found[order, 2 + way], np.arange(n_codes + 2))
    share /= np.maximum(share.sum(axis=0), 1)
    tree = np.empty((n_codes, 0), np.int64) if places is None else _spanning_tree(places)
    places = np.empty((n_codes, 0)) if places is None else places
    return Moves(np.asarray(code, dtype=np.int64), entries, starts, share, visits, places, tree)


def _spanning_tree(places: Floats) -> Ints:
    """The neighbours of each place in the shortest tree that joins all of them, -1 where there are no more."""
    # Places that fall together have an edge too, of next to no length: csgraph takes zeros for missing edges.
    edges = minimum_spanning_tree(squareform(pdist(places) + 1e-12)).tocoo()
    ends, others = np.concatenate([edges.row, edges.col]), np.concatenate([edges.col, edges.row])
    order = np.argsort(ends, kind="stable")
    often = np.bincount(ends, minlength=len(places))
    tree = np.full((len(places), max(1, often.max())), -1)
    tree[ends[order], np.arange(len(ends)) - np.repeat(np.cumsum(often) - often, often)] = others[order]
    return tree


@njit(cache=True)
def _scatter(rows: Floats, centre: Floats, size: Floats, out: Floats) -> None:
    """Add to out (4,) the log likelihood ratios of counts that scatter around their centres, so strongly as
    `CONCENTRATIONS` say, against counts that follow them: what these columns of the rows add, rows being of this size.
    """
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            if rows[i, j] > 0.5:
                p = centre[i, j] / size[i]
                for k in range(len(CONCENTRATIONS)):
                    part = CONCENTRATIONS[k] * p
                    out[k] += lgamma(rows[i, j] + part) - lgamma(part) - rows[i, j] * log(p)


@njit(cache=True)
def _ratios(b: int, moves: Moves, block: Ints, columns: Ints, B: int) -> Floats:
    """(3, 4) log likelihood ratios of block b, as far as its moves to and from the blocks `columns`: that the agents'
    moves differ beyond their codes, that its codes' moves out differ, and their moves in.

    An agent's centre is what its codes explain; a code's centre what the block does in the spells of its visits.
    """
    inside, K, spells, n = np.flatnonzero(block == b), len(moves.share), moves.visits.shape[1], len(columns)
    out, column = np.zeros((3, len(CONCENTRATIONS) + 1)), np.full(B, -1)
    column[columns] = np.arange(n)
    agents, explained, acted = np.zeros((K, n)), np.zeros((K, n)), np.zeros(K)
    for way in range(2):
        rows, centre, size = np.zeros((len(inside), n)), np.zeros((len(inside), n)), np.zeros(len(inside))
        pooled, total = np.zeros((spells, n)), np.zeros(spells)
        for i in range(len(inside)):
            c = inside[i]
            total += moves.visits[way, :, c]
            size[i] = moves.visits[way, :, c].sum()
            for k in range(moves.starts[way, c], moves.starts[way, c + 1]):
                t, y, d, x = moves.entries[way, k]
                j = column[block[d]]
                if j >= 0:
                    rows[i, j] += x
                    pooled[t, j] += x
                    if way == 0:
                        agents[y, j] += x
        for i in range(len(inside)):
            for t in range(spells):
                often = moves.visits[way, t, inside[i]]
                if often > 0:
                    for j in range(n):
                        centre[i, j] += often / total[t] * pooled[t, j]
            if way == 0:
                for y in range(K):
                    acted[y] += moves.share[y, inside[i]] * size[i]
                    for j in range(n):
                        explained[y, j] += moves.share[y, inside[i]] * rows[i, j]
        _scatter(rows, centre, size, out[1 + way])
        if n == B:
            _normalise(size, out[1 + way])
    _scatter(agents, explained, acted, out[0])
    if n == B:
        _normalise(acted, out[0])
    return out


@njit(cache=True)
def _normalise(size: Floats, out: Floats) -> None:
    """Add to out (4,) what all columns of rows of this size have in common."""
    for x in size:
        for k in range(len(CONCENTRATIONS)):
            out[k] += lgamma(CONCENTRATIONS[k]) - lgamma(x + CONCENTRATIONS[k])


@njit(cache=True)
def ratios(moves: Moves, block: Ints, B: int) -> Floats:
    """(B, 3, 4) log likelihood ratios of all blocks, of which their score is made. `block` (M + 1,) has the start's."""
    out, columns = np.zeros((B, 3, len(CONCENTRATIONS) + 1)), np.arange(B)
    for b in range(B):
        out[b] = _ratios(b, moves, block, columns, B)
    return out


@njit(cache=True)
def _evidence(ratios: Floats) -> float:
    """The log Bayes factor that counts scatter: averaged over how strongly, not at all among it."""
    return ratios.max() + log(np.exp(ratios - ratios.max()).mean())


@njit(cache=True)
def _value(ratios: Floats) -> float:
    return _evidence(ratios[0]) - max(0.0, _evidence(ratios[1])) - max(0.0, _evidence(ratios[2]))


@njit(cache=True)
def score(moves: Moves, block: Ints, B: int) -> Floats:
    """(2, B): what each block tells of the agents, and how far it is from closed. `block` (M + 1,) has the start's."""
    out, known = np.zeros((2, B)), ratios(moves, block, B)
    for b in range(B):
        out[0, b] = _evidence(known[b, 0])
        out[1, b] = max(0.0, _evidence(known[b, 1])) + max(0.0, _evidence(known[b, 2]))
    return out


@njit(cache=True)
def connected_parts(moves: Moves, block: Ints, B: int) -> Ints:
    """How many connected parts each block has in the tree of places; without places every code is a part."""
    parts = np.zeros(B, np.int64)
    for c in range(len(moves.tree)):
        parts[block[c]] += 1
        for d in moves.tree[c]:
            parts[block[c]] -= d > c and block[d] == block[c]
    return parts


@njit(cache=True)
def log_prior(parts: Ints, n_codes: int) -> float:
    """The log prior of a partition whose blocks have so many parts: which edges of the tree are cut, then which parts
    are one block; a uniform number of blocks, uniform shares."""
    out, B, n = 0.0, 0, parts.sum()
    for part in parts:
        out += lgamma(part + 1.0)
        B += part > 0
    cuts = lgamma(1.0 * n_codes) - lgamma(1.0 * n) - lgamma(n_codes - n + 1.0)
    return out + lgamma(1.0 * B) + lgamma(B + 1.0) - lgamma(1.0 * B + n) - cuts


@njit(cache=True)
def rescored(moves: Moves, was: Ints, block: Ints, codes: Ints, known: Floats) -> tuple[Floats, float]:
    """The ratios of all blocks after these codes went to other blocks, and what the score gains.

    was, block  (M + 1,) the blocks before and after
    known       (B, 3, 4) the ratios before
    """
    B, gain = len(known), 0.0
    new, changed, hit = known.copy(), np.zeros(B, np.bool_), np.zeros(B, np.bool_)
    for c in codes:
        changed[was[c]] = changed[block[c]] = True
        for way in range(2):
            for k in range(moves.starts[way, c], moves.starts[way, c + 1]):
                hit[block[moves.entries[way, k, 2]]] = True
    columns, all_ = np.flatnonzero(changed), np.arange(B)
    for b in range(B):
        if changed[b]:
            new[b] = _ratios(b, moves, block, all_, B)
        elif hit[b]:  # its codes are the same, so that the other columns are
            new[b] += _ratios(b, moves, block, columns, B)
            new[b] -= _ratios(b, moves, was, columns, B)
        if hit[b] or changed[b]:
            gain += _value(new[b]) - _value(known[b])
    return new, gain


def tidy(block: Labels) -> Ints:
    """The same blocks, numbered without gaps."""
    return np.unique(block, return_inverse=True)[1].reshape(np.shape(block))


def renumbered(block: Labels) -> Ints:
    """The same blocks (m,), numbered as they appear: the first entry is in block 0."""
    _, first, number = np.unique(block, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def with_start(block: Labels) -> Ints:
    """Blocks of codes, and that of the virtual start, which is alone."""
    block = tidy(block)
    return np.append(block, block.max() + 1)


def worth(moves: Moves, block: Labels) -> float:
    """The score of a partition (M,) and its prior, in nats."""
    all_ = with_start(block)
    gain, cost = score(moves, all_, int(all_[-1]) + 1).sum(axis=1)
    return float(gain - cost + log_prior(connected_parts(moves, all_, int(all_[-1])), len(block)))


@njit(cache=True)
def driven(block: Ints, side: Ints, n_blocks: int) -> float:
    """The log Bayes factor that a split of one block is driven: it depends on the blocks visited in between.

    block (n, H) has the blocks visited, -1 where a trajectory is over; side (n, H) the part of the split, 0, 1, ...,
    -1 outside the block that is split. Noise moves by itself: given its value some steps before, which blocks came in
    between says nothing of its value now. That holds also for noise that persists, is frozen or mimics the state.
    """
    R, out = side.max() + 1, 0.0
    for gap in DRIVEN_GAPS:
        counts = np.zeros((R, n_blocks + 1, R))  # the last entry is for all blocks in between
        for i in range(block.shape[0]):
            for h in range(block.shape[1] - gap):
                if side[i, h] >= 0 and side[i, h + gap] >= 0:
                    counts[side[i, h], block[i, h + 1], side[i, h + gap]] += 1
                    counts[side[i, h], n_blocks, side[i, h + gap]] += 1
        for r in range(R):
            for b in range(n_blocks + 1):
                if counts[:, b].sum() > 0:
                    one = lgamma(0.5 * R) - lgamma(counts[r, b].sum() + 0.5 * R) - R * lgamma(0.5)
                    for x in counts[r, b]:
                        one += lgamma(x + 0.5)
                    out += one if b < n_blocks else -one
    return out


@njit(cache=True)
def sweep(
    moves: Moves, block: Ints, known: Floats, order: Ints, free: NDArray[np.bool_], options: Ints
) -> tuple[Floats, float]:
    """Each code in turn goes to the free block of one of its options, where the score is best. Changes `block`.

    options (M, k) are codes. Returned are the ratios that the blocks then have, and what was gained. This is a part of
    the search, but stands here: what numba keeps on disk stays when a compiled function of another file changes.
    """
    gained, parts, M, was = 0.0, connected_parts(moves, block, len(known)), len(block) - 1, block.copy()
    for i in range(len(order)):
        c = order[i : i + 1]
        a = block[c[0]]
        if not free[a]:
            continue
        best, where, kept, left, allowed = GAIN, a, known, parts, np.zeros_like(free)
        for d in options[c[0]]:
            allowed[block[d]] = free[block[d]]
        allowed[a] = False
        for b in np.flatnonzero(allowed):
            block[c] = b
            new, gain = rescored(moves, was, block, c, known)
            block[c] = a
            after = parts.copy()
            after[a] -= 1
            after[b] += 1
            for d in moves.tree[c[0]]:
                if d >= 0:
                    after[a] += block[d] == a
                    after[b] -= block[d] == b
            gain += log_prior(after, M) - log_prior(parts, M)
            if gain > best:
                best, where, kept, left = gain, b, new, after
        if where != a:
            block[c] = was[c] = where
            parts, known, gained = left, kept, gained + best
    return known, gained


def merge_gain(moves: Moves, part: Ints, known: Floats, a: int, b: int) -> float:
    """What the score gains where block a joins block b."""
    return float(rescored(moves, part, np.where(part == a, b, part), np.flatnonzero(part == a), known)[1])
