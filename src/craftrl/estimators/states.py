"""From embeddings to states: cells, the partition of cells, and hidden Markov chains that correct misread observations.

An embedding is cut into small cells, and cells are joined to states by what the agents and moves say
(`core.partition`). Cells are not pure, and single observations are misread. So states are *settled*: each agent's chain
of states emits fine cells, any of them with a small probability; the smoothed state of every observation is what its
nearest neighbours in the embedding have, so that states are functions of one observation again. Settled states are
scored like any partition, on cells drawn anew inside them: every misread observation is an impossible move, and lowers
the score. States are joined, split and settled again while

    gain of A over B = score(A) - score(B) + what is driven in B, which A shows - what is driven in A, which B shows

rises. Nothing else decides: there is no threshold on the embedding, no start, and no number of states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from craftrl.arrays import Floats
from craftrl.core.labels import Labels
from craftrl.core.partition import (
    ENOUGH,
    SPELLS,
    Moves,
    count_moves,
    driven,
    merge_gain,
    ratios,
    renumbered,
    score,
    tidy,
    with_start,
    worth,
)
from craftrl.core.search import climb, refine
from craftrl.progress import tell

__all__ = ["Found", "find_states"]

FINE, IN_FINE = 1000, 25  # fine cells, which the chains emit: at most, and observations in each on average
FIRST = (100, 140, 200, 400, 800)  # cells of first partitions: few have all moves, many are pure
COARSE = (2, 4, 8)  # blocks of cells from which these are refined
FEW, SOFT = 40, 0.3  # cells, all of which may be states at first; the weight of closure where climbs start
GRAINS, ABOVE = (1.0, 0.7, 1.5), 1.5  # of climbs: times as many cells; times as many states as were found so
CELLS, IN_STATE, LEAST = 100, 8, 4  # on which states are scored: in all, for each state on average, in each; at least
SLIP = 0.01  # the probability that an observation is read as any other
STEPS = 5  # of expectation-maximisation: many drift where moves remember more than the state
NEIGHBOURS = 7  # in the embedding, most of which say the state of an observation
SURE = 3.0  # nats that a change must gain
LEAST_VISITS, LEAST_SHARE = 5, 0.01  # of a state inside another, to count as a part of it
ROUNDS = 20  # of changes at most
Rounds = tuple[tuple[str, float, int], ...]


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
    rounds: Rounds = ()
    merges: tuple[tuple[Labels, float], ...] = ()


@dataclass(frozen=True, eq=False)
class _Settled:
    """States that are functions of one observation, and the cells on which they are scored."""

    labels: Labels
    owner: Labels
    moves: Moves

    @property
    def n_states(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def score(self) -> float:
        gain, cost = score(self.moves, with_start(self.owner), self.n_states + 1).sum(axis=1)
        return float(gain - cost)


@dataclass(eq=False)
class _Data:
    """What stays the same: embeddings z (m, d) of the observations that are there, (i, h) their places, and cells."""

    z: Floats
    there: NDArray[np.bool_]
    agent: Labels
    seed: int
    smooth: bool = True
    spells: int = SPELLS
    starts: bool = True
    fine: Labels = field(init=False)
    near: Labels = field(init=False)
    tree: Floats = field(init=False)

    def __post_init__(self) -> None:
        from sklearn.cluster import MiniBatchKMeans  # dear to import

        k = min(FINE, max(2, len(self.z) // IN_FINE), len(np.unique(self.z[:5000], axis=0)))
        means = MiniBatchKMeans(k, n_init=1, random_state=self.seed, batch_size=4096)
        self.fine = tidy(means.fit_predict(self.z))
        _, near = cKDTree(self.z).query(self.z, min(NEIGHBOURS, len(self.z)), workers=-1)
        self.near = np.asarray(near).reshape(len(self.z), -1)
        self.visits = np.bincount(self.fine)
        ones = np.ones(len(self.z), np.float32)
        self.in_fine = csr_matrix((ones, (self.fine, np.arange(len(self.z)))))  # sums over the fine cells
        self.centres = np.stack([np.bincount(self.fine, column) for column in self.z.T], axis=1) / self.visits[:, None]
        self.tree = linkage(self.centres, "ward") if len(self.centres) > 1 else np.zeros((0, 4))

    def cut(self, number: float) -> Labels:
        """The group (M,) of each fine cell, of so many groups near each other."""
        return tidy(fcluster(self.tree, min(round(number), len(self.centres)), "maxclust"))

    def cells(self, number: float) -> tuple[Labels, Moves, Labels]:
        """Larger cells: that of each fine cell, their moves, and a fine cell in each.

        Cuts of one tree: groups are unions of cells.
        """
        group = self.cut(number)
        moves = self.moves(group[self.fine], int(group.max()) + 1)
        return group, moves, np.unique(group, return_index=True)[1]

    def placed(self, values: Labels) -> Labels:
        """Values (m,) of observations as (n, H), -1 where a trajectory is over."""
        out = np.full(self.there.shape, -1)
        out[self.there] = values
        return out

    def moves(self, code: Labels, M: int) -> Moves:
        """Moves of codes (m,) of all observations; a code lies where its observations do on average."""
        weight = np.bincount(code, minlength=M)[:, None]
        places = np.stack([np.bincount(code, column, M) for column in self.z.T], axis=1) / weight
        return count_moves(self.placed(code), self.agent, M, places, self.spells, self.starts)


def find_states(
    z: Floats,
    there: NDArray[np.bool_],
    agent: Labels,
    seed: int = 0,
    smooth: bool = True,
    drives: bool = True,
    starts: bool = True,
    aligned: bool = True,
) -> Found:
    """States of observations whose embeddings are z (n, H, d), of trajectories of these agents (n,).

    there    bool (n, H): False where a trajectory is over
    smooth   whether misread observations are corrected by moves
    drives   whether what is driven counts, which decides between states that agents and moves alone do not tell apart
    starts   whether it counts in which states trajectories begin
    aligned  whether step h is the same time in all trajectories, so that noise and habits may change with it
    """
    rng = np.random.default_rng(seed)
    spells = SPELLS if aligned else 2
    data = _Data(np.asarray(z[there], dtype=np.float64), there, agent, seed, smooth, spells, starts)
    if len(data.centres) < 2:
        return Found(data.placed(np.zeros(len(data.z), dtype=np.int64)), 0.0)
    tell("cells")
    ends = [
        _improved(data, _best([_settle(data, label) for label in firsts], drives), drives, rng)
        for firsts in (_climbed(data, drives, rng), _refined(data))
    ]
    best = _best([end for end, _ in ends], drives)
    return Found(best.labels, best.score, dict(ends)[best], tuple(_merges(best)))


def _best(found: Sequence[_Settled], drives: bool) -> _Settled:
    """The best of several states. One state is best only where no others tell of the agents, which differ."""
    found = [a for a in found if a.n_states > 1 and a.score > ENOUGH] or found
    return reduce(lambda best, other: other if _gain(other, best, drives) > 0 else best, found)


def _improved(data: _Data, best: _Settled, drives: bool, rng: np.random.Generator) -> tuple[_Settled, Rounds]:
    """States climbed and settled in turns, while they gain, and what each turn gained."""
    rounds = [("partition", best.score, best.n_states)]
    for _ in range(ROUNDS):
        tell("states")
        part, _ = climb(best.moves, best.owner, rng, drives)
        new = _settle(data, part[best.moves.code[data.there]])
        if (gain := _gain(new, best, drives)) <= SURE:
            break
        best = new
        rounds.append(("climb", gain, new.n_states))
    return best, tuple(rounds)


def _climbed(data: _Data, drives: bool, rng: np.random.Generator) -> Iterator[Labels]:
    """First states (m,) of all observations, climbed from cells cut where a score is best.

    These find states of observations that are often misread.
    """
    M = len(data.centres)

    def climbed(part: Labels, grain: float = 1.0) -> Labels:
        group, moves, first = data.cells(max(CELLS * grain, IN_STATE * (int(part.max()) + 1)))
        return np.asarray(climb(moves, part[first], rng, drives)[0][group])

    parts = [data.cut(B) for B in np.unique(np.geomspace(2, max(M // 3, min(M, FEW)), 24).astype(int))]
    moves = data.moves(data.fine, M)
    gain, cost = np.transpose([score(moves, with_start(part), int(part.max()) + 2).sum(axis=1) for part in parts])
    start = parts[int(np.argmax(gain - SOFT * cost))]
    found = [climbed(start, grain) for grain in GRAINS if grain == 1.0 or IN_STATE * (start.max() + 1) < CELLS * grain]
    most = max(int(part.max()) + 1 for part in found)
    found += map(climbed, [part for part in parts if part.max() > ABOVE * most][:1])
    yield from (part[data.fine] for part in found)


def _refined(data: _Data) -> Iterator[Labels]:
    """First states (m,) of all observations, refined from a few blocks of cells of several sizes.

    These find states that persistent noise divides.
    """
    for number in FIRST:
        group, moves, first = data.cells(number)
        yield refine(moves, [data.cut(B)[first] for B in COARSE])[group][data.fine]
        if number >= len(data.centres):
            break


def _settle(data: _Data, label: Labels) -> _Settled:
    """States near these (m,) of all observations, as functions of one observation."""
    label = tidy(label)
    if data.smooth:
        label = _chains(data, label)
    votes = np.zeros((len(label), label.max() + 1), dtype=np.int32)
    for column in data.near.T:
        votes[np.arange(len(label)), label[column]] += 1
    label = renumbered(votes.argmax(axis=1))
    code, owner = _cells(data, label)
    return _Settled(data.placed(label), owner, data.moves(code, len(owner)))


def _cells(data: _Data, label: Labels) -> tuple[Labels, Labels]:
    """Cells inside states: the cell (m,) of every observation, and the state of every cell.

    All are about as wide, so that a state which is a mixture has many.
    """
    code, S = np.zeros(len(label), dtype=np.int64), int(label.max()) + 1
    owner: list[int] = []
    inside = [np.unique(data.fine[label == b]) for b in range(S)]
    trees = [linkage(data.centres[cells], "ward") if len(cells) > 1 else np.zeros((0, 4)) for cells in inside]
    widths = np.sort(np.concatenate([tree[:, 2] for tree in trees]))[::-1]
    width = widths[min(len(widths), max(CELLS, IN_STATE * S)) - 1] if len(widths) else 0.0
    for b, (cells, tree) in enumerate(zip(inside, trees, strict=True)):
        group = np.zeros(1, dtype=np.int64)
        if len(tree):
            k = max(min(len(cells), LEAST), 1 + int((tree[:, 2] > width).sum()))
            group = tidy(fcluster(tree, k, "maxclust"))
        mine = np.flatnonzero(label == b)
        code[mine] = len(owner) + group[np.searchsorted(cells, data.fine[mine])]
        owner += [b] * (int(group.max()) + 1)
    return code, np.array(owner)


def _chains(data: _Data, label: Labels) -> Labels:
    """The most likely states (m,) of observations in the agents' hidden Markov chains, fitted from these labels (m,).

    Each agent has its own moves, drawn to those of all; emissions and starts are common.
    """
    n, H = data.there.shape
    B, M = int(label.max()) + 1, len(data.centres)
    often = data.visits / data.visits.sum()
    labels = data.placed(label)
    follows = labels[:, 1:] >= 0
    agents = np.broadcast_to(data.agent[:, None], follows.shape)[follows]
    K = int(agents.max()) + 1
    index = (agents * B + labels[:, :-1][follows]) * B + labels[:, 1:][follows]
    moves = np.bincount(index, minlength=K * B * B).reshape(K, B, B).astype(np.float64)
    seen = np.bincount(data.fine * B + label, minlength=M * B).reshape(M, B).astype(np.float64)
    first = np.bincount(labels[:, 0], minlength=B).astype(np.float64)
    like, q = np.ones((n, H, B), np.float32), np.empty((n, H, B), np.float32)
    for _ in range(STEPS):
        pooled = moves.sum(axis=0) + 0.5 / B
        own = moves + 2 * pooled / pooled.sum(axis=1, keepdims=True)
        own /= own.sum(axis=2, keepdims=True)
        first = (first + 0.5 / B) / (first + 0.5 / B).sum()
        emitted = (1 - SLIP) * seen / np.maximum(seen.sum(axis=0), 1e-9) + SLIP * often[:, None]
        like[data.there] = emitted.astype(np.float32)[data.fine]
        for k in range(K):
            i = data.agent == k
            q[i], moves[k] = _smoothed(like[i], data.there[i], own[k].astype(np.float32), first.astype(np.float32))
        posterior = q[data.there]
        first = q[:, 0].sum(axis=0, dtype=np.float64)
        seen = np.asarray(data.in_fine @ posterior, dtype=np.float64)
    return posterior.argmax(axis=1)


def _smoothed(like: Floats, there: NDArray[np.bool_], T: Floats, first: Floats) -> tuple[Floats, Floats]:
    """Forward and backward: posteriors (n, H, B) and expected moves (B, B); like (n, H, B)."""
    H = like.shape[1]
    ahead, back, norm, moves = np.zeros_like(like), np.ones_like(like), np.ones_like(like[..., 0]), np.zeros_like(T)
    for h in range(H):
        x = like[:, h] * (ahead[:, h - 1] @ T if h else first)
        norm[:, h] = x.sum(axis=1)
        ahead[:, h] = x / norm[:, h : h + 1]
    for h in range(H - 2, -1, -1):
        x = like[:, h + 1] * back[:, h + 1] / norm[:, h + 1 : h + 2]
        back[:, h] = x @ T.T
        moves += T * ((ahead[:, h] * there[:, h + 1, None]).T @ x)
    return ahead * back, moves


def _gain(a: _Settled, b: _Settled, drives: bool) -> float:
    """By how many nats states a are better than states b."""
    gain = worth(a.moves, a.owner) - worth(b.moves, b.owner)
    return gain + _hidden(b.labels, a.labels) - _hidden(a.labels, b.labels) if drives else gain


def _hidden(labels: Labels, other: Labels) -> float:
    """Evidence that what `other` tells apart inside the states `labels`, both (n, H), is driven."""
    there = labels >= 0
    B, R = int(labels.max()) + 1, int(other.max()) + 1
    counts = np.bincount(labels[there] * R + other[there], minlength=B * R).reshape(B, R)
    few = counts < np.maximum(LEAST_VISITS, LEAST_SHARE * counts.sum(axis=1, keepdims=True))
    part = np.where(few[labels, other], counts.argmax(axis=1)[labels], other)
    out = 0.0
    for b in np.flatnonzero((~few).sum(axis=1) > 1):
        name = np.full(R, -1)
        name[~few[b]] = np.arange((~few[b]).sum())
        side = np.where(there & (labels == b), name[part], -1)
        out += max(0.0, driven(np.asarray(labels, dtype=np.int64), side, B))
    return out


def _merges(now: _Settled) -> Iterator[tuple[Labels, float]]:
    """States joined, two at a time, the cheapest first: the state of each state, and what that costs in nats.

    The order is that of average linkage on what each single merge costs.
    """
    B = now.n_states
    if B < 2:
        return
    part = with_start(now.owner)
    known = ratios(now.moves, part, B + 1)
    costs = [-merge_gain(now.moves, part, known, b, a) for a in range(B) for b in range(a + 1, B)]
    tree = linkage(np.maximum(costs, 0.0), "average")
    block, names = np.arange(B), [[s] for s in range(B)]
    for a, b, _, _ in tree:
        names.append(names[int(a)] + names[int(b)])
        block[names[-1]] = min(block[names[-1]])
        joined = tidy(block)
        gain, cost = score(now.moves, with_start(joined[now.owner]), int(joined.max()) + 2).sum(axis=1)
        yield joined, now.score - float(gain - cost)
