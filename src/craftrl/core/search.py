"""The search for the best partition: refinement from the top, and climbing.

`refine` finds a partition by the moves of codes alone; `climb` changes one, code by code and block by block, while its
score rises. Both look at few of all partitions: codes join blocks near by, in the places that they have.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform

from craftrl.core.labels import Labels
from craftrl.core.partition import (
    ENOUGH,
    GAIN,
    Floats,
    Ints,
    Moves,
    connected_parts,
    driven,
    log_prior,
    merge_gain,
    ratios,
    renumbered,
    rescored,
    score,
    sweep,
    tidy,
    with_start,
    worth,
)

__all__ = ["climb", "refine"]

NEAR, CLOSE = 12, 5  # nearest codes: of those whose blocks may merge, and whose blocks a code may join
LONGEST = 2  # edges of a block's tree at which it may be divided
TRIES = 4  # ways to divide a block that are tried to the end
GROWTH, TURNS = 3, 8  # of refinement: times as many blocks in a turn, and turns
SOFT = (0.03, 0.3)  # weights of closure on the way, while blocks are still unions of states


def refine(moves: Moves, coarse: Iterable[Labels]) -> Ints:
    """Partition refinement from the top, as for bisimulation: the best partition (M,) on the way from coarse ones.

    In turns, codes that are alike in where each agent goes to (and comes from) among the blocks so far become the
    blocks of the next turn. Merging from below cannot do this: noise that persists takes codes of one state to codes of
    another with the same noise, so that no two of them look alike before others have merged. Blocks that are unions of
    states are never divided by noise.
    """
    M = len(moves.places)
    left = np.repeat(np.arange(M + 1), np.diff(moves.starts[0]))
    _, agent, other, often = moves.entries[0].T
    counts = []  # of each agent's moves: to other codes, from other codes, the start's among them
    for y in range(len(moves.share)):
        mine = agent == y
        C = csr_matrix((often[mine].astype(np.float64), (left[mine], other[mine])), shape=(M + 1, M + 1))
        counts.append((C[:M], C[:, :M].T.tocsr()))
    grown: dict[tuple[bytes, int], list[tuple[float, float, Ints]]] = {}

    def finer(part: Ints, ways: int) -> list[tuple[float, float, Ints]]:
        """The gains and costs of partitions by the moves among the blocks of `part`, and these partitions."""
        key = part.tobytes(), ways
        if key not in grown:
            blocks = np.eye(part.max() + 2)[with_start(part)]
            rows = [C @ blocks for each in counts for C in each[:ways]]
            shares = [np.sqrt(row / np.maximum(row.sum(axis=1, keepdims=True), 1)) for row in rows]  # Hellinger
            tree = linkage(np.concatenate(shares, axis=1), "ward")
            most = min(GROWTH * (part.max() + 1), M // 2)
            cuts = [tidy(fcluster(tree, b, "maxclust")) for b in range(2, most + 1) if b < 20 or b % (b // 10) == 0]
            found = [(*score(moves, with_start(q), int(q.max()) + 2).sum(axis=1), q) for q in cuts]
            grown[key] = [(float(gain), float(cost), q) for gain, cost, q in found]
        return grown[key]

    best, top = np.zeros(M, np.int64), 0.0
    for first, ways, soft in product(coarse, (1, 2), SOFT):
        part, last = tidy(first), -np.inf
        for _ in range(TURNS):
            found = finer(part, ways)
            if not found:
                break
            gain, cost, part = max(found, key=lambda item: item[0] - soft * item[1])
            if gain - cost > top:
                best, top = part, gain - cost
            if gain - soft * cost <= last:
                break
            last = gain - soft * cost
    return best


def climb(moves: Moves, block: Labels, rng: np.random.Generator, drives: bool = False) -> tuple[Ints, float]:
    """The best partition near by, and its worth: codes move, blocks merge and split, until nothing helps.

    moves   of codes that have places
    drives  whether what is driven counts
    """
    search, seen, more = _Climb(moves, with_start(block), rng, drives), set[bytes](), True
    # What is driven is weighed where blocks split and merge, not where codes move: so a partition may come again.
    while more and (now := renumbered(search.part).tobytes()) not in seen:
        seen.add(now)
        more = search.sweep() + search.merge() + search.split() > GAIN
        more = more or search.divide_anew() + search.dissolve() > GAIN
    return search.part[:-1], worth(moves, search.part[:-1])


class _Climb:
    """A partition with the start's block, the last, and the ratios of its blocks, while they are changed.

    Each method changes them where that raises the score, and returns by how much.
    """

    def __init__(self, moves: Moves, part: Ints, rng: np.random.Generator, drives: bool) -> None:
        self.moves, self.part, self.rng, self.drives = moves, part, rng, drives
        self.known: Floats = ratios(moves, part, int(part[-1]) + 1)
        self.far = squareform(pdist(moves.places))
        self.near = np.argsort(self.far, axis=1, kind="stable")[:, 1 : NEAR + 1]
        self.close = self.near[:, :CLOSE]
        self.tried: set[tuple[str, bytes]] = set()  # what was done in vain, and the codes with which

    def sweep(self) -> float:
        """Codes go one by one to blocks near by, in turns, until none moves."""
        gain, more = 0.0, 1.0
        while more > GAIN:
            known = _with_empty(self.known)
            free = np.arange(len(known)) != self.part[-1]  # the start stays alone
            order = self.rng.permutation(len(self.part) - 1)
            known, more = sweep(self.moves, self.part, known, order, free, self.close)
            self._take(self.part, known)
            gain += more
        return gain

    def merge(self) -> float:
        """Blocks merge while that hides less of what is driven than it gains, the best first."""
        total, before = 0.0, -1.0
        while total > before:
            before, tries, part, known = total, [], self.part, self.known
            prior = self._prior(part, len(known))
            for a, b in self._pairs():
                after = self._prior(np.where(part == a, b, part), len(known))
                gain = merge_gain(self.moves, part, known, a, b) + after - prior
                if gain > GAIN:
                    tries.append((gain, a, b))
            touched = np.zeros(len(known), bool)
            for gain, a, b in sorted(tries, reverse=True):
                if touched[a] or touched[b]:
                    continue
                codes = np.flatnonzero((part == a) | (part == b))
                joined = np.where(part == a, b, part)
                hidden = self._driven(joined, codes, part[codes] == a)
                if gain <= hidden:
                    continue
                for c in codes:
                    for way in (0, 1):
                        others = self.moves.entries[way, self.moves.starts[way, c] : self.moves.starts[way, c + 1], 2]
                        touched[part[others]] = True
                touched[[a, b]] = True
                known, _ = rescored(self.moves, part, joined, np.flatnonzero(part == a), known)
                part, total = joined, total + gain - hidden
            self._take(part, known)
        return total

    def split(self) -> float:
        """Each block is divided once, if that gains more or shows what is driven."""
        names = np.unique(self.part[:-1])
        total = sum(self._divide((int(b), len(self.known))) for b in names)
        self._take(self.part, self.known)
        return total

    def divide_anew(self) -> float:
        """Two neighbours are divided anew: each may have a half of what is one state."""
        total = sum(self._divide(pair) for pair in self._pairs())
        self._take(self.part, self.known)
        return total

    def _divide(self, blocks: tuple[int, int]) -> float:
        """Divide the codes of two blocks, the second of which may be a new one, in the best way found."""
        a, b = blocks
        inside, new = np.flatnonzero((self.part == a) | (self.part == b)), b == len(self.known)
        key = ("split" if new else "divide anew", inside.tobytes())
        if key in self.tried or len(inside) < 2:
            return 0.0
        known = _with_empty(self.known) if new else self.known
        prior = self._prior(self.part, len(known))
        free, tries = np.isin(np.arange(len(known)), blocks), []
        for i, half in enumerate(_apart(self.moves, inside)):
            other = self.part.copy()
            other[inside] = np.where(half, b, a)
            after, gain = rescored(self.moves, self.part, other, inside, known)
            tries.append((gain + self._prior(other, len(known)) - prior, -i, other, after))
        for gain, _, other, after in sorted(tries, key=lambda item: item[:2], reverse=True)[:TRIES]:
            after, more = self._swept(other, after, inside, free, self.close)
            if len(np.unique(other[inside])) < 2:
                continue
            gain += more
            if new:
                gain += self._driven(self.part, inside, other[inside] == b)
            if gain > GAIN:
                self.part, self.known = other, after
                return gain
        self.tried.add(key)
        return 0.0

    def dissolve(self) -> float:
        """The codes of a block join blocks near by, each its own: noise may have gathered parts of several states."""
        total = 0.0
        for a in np.unique(self.part[:-1]):
            inside, outside = np.flatnonzero(self.part == a), np.flatnonzero(self.part[:-1] != a)
            key = ("dissolve", inside.tobytes())
            if key in self.tried or not len(outside):
                continue
            self.tried.add(key)
            options, other = self.close.copy(), self.part.copy()
            for c in inside:  # the nearest code of each of the nearest blocks
                nearest = outside[np.argsort(self.far[c, outside], kind="stable")]
                first = np.sort(np.unique(self.part[nearest], return_index=True)[1])
                options[c] = np.resize(nearest[first[:CLOSE]], options.shape[1])
            other[inside] = self.part[options[inside, 0]]
            free = ~np.isin(np.arange(len(self.known)), (a, self.part[-1]))
            after, gain = rescored(self.moves, self.part, other, inside, self.known)
            gain += self._prior(other, len(after)) - self._prior(self.part, len(after))
            after, more = self._swept(other, after, inside, free, options)
            gain += more
            if gain > GAIN:
                self.part, self.known, total = other, after, total + gain
        self._take(self.part, self.known)
        return total

    def _swept(
        self, part: Ints, known: Floats, codes: Ints, free: NDArray[np.bool_], options: Ints
    ) -> tuple[Floats, float]:
        """These codes go to free blocks until none moves. Changes `part`; returns its ratios and what was gained."""
        total, more = 0.0, 1.0
        while more > GAIN:
            known, more = sweep(self.moves, part, known, self.rng.permutation(codes), free, options)
            total += more
        return known, total

    def _take(self, part: Ints, known: Floats) -> None:
        """Number the blocks that have codes without gaps, the start's last."""
        names = np.append(np.unique(part[:-1]), part[-1])
        number = np.full(len(known), -1)
        number[names] = np.arange(len(names))
        self.part, self.known = number[part], known[names]

    def _pairs(self) -> list[tuple[int, int]]:
        """Blocks with codes that are near each other."""
        a, b = np.repeat(self.part[:-1], self.near.shape[1]), self.part[self.near.ravel()]
        pairs = np.unique(np.stack([np.maximum(a, b), np.minimum(a, b)], axis=1)[a != b], axis=0)
        return [(int(i), int(j)) for i, j in pairs]

    def _prior(self, part: Ints, B: int) -> float:
        return log_prior(connected_parts(self.moves, part, B), len(part) - 1)

    def _driven(self, part: Ints, codes: Ints, side: NDArray[np.bool_]) -> float:
        """What a split of `codes`, one block, by their side shows of what is driven, in nats; 0 if too little."""
        if not self.drives:
            return 0.0
        sides = np.full(len(part), -1)
        sides[codes] = side
        seen = np.append(part[:-1], -1)[self.moves.code]
        found = driven(seen, np.append(sides[:-1], -1)[self.moves.code], int(part.max()) + 1)
        return found if found > ENOUGH else 0.0


def _apart(moves: Moves, inside: Ints) -> list[NDArray[np.bool_]]:
    """Codes in two parts: across their longest axes, and where an edge of their tree is longest."""
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


def _with_empty(known: Floats) -> Floats:
    """The ratios with those of one more block, which is empty."""
    return np.concatenate([known, np.zeros_like(known[:1])])
