"""From embeddings to states: cells, the partition of cells, and hidden Markov chains that correct misread observations.

An embedding is cut into small cells, and cells are joined to states by what the agents and moves say
(`core.partition`). Cells are not pure, and single observations are misread. So states are *settled*: each agent's chain
of states emits fine cells, any of them with a small probability; the smoothed state of every observation is what its
nearest neighbours in the embedding have, so that states are functions of one observation again. Settled states are
scored like any partition, on cells drawn anew inside them: every misread observation is an impossible move, and lowers
the score. States are split, dropped and settled again while

    gain of A over B = score(A) - score(B) + what is driven in B, which A shows - what is driven in A, which B shows

rises. Nothing else decides: there is no threshold on the embedding, no start, and no number of states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from craftrl.arrays import Floats
from craftrl.core.labels import Labels
from craftrl.core.partition import (
    ENOUGH,
    Moves,
    count_moves,
    driven,
    find_partition,
    refine,
    score,
    tidy,
    with_start,
    worth,
)
from craftrl.progress import tell

__all__ = ["Found", "find_states"]

COARSE = (80, 100)  # cells of the two first partitions: few, since cells that are not pure are mended afterwards
FINE = 500  # cells that the chains emit
SCORED, LEAST = 100, 4  # cells on which states are scored, and how many a state has at least
SLIP = 0.01  # the probability that an observation is read as any other
STEPS = 5  # of expectation-maximisation: many drift where moves remember more than the state
NEIGHBOURS = 7
SURE = 1.0  # nats that a change must gain
TRIED = 3  # changes of a kind that are tried at a time, the most promising ones
LEAST_VISITS, LEAST_SHARE = 5, 0.01  # of a state inside another, to count as a part of it
ROUNDS = 40  # of changes at most


@dataclass(frozen=True)
class Found:
    """States of all observations.

    labels    int (n, H), -1 where a trajectory is over
    evidence  nats that speak for these states, against none
    rounds    what was tried and taken: the change, the gain in nats, and the number of states afterwards
    merges    for each number of states below that found: labels of the states joined (S,), and the nats that it costs
    """

    labels: Labels
    evidence: float
    rounds: tuple[tuple[str, float, int], ...] = ()
    merges: tuple[tuple[Labels, float], ...] = ()


@dataclass(frozen=True)
class _Settled:
    """States that are functions of one observation, and the cells on which they are scored."""

    labels: Labels
    worth: float
    code: Labels
    owner: Labels
    moves: Moves

    @property
    def n_states(self) -> int:
        return int(self.labels.max()) + 1


@dataclass(eq=False)
class _Data:
    """What stays the same: embeddings z (m, d) of the observations that are there, (i, h) their places, and cells."""

    z: Floats
    there: NDArray[np.bool_]
    agent: Labels
    seed: int
    smooth: bool = True
    fine: Labels = field(init=False)
    near: Labels = field(init=False)

    def __post_init__(self) -> None:
        self.fine = self.cells(min(FINE, max(2, len(self.z) // 4)), 1)
        _, near = cKDTree(self.z).query(self.z, min(NEIGHBOURS, len(self.z)), workers=-1)
        self.near = np.asarray(near).reshape(len(self.z), -1)
        means = np.stack([np.bincount(self.fine, column) for column in self.z.T], axis=1)
        self.visits = np.bincount(self.fine)
        self.centres = means / self.visits[:, None]

    def cells(self, k: int, n_init: int) -> Labels:
        """The embeddings in k small clusters."""
        from sklearn.cluster import MiniBatchKMeans  # dear to import

        k = min(k, len(np.unique(self.z[:5000], axis=0)))
        means = MiniBatchKMeans(k, n_init=n_init, random_state=self.seed, batch_size=4096)
        return tidy(means.fit_predict(self.z))

    def placed(self, values: Labels) -> Labels:
        """Values (m,) of observations as (n, H), -1 where a trajectory is over."""
        out = np.full(self.there.shape, -1)
        out[self.there] = values
        return out


def find_states(
    z: Floats, there: NDArray[np.bool_], agent: Labels, seed: int = 0, smooth: bool = True, drives: bool = True
) -> Found:
    """States of observations whose embeddings are z (n, H, d), of trajectories of these agents (n,).

    there   bool (n, H): False where a trajectory is over
    smooth  whether misread observations are corrected by moves
    drives  whether what is driven counts, which decides between states that agents and moves alone do not tell apart
    """
    data = _Data(np.asarray(z[there], dtype=np.float64), there, agent, seed, smooth)
    firsts = []
    for k in COARSE:
        tell("cells")
        cells = data.cells(k, 3)
        code = data.placed(cells)
        centres = np.stack([data.z[cells == c].mean(axis=0) for c in range(cells.max() + 1)])
        part = _completed(code, agent, centres, seed) if drives else find_partition(code, agent, 1, seed)[0]
        firsts.append(_settle(data, np.eye(part.max() + 1)[part[cells]]))
    gain: Callable[[_Settled, _Settled], float] = _gain if drives else _score_gain
    best = now = max(firsts, key=lambda first: gain(first, firsts[0]))
    rounds = [("partition", best.worth, best.n_states)]
    for _ in range(ROUNDS):
        tell("states")
        tried = [(gain(new, now), name, new) for name, new in _changes(data, now, drives)]
        tried = [item for item in tried if abs(item[0]) > 1e-6]
        if not tried:
            break
        behind = now is not best  # one step that does not gain is allowed, never two
        won, name, now = max(tried, key=lambda item: item[0] - 1e3 * (item[1] == "again" and item[0] <= SURE))
        if gain(now, best) > SURE:
            best = now
            rounds.append((name, won, now.n_states))
        elif behind:
            break
    told, open_ = score(best.moves, with_start(best.owner), best.n_states + 1).sum(axis=1)
    return Found(best.labels, float(told - open_), tuple(rounds), tuple(_merges(best)))


def _completed(code: Labels, agent: Labels, centres: Floats, seed: int) -> Labels:
    """The partition of codes (n, H) by agents and closure, with splits of blocks that are driven, until none is left.

    Splits are looked for among halves of a block in the embedding, `centres` (M, d).
    """
    rng = np.random.default_rng(seed)
    part: Labels = find_partition(code, agent, 1, seed)[0]
    moves = count_moves(code, agent, len(centres))
    for _ in range(12):
        before = part
        for b in range(part.max() + 1):
            inside = np.flatnonzero(part == b)
            halves = _halves(centres[inside], seed)
            evidence = [_driven_codes(code, part, inside, half) for half in halves]
            if max(evidence, default=0.0) > ENOUGH:
                part = part.copy()
                part[inside[halves[int(np.argmax(evidence))] == 1]] = part.max() + 1
        part, now = climb_splits(moves, part, centres, seed, rng)
        part = _merged(moves, code, part, now)
        if len(np.unique(part)) == len(np.unique(before)) == len(np.unique(part * len(part) + before)):
            break
    return tidy(part)


def climb_splits(
    moves: Moves, part: Labels, centres: Floats, seed: int, rng: np.random.Generator
) -> tuple[Labels, float]:
    """Split blocks in halves of the embedding where the score asks for it; the partition and its worth."""
    now = worth(moves, part)
    for b in range(int(part.max()) + 1):
        inside = np.flatnonzero(part == b)
        for half in _halves(centres[inside], seed):
            other, new = with_start(part), int(part.max()) + 2
            other[inside[half == 1]] = new
            refine(moves, other, inside, (b, new), rng)
            if (value := worth(moves, other[:-1])) > now + 1e-6:
                part, now = other[:-1], value
                part = np.where(part == new, part[part != new].max() + 1, part)
                break
    return part, now


def _merged(moves: Moves, code: Labels, part: Labels, now: float) -> Labels:
    """Merge blocks where the score asks for it and nothing that is driven would be hidden."""
    part = tidy(part)
    while True:
        pairs = [(a, b) for a in range(part.max() + 1) for b in range(a)]
        tries = sorted(((worth(moves, np.where(part == a, b, part)), a, b) for a, b in pairs), reverse=True)[:12]
        for value, a, b in tries:
            inside = np.flatnonzero((part == a) | (part == b))
            joined = tidy(np.where(part == a, b, part))
            if value > now and _driven_codes(code, joined, inside, (part[inside] == a).astype(int)) < ENOUGH:
                part, now = joined, value
                break
        else:
            return part


def _driven_codes(code: Labels, part: Labels, inside: Labels, side: Labels) -> float:
    """Evidence that a split of the codes `inside`, one block, is driven."""
    sides = np.full(len(part) + 1, -1)
    sides[inside] = side
    blocks = np.append(part, -1)
    return driven(blocks[code], sides[code], int(part.max()) + 1)


def _halves(points: Floats, seed: int, tries: int = 3) -> list[Labels]:
    """Different ways to cut points (m, d) in two clusters, 0 and 1."""
    from sklearn.cluster import KMeans  # dear to import

    if len(np.unique(points, axis=0)) < 2:
        return []
    found = [KMeans(2, n_init=1, random_state=seed + k).fit_predict(points) for k in range(tries)]
    return [np.array(half) for half in {tuple(half ^ half[0]) for half in found}]


def _settle(data: _Data, posterior: Floats) -> _Settled:
    """States near these probabilities (m, B) of all observations, as functions of one observation."""
    from sklearn.cluster import KMeans  # dear to import

    if data.smooth:
        posterior = _chains(data, posterior)[0]
    B = posterior.shape[1]
    read = posterior.argmax(axis=1)
    votes = np.zeros((len(read), B), dtype=np.int32)
    for column in data.near.T:
        votes[np.arange(len(read)), read[column]] += 1
    labels = tidy(votes.argmax(axis=1))
    code = np.zeros(len(labels), dtype=np.int64)
    owner: list[int] = []
    for b in range(labels.max() + 1):
        mine = np.flatnonzero(labels == b)
        cells, cell_of = np.unique(data.fine[mine], return_inverse=True)
        k = min(len(cells), max(LEAST, round(SCORED * len(mine) / len(labels))))
        weight = np.bincount(cell_of)
        if k < len(cells):
            group = KMeans(k, n_init=1, random_state=data.seed).fit_predict(data.centres[cells], sample_weight=weight)
        else:
            group = np.arange(k)
        code[mine] = len(owner) + tidy(group)[cell_of]
        owner += [b] * (int(tidy(group).max()) + 1)
    owners = np.array(owner)
    codes = data.placed(code)
    moves = count_moves(codes, data.agent, len(owners))
    return _Settled(data.placed(labels), worth(moves, owners), codes, owners, moves)


def _chains(data: _Data, posterior: Floats, steps: int = STEPS) -> tuple[Floats, float]:
    """Expectation-maximisation of the agents' chains: posteriors (m, B) of the states, and the log-likelihood.

    Each agent has its own moves, drawn to those of all; emissions and starts are common.
    """
    n, H = data.there.shape
    B, M = posterior.shape[1], len(data.centres)
    q = np.zeros((n, H, B))
    q[data.there] = posterior
    who = [data.agent == k for k in range(int(data.agent.max()) + 1)]
    follows = data.there[:, 1:, None]
    moves = [np.einsum("nha,nhb->ab", q[i, :-1] * follows[i], q[i, 1:], optimize=True) for i in who]
    often, total = data.visits / data.visits.sum(), 0.0
    for _ in range(steps):
        pooled, first = sum(moves) + 0.5 / B, q[:, 0].sum(axis=0) + 0.5 / B
        pooled = pooled / pooled.sum(axis=1, keepdims=True)
        flat = q[data.there]
        seen = np.stack([np.bincount(data.fine, flat[:, b], minlength=M) for b in range(B)], axis=1)
        emitted = (1 - SLIP) * seen / np.maximum(seen.sum(axis=0), 1e-9) + SLIP * often[:, None]
        like = np.ones((n, H, B))
        like[data.there] = emitted[data.fine]
        q, total = np.zeros((n, H, B)), 0.0
        for k, i in enumerate(who):
            own = moves[k] + 2 * pooled
            own /= own.sum(axis=1, keepdims=True)
            q[i], moves[k], one = _smoothed(like[i], data.there[i], own, first / first.sum())
            total += one
    return q[data.there], total


def _smoothed(like: Floats, there: NDArray[np.bool_], T: Floats, first: Floats) -> tuple[Floats, Floats, float]:
    """Forward and backward: posteriors (n, H, B), expected moves (B, B) and the log-likelihood; like (n, H, B)."""
    H = like.shape[1]
    ahead, back, norm, moves = np.zeros_like(like), np.ones_like(like), np.ones(like.shape[:2]), np.zeros_like(T)
    for h in range(H):
        x = like[:, h] * (ahead[:, h - 1] @ T if h else first)
        norm[:, h] = x.sum(axis=1)
        ahead[:, h] = x / norm[:, h : h + 1]
    for h in range(H - 2, -1, -1):
        x = like[:, h + 1] * back[:, h + 1] / norm[:, h + 1 : h + 2]
        back[:, h] = x @ T.T
        moves += T * ((ahead[:, h] * there[:, h + 1, None]).T @ x)
    return ahead * back, moves, float(np.log(norm).sum())


def _score_gain(a: _Settled, b: _Settled) -> float:
    return a.worth - b.worth


def _gain(a: _Settled, b: _Settled) -> float:
    """By how many nats states a are better than states b."""
    return a.worth - b.worth + _hidden(b.labels, a.labels) - _hidden(a.labels, b.labels)


def _hidden(labels: Labels, other: Labels) -> float:
    """Evidence that what `other` tells apart inside the states `labels`, both (n, H), is driven."""
    there = labels >= 0
    B, R = int(labels.max()) + 1, int(other.max()) + 1
    counts = np.bincount(labels[there] * R + other[there], minlength=B * R).reshape(B, R)
    few = counts < np.maximum(LEAST_VISITS, LEAST_SHARE * counts.sum(axis=1, keepdims=True))
    part = np.where(few[labels, other], counts.argmax(axis=1)[labels], other)
    out = 0.0
    several = np.flatnonzero((~few).sum(axis=1) > 1)
    for b in several:
        name = np.full(R, -1)
        name[~few[b]] = np.arange((~few[b]).sum())
        out += max(0.0, driven(labels, np.where(there & (labels == b), name[part], -1), B))
    return out


def _freed(labels: Labels, free: NDArray[np.bool_], gone: int | None = None) -> Floats:
    """Probabilities of states (m, B) in which some observations may be in any of them, but the one that is gone."""
    q = np.eye(int(labels.max()) + 1)[labels]
    q[free] = q.mean(axis=0)
    if gone is not None:
        q = np.delete(q, gone, axis=1)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def _changes(data: _Data, now: _Settled, drives: bool) -> Iterator[tuple[str, _Settled]]:
    """States near by: settled again, without one, with one split, with half of one given to where chains put it."""
    labels, B = now.labels[data.there], now.n_states
    code = now.code[data.there]
    yield "again", _settle(data, np.eye(B)[labels])
    lost = [_chains(data, _freed(labels, labels == b, b), 2)[1] for b in range(B)] if B > 2 else []
    for b in np.argsort(lost)[::-1][:TRIED]:
        yield f"without {b}", _settle(data, _freed(labels, labels == b, int(b)))
    weight = np.bincount(code, minlength=len(now.owner))[:, None]
    centres = np.stack([np.bincount(code, column, len(now.owner)) for column in data.z.T], axis=1) / weight
    halves = []
    for b in range(B):
        inside = np.flatnonzero(now.owner == b)
        for half in _halves(centres[inside], data.seed):
            finer = now.owner.copy()
            finer[inside[half == 1]] = B
            hope = worth(now.moves, finer) - now.worth
            if drives:
                hope += _hidden(now.labels, data.placed(finer[code]))
            halves.append((hope, b, finer))
    halves.sort(key=lambda item: -item[0])
    for _, b, finer in halves[:TRIED]:
        yield f"split {b}", _settle(data, np.eye(B + 1)[finer[code]])
    open_ = score(now.moves, with_start(now.owner), B + 1)[1]
    for b in [b for b in np.argsort(-open_)[:TRIED] if open_[b] > SURE and b < B]:
        found = next((finer for _, c, finer in halves if c == b), None)
        for part in (b, B) if found is not None else ():
            assert found is not None
            yield f"purged {b}", _settle(data, _freed(labels, found[code] == part))


def _merges(now: _Settled) -> Iterator[tuple[Labels, float]]:
    """States joined, two at a time, the cheapest first: the state of each state, and what that costs in nats.

    The order is that of average linkage on what each single merge costs.
    """
    from scipy.cluster.hierarchy import linkage  # dear to import

    B = now.n_states
    if B < 2:
        return
    own = np.arange(B)
    costs = [
        now.worth - worth(now.moves, np.where(own == b, a, own)[now.owner]) for a in range(B) for b in range(a + 1, B)
    ]
    tree = linkage(np.maximum(costs, 0.0), "average")
    block, names = own.copy(), [[s] for s in own]
    for a, b, _, _ in tree:
        names.append(names[int(a)] + names[int(b)])
        block[names[-1]] = min(block[names[-1]])
        yield tidy(block), now.worth - worth(now.moves, tidy(block)[now.owner])
