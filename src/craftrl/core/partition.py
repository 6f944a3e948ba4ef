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
third condition, for a split of one block. docs/partition.md has the proofs, and what no data can tell.
"""

from __future__ import annotations

from itertools import combinations, product
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import gammaln

from craftrl.core.labels import Labels

__all__ = ["ENOUGH", "Moves", "count_moves", "dirichlet_evidence", "driven", "find_partition", "score", "tidy"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
CONCENTRATIONS = np.array([2.0, 16.0, 128.0])  # rows that scatter strongly, mildly, hardly; a fourth: not at all
SPELLS = 10  # of time: noise and habits may change from one to the next
CHARGED = 0.2  # share of the uniform prior on partitions that is charged for the choice among very many
ENOUGH = 5.0  # nats from which on something is told: agents that do not differ reach 3
MOST_BLOCKS = 60  # of a first proposal
FREQUENT = 8  # next codes by which codes are compared before there are blocks
GAIN = 1e-6  # nats that count as more


class Moves(NamedTuple):
    """The moves of M codes; code M is a virtual start, from which every trajectory comes.

    table        (m, 5): spell, agent, code, next code, how often
    starts, order  of the moves out of (0) and into (1) each code: order[way][starts[way][c] : starts[way][c + 1]]
    share        (K, M + 1): of the moves out of a code, those of each agent
    visits       (2, spells, M + 1): moves out of and into each code, by spell
    """

    table: Ints
    starts: Ints
    order: Ints
    share: Floats
    visits: Floats


def count_moves(code: Labels, agent: Labels, n_codes: int) -> Moves:
    """Moves of codes (n, H), -1 where a trajectory is over, by agents (n,)."""
    n, H = code.shape
    spell = np.append(0, 1 + np.arange(H - 1) * (SPELLS - 1) // max(H - 1, SPELLS - 1))
    first = np.full(n, n_codes)
    rows = [
        np.stack([np.full(n, spell[h]), agent, code[:, h - 1] if h else first, code[:, h]], axis=1)[code[:, h] >= 0]
        for h in range(H)
    ]
    found, often = np.unique(np.concatenate(rows), axis=0, return_counts=True)
    table = np.column_stack([found, often]).astype(np.int64)
    K = int(agent.max()) + 1
    share, visits = np.zeros((K, n_codes + 1)), np.zeros((2, int(spell.max()) + 1, n_codes + 1))
    np.add.at(share, (table[:, 1], table[:, 2]), table[:, 4])
    for way in (0, 1):
        np.add.at(visits[way], (table[:, 0], table[:, 2 + way]), table[:, 4])
    starts = np.stack([np.searchsorted(np.sort(table[:, k]), np.arange(n_codes + 2)) for k in (2, 3)])
    order = np.stack([np.argsort(table[:, k], kind="stable") for k in (2, 3)])
    return Moves(table, starts, order, share / np.maximum(share.sum(axis=0), 1), visits)


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
def _tables(moves: Moves, block: Ints, B: int) -> tuple[NDArray[np.float32], Floats]:
    """Moves of codes to blocks and from blocks (2, spells, M + 1, B), and of each agent between blocks (K, B, B)."""
    flow = np.zeros((2, moves.visits.shape[1], len(block), B), np.float32)
    agents = np.zeros((len(moves.share), B, B))
    for i in range(len(moves.table)):
        t, y, c, d, x = moves.table[i]
        flow[0, t, c, block[d]] += x
        flow[1, t, d, block[c]] += x
        agents[y, block[c], block[d]] += x
    return flow, agents


@njit(cache=True)
def _of_block(b: int, moves: Moves, block: Ints, flow: NDArray[np.float32], agents: Floats) -> tuple[float, float]:
    """For one block: evidence that the agents' moves differ beyond their codes, and that its codes' moves differ.

    An agent's centre is what its codes explain; a code's centre what the block does in the spells of its visits.
    """
    inside, B, open_ = np.flatnonzero(block == b), flow.shape[3], 0.0
    explained = np.zeros((len(moves.share), B))
    for way in range(2):
        rows, centre = np.zeros((len(inside), B)), np.zeros((len(inside), B))
        for t in range(flow.shape[1]):
            pooled, total = np.zeros(B), 1e-9
            for c in inside:
                if moves.visits[way, t, c] > 0:
                    total += moves.visits[way, t, c]
                    pooled += flow[way, t, c]
            for i in range(len(inside)):
                often = moves.visits[way, t, inside[i]]
                if often > 0:
                    rows[i] += flow[way, t, inside[i]]
                    centre[i] += often / total * pooled
        open_ += max(0.0, scatter(rows, centre))
        if way == 0:
            for y in range(len(moves.share)):
                for i in range(len(inside)):
                    explained[y] += moves.share[y, inside[i]] * rows[i]
    return scatter(agents[:, b], explained), open_


@njit(cache=True)
def score(moves: Moves, block: Ints, B: int) -> Floats:
    """(2, B): what each block tells of the agents, and how far it is from closed. `block` (M + 1,) has the start's."""
    flow, agents = _tables(moves, block, B)
    out = np.zeros((2, B))
    for b in range(B):
        out[0, b], out[1, b] = _of_block(b, moves, block, flow, agents)
    return out


@njit(cache=True)
def _log_prior(sizes: Ints) -> float:
    """The part of the log prior that is charged: a uniform number of blocks, uniform shares of codes."""
    out, B = 0.0, 0
    for size in sizes:
        out += lgamma(size + 1.0)
        B += size > 0
    return CHARGED * (out + lgamma(1.0 * B) + lgamma(B + 1.0) - lgamma(1.0 * B + sizes.sum()))


@njit(cache=True)
def _put(moves: Moves, c: int, b: int, block: Ints, flow: NDArray[np.float32], agents: Floats) -> NDArray[np.bool_]:
    """Move code c to block b. Returns which blocks' scores that changes."""
    a = block[c]
    hit = np.zeros(flow.shape[3], np.bool_)
    hit[a] = hit[b] = True
    for way in range(2):
        by = 1 - way  # moves into c change the rows of those that they come from, and the other way round
        for k in range(moves.starts[by, c], moves.starts[by, c + 1]):
            i = moves.order[by, k]
            t, y, d, x = moves.table[i, 0], moves.table[i, 1], moves.table[i, 2 + way], moves.table[i, 4]
            flow[way, t, d, a] -= x
            flow[way, t, d, b] += x
            hit[block[d]] = True
            if way == 0 and d != c:
                agents[y, block[d], a] -= x
                agents[y, block[d], b] += x
            elif way == 1:
                agents[y, a, block[d]] -= x
                agents[y, b, b if d == c else block[d]] += x
    block[c] = b
    return hit


@njit(cache=True)
def _sweep(moves: Moves, block: Ints, B: int, order: Ints, free: NDArray[np.bool_]) -> float:
    """Each code in turn goes to the free block where the score is best. Changes `block`; returns what was gained."""
    flow, agents = _tables(moves, block, B)
    out = score(moves, block, B)
    worth, gained = out[0] - out[1], 0.0
    sizes = np.bincount(block[:-1], minlength=B)
    for i in range(len(order)):
        c = int(order[i])
        a = block[c]
        best, where, kept = GAIN, a, worth
        for b in range(B if free[a] else 0):
            if b == a or not free[b]:
                continue
            hit, new = _put(moves, c, b, block, flow, agents), worth.copy()
            for d in np.flatnonzero(hit):
                told, open_ = _of_block(int(d), moves, block, flow, agents)
                new[d] = told - open_
            _put(moves, c, a, block, flow, agents)
            after = sizes.copy()
            after[a] -= 1
            after[b] += 1
            gain = new.sum() - worth.sum() + _log_prior(after) - _log_prior(sizes)
            if gain > best:
                best, where, kept = gain, b, new
        if where != a:
            _put(moves, c, where, block, flow, agents)
            sizes[a] -= 1
            sizes[where] += 1
            worth, gained = kept, gained + best
    return gained


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
    return float(told - open_ + _log_prior(np.bincount(all_[:-1])))


def climb(moves: Moves, block: Labels, rng: np.random.Generator, splits: int = 3) -> tuple[Ints, float]:
    """The best partition near by, and its worth: codes move, blocks merge and split, until nothing helps."""
    last, now, part = -np.inf, worth(moves, block), with_start(block)
    while now > last + GAIN:
        last = now
        gain = 1.0
        while gain > GAIN:
            free = np.arange(part.max() + 2) != part[-1]  # with one empty block; the start stays alone
            gain = _sweep(moves, part, len(free), rng.permutation(len(part) - 1), free)
            part = with_start(part[:-1])
        part = with_start(merge_down(moves, part[:-1]))
        now = worth(moves, part[:-1])
        for b in range(int(part[-1])):
            inside = np.flatnonzero(part == b)
            for _ in range(splits if len(inside) > 1 else 0):
                other, new = part.copy(), int(part.max()) + 1
                other[inside[rng.random(len(inside)) < 0.5]] = new
                refine(moves, other, inside, (b, new), rng)
                if (value := worth(moves, other[:-1])) > now + GAIN:
                    part, now = with_start(other[:-1]), value
                    break
    return part[:-1], now


def refine(moves: Moves, part: Ints, inside: Ints, between: tuple[int, int], rng: np.random.Generator) -> None:
    """Move the codes `inside` between two blocks while the score rises. Changes `part` (M + 1,)."""
    B = int(part.max()) + 1
    free = np.isin(np.arange(B), between)
    while _sweep(moves, part, B, rng.permutation(inside), free) > GAIN:
        pass


def merge_down(moves: Moves, block: Labels) -> Ints:
    """Merge the two blocks whose merging raises the score most, until none does."""
    block, now = tidy(block), worth(moves, block)
    while True:
        tries = [tidy(np.where(block == a, b, block)) for a, b in combinations(range(block.max() + 1), 2)]
        values = [worth(moves, q) for q in tries]
        if max(values, default=-np.inf) <= now:
            return block
        best = int(np.argmax(values))
        block, now = tries[best], values[best]


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
    np.add.at(C, tuple(moves.table[:, 1:4].T), moves.table[:, 4])
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
                    (told - soft * open_ + float(_log_prior(np.bincount(q))), open_, q)
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


def dirichlet_evidence(counts: Floats) -> Floats:
    """The log evidence (...,) of counts (..., m) under one unknown distribution (Jeffreys' prior)."""
    m = counts.shape[-1]
    each = (gammaln(counts + 0.5) - gammaln(0.5)).sum(axis=-1)
    return np.asarray(each + gammaln(0.5 * m) - gammaln(counts.sum(axis=-1) + 0.5 * m))


def driven(block: Labels, side: Labels, n_blocks: int, gaps: tuple[int, ...] = (2, 3)) -> float:
    """The log Bayes factor that a split of one block is driven: it depends on the blocks visited in between.

    block (n, H) has the blocks visited, -1 where a trajectory is over; side (n, H) the part of the split, 0, 1, ...,
    -1 outside the block that is split. Noise moves by itself: given its value some steps before, which blocks came in
    between says nothing of its value now. That holds also for noise that persists, is frozen or mimics the state.
    """
    R, out = int(side.max()) + 1, 0.0
    for gap in gaps:
        before, between, now = side[:, :-gap], block[:, 1 : 1 - gap], side[:, gap:]
        back = (before >= 0) & (now >= 0)
        if not back.any():
            continue
        counts = np.zeros((R, n_blocks, R))
        np.add.at(counts, (before[back], between[back], now[back]), 1)
        counts = counts[:, counts.sum(axis=(0, 2)) > 0]
        out += dirichlet_evidence(counts).sum() - dirichlet_evidence(counts.sum(axis=1)).sum()
    return float(out)
