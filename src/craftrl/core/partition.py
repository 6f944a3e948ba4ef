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

from collections.abc import Iterable
from itertools import product
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
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
    "merge_gain",
    "refine",
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
NEAR, CLOSE = 12, 5  # codes whose blocks may merge, and whose blocks a code may join
LONGEST = 2  # edges of a block's tree at which it may be divided
TRIES = 4  # ways to divide a block that are tried to the end
GROWTH, TURNS = 3, 8  # of refinement: times as many blocks in a turn, and turns
SOFT = (0.03, 0.3)  # weights of closure on the way, while blocks are still unions of states
GAIN = 1e-6  # nats that count as more


class Moves(NamedTuple):
    """The moves of M codes; code M is a virtual start, from which every trajectory comes.

    code     (n, H): the codes of all trajectories, -1 where one is over
    entries  (2, m, 4): spell of time, agent, the other code, how often; by the code that is left (0) or entered (1)
    starts   (2, M + 2): entries[way, starts[way, c] : starts[way, c + 1]] are those of code c
    share    (K, M + 1): of the moves out of a code, those of each agent
    visits   (2, spells, M + 1): moves out of and into each code, by spell
    places   (M, d): where codes lie; d = 0 where they lie nowhere
    near     (M, k): the codes nearest to each
    tree     (M, e): the neighbours of a code in the shortest tree that joins all places, -1 for none
    """

    code: Ints
    entries: Ints
    starts: Ints
    share: Floats
    visits: Floats
    places: Floats
    near: Ints
    tree: Ints


def count_moves(code: Labels, agent: Labels, n_codes: int, places: Floats | None = None, spells: int = SPELLS) -> Moves:
    """Moves of codes (n, H), -1 where a trajectory is over, by agents (n,).

    places  (M, d): where codes lie; needed where partitions are looked for, since blocks join those near by alone
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
    share /= np.maximum(share.sum(axis=0), 1)
    near = tree = np.empty((n_codes, 0), np.int64)
    if places is None:
        places = np.empty((n_codes, 0))
    else:
        near = cKDTree(places).query(places, min(NEAR + 1, n_codes))[1].reshape(n_codes, -1)[:, 1:].astype(np.int64)
        tree = _spanning_tree(places)
    return Moves(np.asarray(code, dtype=np.int64), entries, starts, share, visits, places, near, tree)


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
def _sweep(moves: Moves, block: Ints, each: Floats, order: Ints, free: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Each code in turn goes to the free block near by where the score is best. Changes `block`.

    Returned are what each block is then worth, and what was gained.
    """
    gained, parts, M = 0.0, _parts(moves, block, len(each)), len(block) - 1
    for i in range(len(order)):
        c = order[i : i + 1]
        a = block[c[0]]
        if not free[a]:
            continue
        best, where, kept, left, allowed = GAIN, a, each, parts, np.zeros_like(free)
        for d in moves.near[c[0], :CLOSE]:
            allowed[block[d]] = free[block[d]]
        allowed[a] = False
        for b in np.flatnonzero(allowed):
            block[c] = b
            new = _again(moves, block, c, a, each)
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


def climb(moves: Moves, block: Labels, rng: np.random.Generator, drives: bool = False) -> tuple[Ints, float]:
    """The best partition near by, and its worth: codes move, blocks merge and split, until nothing helps.

    moves   of codes that have places
    drives  whether what is driven counts
    """
    search = _Climb(moves, with_start(block), rng, drives)
    while search.sweep() + search.merge() + search.split() > GAIN or search.divide_anew() > GAIN:
        pass
    return search.part[:-1], worth(moves, search.part[:-1])


class _Climb:
    """A partition with the start's block, the last, and what each block is worth, while they are changed.

    Each method changes them where that raises the score, and returns by how much.
    """

    def __init__(self, moves: Moves, part: Ints, rng: np.random.Generator, drives: bool) -> None:
        self.moves, self.part, self.rng, self.drives = moves, part, rng, drives
        told, open_ = score(moves, part, int(part[-1]) + 1)
        self.each: Floats = told - open_
        self.tried: set[tuple[int, bytes]] = set()  # codes that were divided in vain, and of how many blocks

    def sweep(self) -> float:
        """Codes go one by one to blocks near by, in turns, until none moves."""
        gain, more = 0.0, 1.0
        while more > GAIN:
            each = np.append(self.each, 0.0)  # with one empty block
            free = np.arange(len(each)) != self.part[-1]  # the start stays alone
            each, more = _sweep(self.moves, self.part, each, self.rng.permutation(len(self.part) - 1), free)
            self._take(self.part, each)
            gain += more
        return gain

    def merge(self) -> float:
        """Blocks merge while that hides less of what is driven than it gains, the best first."""
        total, before = 0.0, -1.0
        while total > before:
            before, tries, part, each = total, [], self.part, self.each
            prior = self._prior(part, len(each))
            for a, b in self._pairs():
                after = self._prior(np.where(part == a, b, part), len(each))
                gain = merge_gain(self.moves, part, each, a, b) + after - prior
                if gain > GAIN:
                    tries.append((gain, a, b))
            touched = np.zeros(len(each), bool)
            for gain, a, b in sorted(tries, reverse=True):
                if touched[a] or touched[b]:
                    continue
                codes = np.flatnonzero((part == a) | (part == b))
                joined = np.where(part == a, b, part)
                hidden = self._shown(joined, codes, part[codes] == a)
                if gain <= hidden:
                    continue
                for c in codes:
                    for way in (0, 1):
                        others = self.moves.entries[way, self.moves.starts[way, c] : self.moves.starts[way, c + 1], 2]
                        touched[part[others]] = True
                touched[[a, b]] = True
                each = _again(self.moves, joined, codes, a, each)
                part, total = joined, total + gain - hidden
            self._take(part, each)
        return total

    def split(self) -> float:
        """Each block is divided once, if that gains more or shows what is driven."""
        names = np.unique(self.part[:-1])
        total = sum(self._divide((int(b), len(self.each))) for b in names)
        self._take(self.part, self.each)
        return total

    def divide_anew(self) -> float:
        """Two neighbours are divided anew: each may have a half of what is one state."""
        total = sum(self._divide(pair) for pair in self._pairs())
        self._take(self.part, self.each)
        return total

    def _divide(self, blocks: tuple[int, int]) -> float:
        """Divide the codes of two blocks, the second of which may be a new one, in the best way found."""
        a, b = blocks
        inside, new = np.flatnonzero((self.part == a) | (self.part == b)), b == len(self.each)
        key = (1 if new else 2, inside.tobytes())
        if key in self.tried or len(inside) < 2:
            return 0.0
        each = np.append(self.each, 0.0) if new else self.each
        before = float(each.sum()) + self._prior(self.part, len(each))
        free, tries = np.isin(np.arange(len(each)), blocks), []
        for i, half in enumerate(_halves(self.moves, inside, self.rng)):
            other = self.part.copy()
            other[inside] = np.where(half, b, a)
            value = _again(self.moves, other, inside, a, each)
            tries.append((float(value.sum()) + self._prior(other, len(each)), -i, other, value))
        for _, _, other, value in sorted(tries, key=lambda item: item[:2], reverse=True)[:TRIES]:
            gained = 1.0
            while gained > GAIN:
                value, gained = _sweep(self.moves, other, value, self.rng.permutation(inside), free)
            if len(np.unique(other[inside])) < 2:
                continue
            gain = float(value.sum()) + self._prior(other, len(each)) - before
            if new:
                gain += self._shown(self.part, inside, other[inside] == b)
            if gain > GAIN:
                self.part, self.each = other, value
                return gain
        self.tried.add(key)
        return 0.0

    def _take(self, part: Ints, each: Floats) -> None:
        """Number the blocks that have codes without gaps, the start's last."""
        names = np.append(np.unique(part[:-1]), part[-1])
        number = np.full(len(each), -1)
        number[names] = np.arange(len(names))
        self.part, self.each = number[part], each[names]

    def _pairs(self) -> list[tuple[int, int]]:
        """Blocks with codes that are near each other."""
        a, b = np.repeat(self.part[:-1], self.moves.near.shape[1]), self.part[self.moves.near.ravel()]
        pairs = np.unique(np.stack([np.maximum(a, b), np.minimum(a, b)], axis=1)[a != b], axis=0)
        return [(int(i), int(j)) for i, j in pairs]

    def _prior(self, part: Ints, B: int) -> float:
        return _log_prior(_parts(self.moves, part, B), len(part) - 1)

    def _shown(self, part: Ints, codes: Ints, side: NDArray[np.bool_]) -> float:
        """What a split of `codes`, one block, by their side shows of what is driven, in nats; 0 if too little."""
        if not self.drives:
            return 0.0
        sides = np.full(len(part), -1)
        sides[codes] = side
        seen = np.append(part[:-1], -1)[self.moves.code]
        found = driven(seen, np.append(sides[:-1], -1)[self.moves.code], int(part.max()) + 1)
        return found if found > ENOUGH else 0.0


def merge_gain(moves: Moves, part: Ints, each: Floats, a: int, b: int) -> float:
    """What the score gains where block a joins block b."""
    new = _again(moves, np.where(part == a, b, part), np.flatnonzero(part == a), a, each)
    return float(new.sum() - each.sum())


def _halves(moves: Moves, inside: Ints, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Ways to cut a block in two: across its longest axes, and where an edge of its tree is longest."""
    x = moves.places[inside] - moves.places[inside].mean(axis=0)
    found = [x @ axis > 0 for axis in np.linalg.svd(x, full_matrices=False)[2][:2]]
    number = np.full(len(moves.places) + 1, -1)
    number[inside] = np.arange(len(inside))
    ends, others = np.repeat(np.arange(len(inside)), moves.tree.shape[1]), number[moves.tree[inside].ravel()]
    ends, others = ends[others > ends], others[others > ends]
    for cut in np.argsort(-((x[ends] - x[others]) ** 2).sum(axis=1))[:LONGEST]:
        left = np.delete(np.arange(len(ends)), cut)
        edges = csr_matrix((np.ones(len(left)), (ends[left], others[left])), shape=(len(inside), len(inside)))
        side = connected_components(edges, directed=False)[1]
        found += [side == side[ends[cut]], side == side[others[cut]]]
    return [half for half in found if 0 < half.sum() < len(inside)]


def refine(moves: Moves, coarse: Iterable[Labels]) -> Ints:
    """Partition refinement from the top, as for bisimulation: the best partition (M,) on the way from coarse ones.

    In turns, codes that are alike in where each agent goes to (and comes from) among the blocks so far become the
    blocks of the next turn. Merging from below cannot do this: noise that persists takes codes of one state to codes of
    another with the same noise, so that no two of them look alike before others have merged. Blocks that are unions of
    states are never divided by noise.
    """
    M, often = len(moves.places), []
    left = np.repeat(np.arange(M + 1), np.diff(moves.starts[0]))
    _, agent, other, count = moves.entries[0].T
    for y in range(len(moves.share)):
        mine = agent == y
        C = csr_matrix((count[mine].astype(np.float64), (left[mine], other[mine])), shape=(M + 1, M + 1))
        often.append((C[:M], C[:, :M].T.tocsr()))
    grown: dict[tuple[bytes, int], list[tuple[float, float, Ints]]] = {}

    def finer(part: Ints, ways: int) -> list[tuple[float, float, Ints]]:
        """Partitions by the moves among the blocks of `part`, what each tells of the agents, and how open it is."""
        key = part.tobytes(), ways
        if key not in grown:
            blocks = np.eye(part.max() + 2)[with_start(part)]
            rows = [C @ blocks for each in often for C in each[:ways]]
            shares = [np.sqrt(row / np.maximum(row.sum(axis=1, keepdims=True), 1)) for row in rows]
            tree, most = linkage(np.concatenate(shares, axis=1), "ward"), min(GROWTH * (part.max() + 1), M // 2)
            cuts = [tidy(fcluster(tree, b, "maxclust")) for b in range(2, most + 1) if b < 20 or b % (b // 10) == 0]
            found = [(*score(moves, with_start(q), int(q.max()) + 2).sum(axis=1), q) for q in cuts]
            grown[key] = [(float(told), float(open_), q) for told, open_, q in found]
        return grown[key]

    best, top = np.zeros(M, np.int64), 0.0
    for first, ways, soft in product(coarse, (1, 2), SOFT):
        part, last = tidy(first), -np.inf
        for _ in range(TURNS):
            found = finer(part, ways)
            if not found:
                break
            told, open_, part = max(found, key=lambda item: item[0] - soft * item[1])
            if told - open_ > top:
                best, top = part, told - open_
            if told - soft * open_ <= last:
                break
            last = told - soft * open_
    return best
