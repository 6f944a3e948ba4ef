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
docs/theory.md has the proofs, and what no data can tell.
"""

from __future__ import annotations

from itertools import product
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from craftrl.core.labels import Labels

__all__ = [
    "ENOUGH",
    "Moves",
    "climb",
    "count_moves",
    "driven",
    "find_partition",
    "merge_gain",
    "score",
    "tidy",
    "with_start",
    "worth",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CONCENTRATIONS = np.array([2.0, 16.0, 128.0])  # rows that scatter strongly, mildly, hardly; a fourth: not at all
SPELLS = 10  # of time: noise and habits may change from one to the next
ENOUGH = 5.0  # nats from which on something is told: agents that do not differ reach 3
DRIVEN_GAPS = (2, 3)  # steps over which a split of a block is compared with the blocks in between
MOST_BLOCKS = 60  # of a first proposal
NEAR, CLOSE = 12, 5  # where codes have places: codes whose blocks may merge, and whose blocks a code may join
LONGEST = 2  # edges of a block's tree at which it may be split
FREQUENT = 8  # next codes by which codes are compared before there are blocks
GAIN = 1e-6  # nats that count as more


class Moves(NamedTuple):
    """The moves of M codes; code M is a virtual start, from which every trajectory comes.

    code     (n, H): the codes of all trajectories, -1 where one is over
    entries  (2, m, 4): spell of time, agent, the other code, how often; by the code that is left (0) or entered (1)
    starts   (2, M + 2): entries[way, starts[way, c] : starts[way, c + 1]] are those of code c
    share    (K, M + 1): of the moves out of a code, those of each agent
    visits   (2, spells, M + 1): moves out of and into each code, by spell
    near     (M, k): codes whose blocks a code may join; k = 0 for any
    tree     (M, d): the neighbours of a code in a tree over the places of codes, -1 for none; d = 0 without places
    """

    code: Ints
    entries: Ints
    starts: Ints
    share: Floats
    visits: Floats
    near: Ints
    tree: Ints


def count_moves(code: Labels, agent: Labels, n_codes: int, places: Floats | None = None, spells: int = SPELLS) -> Moves:
    """Moves of codes (n, H), -1 where a trajectory is over, by agents (n,).

    places  (M, d): where codes lie, if they lie anywhere: then a code may join the blocks of those near it alone
    spells  of time that are told apart
    """
    n, H = code.shape
    spell = np.append(0, 1 + np.arange(H - 1) * (spells - 1) // max(H - 1, spells - 1))
    first = np.full(n, n_codes)
    rows = [
        np.stack([np.full(n, spell[h]), agent, code[:, h - 1] if h else first, code[:, h]], axis=1)[code[:, h] >= 0]
        for h in range(H)
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
    near = tree = np.empty((n_codes, 0), np.int64)
    if places is not None:
        near = cKDTree(places).query(places, min(NEAR + 1, n_codes))[1].reshape(n_codes, -1)[:, 1:].astype(np.int64)
        tree = _spanning_tree(places)
    return Moves(
        np.asarray(code, dtype=np.int64), entries, starts, share / np.maximum(share.sum(axis=0), 1), visits, near, tree
    )


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
def scatter(rows: Floats, centre: Floats) -> float:
    """The log Bayes factor of rows of counts (m, B) that scatter around their centres, against rows that follow them.

    Dirichlet-multinomial, averaged over how strongly they scatter.
    """
    n_kinds = len(CONCENTRATIONS)
    out = np.zeros(n_kinds + 1)
    for i in range(len(rows)):
        size, norm = rows[i].sum(), centre[i].sum()
        if size < 0.5:
            continue
        for k in range(n_kinds):
            out[k] += lgamma(CONCENTRATIONS[k]) - lgamma(size + CONCENTRATIONS[k])
        for j in range(rows.shape[1]):
            if rows[i, j] > 0.5:
                p = centre[i, j] / norm
                for k in range(n_kinds):
                    part = CONCENTRATIONS[k] * p
                    out[k] += lgamma(rows[i, j] + part) - lgamma(part) - rows[i, j] * log(p)
    return out.max() + log(np.exp(out - out.max()).mean())


@njit(cache=True)
def _of_block(b: int, moves: Moves, block: Ints, B: int) -> tuple[float, float]:
    """For one block: evidence that the agents' moves differ beyond their codes, and that its codes' moves differ.

    An agent's centre is what its codes explain; a code's centre what the block does in the spells of its visits.
    """
    inside, K, spells = np.flatnonzero(block == b), len(moves.share), moves.visits.shape[1]
    agents, explained, open_ = np.zeros((K, B)), np.zeros((K, B)), 0.0
    for way in range(2):
        rows, centre = np.zeros((len(inside), B)), np.zeros((len(inside), B))
        pooled, total = np.zeros((spells, B)), np.zeros(spells)
        for i in range(len(inside)):
            c = inside[i]
            total += moves.visits[way, :, c]
            for k in range(moves.starts[way, c], moves.starts[way, c + 1]):
                t, y, d, x = moves.entries[way, k]
                rows[i, block[d]] += x
                pooled[t, block[d]] += x
                if way == 0:
                    agents[y, block[d]] += x
        for i in range(len(inside)):
            for t in range(spells):
                often = moves.visits[way, t, inside[i]]
                if often > 0:
                    centre[i] += often / total[t] * pooled[t]
            if way == 0:
                for y in range(K):
                    explained[y] += moves.share[y, inside[i]] * rows[i]
        open_ += max(0.0, scatter(rows, centre))
    return scatter(agents, explained), open_


@njit(cache=True)
def score(moves: Moves, block: Ints, B: int) -> Floats:
    """(2, B): what each block tells of the agents, and how far it is from closed. `block` (M + 1,) has the start's."""
    out = np.zeros((2, B))
    for b in range(B):
        out[0, b], out[1, b] = _of_block(b, moves, block, B)
    return out


@njit(cache=True)
def _parts(moves: Moves, block: Ints, B: int) -> Ints:
    """How many connected parts each block has in the tree of places; without places every code is a part."""
    parts = np.zeros(B, np.int64)
    for c in range(len(moves.tree)):
        parts[block[c]] += 1
        for d in moves.tree[c]:
            parts[block[c]] -= d > c and block[d] == block[c]
    return parts


@njit(cache=True)
def _log_prior(parts: Ints, n_codes: int) -> float:
    """The log prior of a partition whose blocks have so many parts: which edges of the tree are cut, then which parts
    are one block; a uniform number of blocks, uniform shares."""
    out, B, n = 0.0, 0, parts.sum()
    for part in parts:
        out += lgamma(part + 1.0)
        B += part > 0
    cuts = lgamma(1.0 * n_codes) - lgamma(1.0 * n) - lgamma(n_codes - n + 1.0)
    return out + lgamma(1.0 * B) + lgamma(B + 1.0) - lgamma(1.0 * B + n) - cuts


@njit(cache=True)
def _again(moves: Moves, block: Ints, codes: Ints, left: int, each: Floats) -> Floats:
    """What each block is worth after these codes were moved, out of block `left` among others."""
    hit, each = np.zeros(len(each), np.bool_), each.copy()
    hit[left] = True
    for c in codes:
        hit[block[c]] = True
        for way in range(2):
            for k in range(moves.starts[way, c], moves.starts[way, c + 1]):
                hit[block[moves.entries[way, k, 2]]] = True
    for d in np.flatnonzero(hit):
        told, open_ = _of_block(int(d), moves, block, len(each))
        each[d] = told - open_
    return each


@njit(cache=True)
def _put(moves: Moves, codes: Ints, b: int, block: Ints, each: Floats) -> Floats:
    """Move codes, all of one block, to block b. Changes `block`; returns what each block is then worth."""
    left = block[codes[0]]
    block[codes] = b
    return _again(moves, block, codes, left, each)


@njit(cache=True)
def _sweep(moves: Moves, block: Ints, each: Floats, order: Ints, free: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Each code in turn goes to the free block where the score is best. Changes `block`.

    Returned are what each block is then worth, and what was gained.
    """
    gained, parts, M = 0.0, _parts(moves, block, len(each)), len(block) - 1
    for i in range(len(order)):
        c = order[i : i + 1]
        a = block[c[0]]
        if not free[a]:
            continue
        best, where, kept, left, allowed = GAIN, a, each, parts, free.copy()
        if moves.near.shape[1]:
            allowed[:] = False
            for d in moves.near[c[0], :CLOSE]:
                allowed[block[d]] = free[block[d]]
        allowed[a] = False
        for b in np.flatnonzero(allowed):
            new = _put(moves, c, int(b), block, each)
            block[c] = a
            after = parts.copy()
            after[a] -= 1
            after[b] += 1
            for d in moves.tree[c[0]]:
                if d >= 0:
                    after[a] += block[d] == a
                    after[b] -= block[d] == b
            gain = new.sum() - each.sum() + _log_prior(after, M) - _log_prior(parts, M)
            if gain > best:
                best, where, kept, left = gain, b, new, after
        if where != a:
            block[c] = where
            parts, each, gained = left, kept, gained + best
    return each, gained


def tidy(block: Labels) -> Ints:
    """The same blocks, numbered without gaps."""
    return np.unique(block, return_inverse=True)[1].reshape(np.shape(block))


def with_start(block: Labels) -> Ints:
    """Blocks of codes, and that of the virtual start, which is alone."""
    block = tidy(block)
    return np.append(block, block.max() + 1)


def worth(moves: Moves, block: Labels) -> float:
    """The score of a partition (M,) and its prior, in nats."""
    all_ = with_start(block)
    told, open_ = score(moves, all_, int(all_[-1]) + 1).sum(axis=1)
    return float(told - open_ + _log_prior(_parts(moves, all_, int(all_[-1])), len(block)))


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


def _shown(moves: Moves, block: Ints, codes: Ints, side: Ints) -> float:
    """What a split of `codes`, one block, by their side (0 or 1) shows of what is driven, in nats; 0 if too little."""
    sides = np.full(len(block), -1)
    sides[codes] = side
    seen = np.append(block[:-1], -1)[moves.code]
    found = driven(seen, np.append(sides[:-1], -1)[moves.code], int(block.max()) + 1)
    return found if found > ENOUGH else 0.0


def climb(
    moves: Moves, block: Labels, rng: np.random.Generator, places: Floats | None = None, drives: bool = False
) -> tuple[Ints, float]:
    """The best partition near by, and its worth: codes move, blocks merge and split, until nothing helps.

    places  (M, d): where codes lie, so that blocks are split across where they are long; None for splits at random
    drives  whether what is driven counts
    """
    part, gain = with_start(block), 1.0
    whole: set[bytes] = set()
    while gain > GAIN:
        gain, more = 0.0, 1.0
        while more > GAIN:
            each = np.append(_each(moves, part), 0.0)  # with one empty block
            free = np.arange(len(each)) != part[-1]  # the start stays alone
            more = _sweep(moves, part, each, rng.permutation(len(part) - 1), free)[1]
            part, gain = with_start(part[:-1]), gain + more
        part, merged = _merged(moves, part, drives)
        part, split = _split(moves, part, rng, places, drives, whole)
        gain += merged + split
        if gain <= GAIN and places is not None:
            part, gain = _cut_anew(moves, part, rng, places, whole)
    return part[:-1], worth(moves, part[:-1])


def _each(moves: Moves, part: Ints) -> Floats:
    """What each block is worth, the start's among them."""
    out = score(moves, part, int(part[-1]) + 1)
    return np.asarray(out[0] - out[1])


def _pairs(moves: Moves, part: Ints) -> list[tuple[int, int]]:
    """Blocks that may merge: any two, or those with codes that are near each other."""
    S = int(part[-1])
    if not moves.near.shape[1]:
        return [(a, b) for a in range(S) for b in range(a)]
    a, b = np.repeat(part[:-1], moves.near.shape[1]), part[moves.near.ravel()]
    return [(int(i) // S, int(i) % S) for i in np.unique(np.maximum(a, b) * S + np.minimum(a, b)) if i // S != i % S]


def merge_gain(moves: Moves, part: Ints, each: Floats, a: int, b: int) -> float:
    """What the score gains where block a joins block b."""
    codes = np.flatnonzero(part == a)
    new = _put(moves, codes, b, part, each)
    part[codes] = a
    return float(new.sum() - each.sum())


def _merged(moves: Moves, part: Ints, drives: bool) -> tuple[Ints, float]:
    """Merge blocks while that raises the score, and hides less of what is driven than it gains; the best first."""
    total = 0.0
    while True:
        each, tries, M = _each(moves, part), [], len(part) - 1
        prior = _log_prior(_parts(moves, part, len(each)), M)
        for a, b in _pairs(moves, part):
            after = _parts(moves, np.where(part == a, b, part), len(each))
            gain = merge_gain(moves, part, each, a, b) + _log_prior(after, M) - prior
            if gain > GAIN:
                tries.append((gain, a, b))
        touched, before = np.zeros(len(each), bool), total
        for gain, a, b in sorted(tries, reverse=True):
            if touched[a] or touched[b]:
                continue
            codes = np.flatnonzero((part == a) | (part == b))
            joined = np.where(part == a, b, part)
            hidden = _shown(moves, joined, codes, (part[codes] == a).astype(np.int64)) if drives else 0.0
            if gain <= hidden:
                continue
            for c in codes:
                for way in (0, 1):
                    others = moves.entries[way, moves.starts[way, c] : moves.starts[way, c + 1], 2]
                    touched[part[others]] = True
            touched[[a, b]] = True
            part, total = joined, total + gain - hidden
        if total == before:
            return part, total
        part = with_start(part[:-1])


def _split(
    moves: Moves, part: Ints, rng: np.random.Generator, places: Floats | None, drives: bool, whole: set[bytes]
) -> tuple[Ints, float]:
    """Split each block once, if that raises the score or shows what is driven; `whole` has those that stayed whole."""
    each, total, M = _each(moves, part), 0.0, len(part) - 1
    for b in range(int(part[-1])):
        inside, before = np.flatnonzero(part[:-1] == b), _log_prior(_parts(moves, part, len(each)), M)
        halves = [] if inside.tobytes() in whole else _halves(moves, inside, rng, places)
        for half in halves:
            other, new = part.copy(), len(each)
            value = _put(moves, inside[half], new, other, np.append(each, 0.0))
            gained, free = 1.0, np.isin(np.arange(new + 1), (b, new))
            while gained > GAIN:
                value, gained = _sweep(moves, other, value, rng.permutation(inside), free)
            if len(np.unique(other[inside])) < 2:
                continue
            gain = float(value.sum() - each.sum() + _log_prior(_parts(moves, other, new + 1), M) - before)
            gain += _shown(moves, part, inside, (other[inside] == new).astype(np.int64)) if drives else 0.0
            if gain > GAIN:
                part, each, total = other, value, total + gain
                break
        else:
            whole.add(inside.tobytes())
    return with_start(part[:-1]), total


def _cut_anew(
    moves: Moves, part: Ints, rng: np.random.Generator, places: Floats, known: set[bytes]
) -> tuple[Ints, float]:
    """Cut two neighbouring blocks anew, if that raises the score: each may have a half of what is one state.

    `known` has those that were tried.
    """
    each, total, M = _each(moves, part), 0.0, len(part) - 1
    for a, b in _pairs(moves, part):
        inside, before = np.flatnonzero((part == a) | (part == b)), _log_prior(_parts(moves, part, len(each)), M)
        key = inside.tobytes() + b"two"
        if key in known:
            continue
        known.add(key)
        for half in _halves(moves, inside, rng, places):
            other, free = part.copy(), np.isin(np.arange(len(each)), (a, b))
            other[inside[~half]], other[inside[half]] = a, b
            value, gained = _again(moves, other, inside, a, each), 1.0
            while gained > GAIN:
                value, gained = _sweep(moves, other, value, rng.permutation(inside), free)
            gain = float(value.sum() - each.sum() + _log_prior(_parts(moves, other, len(each)), M) - before)
            if gain > GAIN and len(np.unique(other[inside])) == 2:
                part, each, total = other, value, total + gain
                break
    return part, total


def _halves(moves: Moves, inside: Ints, rng: np.random.Generator, places: Floats | None) -> list[NDArray[np.bool_]]:
    """Ways to cut a block in two: where an edge of its tree is longest, across its longest axes, or at random."""
    if len(inside) < 2:
        return []
    if places is None:
        found = [rng.random(len(inside)) < 0.5 for _ in range(3)]
    else:
        x = places[inside] - places[inside].mean(axis=0)
        found = [x @ axis > 0 for axis in np.linalg.svd(x, full_matrices=False)[2][:2]]
        kept = np.full(len(places) + 1, -1)
        kept[inside] = np.arange(len(inside))
        ends, others = np.repeat(np.arange(len(inside)), moves.tree.shape[1]), kept[moves.tree[inside].ravel()]
        ends, others = ends[others > ends], others[others > ends]
        order = np.argsort(-((x[ends] - x[others]) ** 2).sum(axis=1))
        for cut in order[:LONGEST]:
            left = np.delete(np.arange(len(ends)), cut)
            edges = csr_matrix((np.ones(len(left)), (ends[left], others[left])), shape=(len(inside), len(inside)))
            side = connected_components(edges, directed=False)[1]
            found += [side == side[ends[cut]], side == side[others[cut]]]
    return [half for half in found if 0 < half.sum() < len(inside)]


@njit(cache=True)
def _tree(F: NDArray[np.float64], W: Floats) -> Ints:
    """Merge what is most alike: F (M, G, D) mean features of G groups with weights W (M, G).

    Returns (M - 1, 2): the second joins the first.
    """
    M, G, _ = F.shape
    cost, out, alive = np.full((M, M), np.inf), np.zeros((M - 1, 2), np.int64), np.ones(M, np.bool_)
    for i in range(-M, M - 1):
        a = i + M  # first all costs, one code at a time; then the merges
        if i >= 0:
            a, b = divmod(np.argmin(cost), M)
            out[i, 0], out[i, 1], alive[b] = a, b, False
            for g in range(G):
                w = max(W[a, g] + W[b, g], 1e-9)
                F[a, g] = (F[a, g] * W[a, g] + F[b, g] * W[b, g]) / w
                W[a, g] = w
            cost[b, :] = np.inf
            cost[:, b] = np.inf
        for b in range(M):
            if alive[b] and b != a:
                total = 0.0
                for g in range(G):
                    weight = W[a, g] * W[b, g] / max(W[a, g] + W[b, g], 1e-9)
                    if weight > 0:
                        total += ((F[a, g] - F[b, g]) ** 2).sum() * weight
                cost[a, b] = cost[b, a] = total
    return out


def _cuts(groups: list[Floats], most: int) -> dict[int, Ints]:
    """Partitions by their number of blocks, from the tree of rows of counts; each group (M, columns) counts by itself.

    Square roots of shares (Hellinger) make their distance about a likelihood ratio.
    """
    M, D = len(groups[0]), max(group.shape[1] for group in groups)
    W = np.stack([group.sum(axis=1) for group in groups], axis=1)
    F = np.zeros((M, len(groups), D))
    for g, group in enumerate(groups):
        F[:, g, : group.shape[1]] = np.sqrt(group / np.maximum(W[:, g : g + 1], 1))
    name, out = np.arange(M), {}
    for i, (a, b) in enumerate(_tree(F, W)):
        name[name == b] = a
        if 1 < M - 1 - i <= most:
            out[M - 1 - i] = tidy(name)
    return out


def proposals(moves: Moves, visits: Floats) -> list[Ints]:
    """Partitions worth climbing from, the best first; visits (K, M, H).

    Codes alike in who visits them, when, and where from there are cut into a few blocks; then, in turns, codes alike in
    where each agent goes to among these blocks are cut where a softened score is best.
    """
    K, M, _ = visits.shape
    C = np.zeros((K, M + 1, M + 1))
    left = np.repeat(np.arange(M + 1), np.diff(moves.starts[0]))
    np.add.at(C, (moves.entries[0, :, 1], left, moves.entries[0, :, 2]), moves.entries[0, :, 3])
    who, when, then = [visits.sum(axis=2).T], list(visits), list(visits.transpose(2, 1, 0))
    next_codes = np.argsort(-C.sum(axis=0)[:M], axis=1)[:, :FREQUENT]
    shape = [np.take_along_axis(agent[:M], next_codes, axis=1) for agent in C]
    grown: dict[tuple[bytes, int], list[tuple[Ints, float, float]]] = {}
    seen: dict[bytes, tuple[float, Ints]] = {}

    def regrown(part: Ints, ways: int) -> list[tuple[Ints, float, float]]:
        """Cuts of the tree by where each agent goes from a code (and comes from), among the blocks of `part`."""
        key = part.tobytes(), ways
        if key not in grown:
            to = np.eye(part.max() + 2)[with_start(part)]
            rows = [T @ to for y in range(K) for T in (C[y, :M], C[y, :, :M].T)[:ways]]
            cut = {b: q for b, q in _cuts(rows, MOST_BLOCKS).items() if b < 20 or b % (b // 10) == 0}
            grown[key] = [(q, *score(moves, with_start(q), b + 1).sum(axis=1)) for b, q in cut.items()]
        return grown[key]

    for groups in (who, when, then, when + then, shape, shape + when):
        first = _cuts(groups, M)
        for few, growth, ways, soft in product((2, 4, 8), (3, M), (1, 2), (0.03, 0.3)):
            part, last = first.get(few), -np.inf
            for _ in range(6 if part is not None else 0):
                assert part is not None
                found = [
                    (told - soft * open_ + float(_log_prior(np.bincount(q), M)), open_, q)
                    for q, told, open_ in regrown(part, ways)
                    if q.max() < growth * (part.max() + 1)
                ]
                if not found:
                    break
                best, open_, part = max(found, key=lambda item: item[0])
                seen[part.tobytes()] = best - (1 - soft) * open_, part
                if best <= last:
                    break
                last = best
    return [part for _, part in sorted(seen.values(), key=lambda item: -item[0])]


def find_partition(code: Labels, agent: Labels, climbs: int = 3, seed: int = 0) -> tuple[Ints, float]:
    """The block of every code (M,), and the evidence in nats that there are any: below `ENOUGH` nothing is told.

    code (n, H), in 0..M-1, -1 where a trajectory is over; agent (n,). First codes are joined, then blocks as codes.
    """
    rng, cell = np.random.default_rng(seed), np.arange(int(code.max()) + 1)
    moves, H, K = count_moves(code, agent, len(cell)), code.shape[1], int(agent.max()) + 1
    block, best = np.zeros_like(cell), -np.inf
    while cell.max() > 0:
        joined = np.where(code < 0, -1, cell[code])
        visits = np.zeros((K, cell.max() + 1, H))
        i, h = np.nonzero(joined >= 0)
        np.add.at(visits, (agent[i], joined[i, h], h), 1)
        starts = proposals(count_moves(joined, agent, cell.max() + 1), visits)[:climbs]
        found = [climb(moves, start[cell], rng) for start in starts]
        if not found:
            break
        top, value = max(found, key=lambda item: (item[0].max() > 0, item[1]))
        if value <= best + GAIN:
            break
        block, best, cell = top, value, tidy(top)
    told, open_ = score(moves, with_start(block), int(block.max()) + 2).sum(axis=1)
    return tidy(block), float(told - open_)
