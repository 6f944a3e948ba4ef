"""Chained ERM: the encoders of all steps chosen together, each shared by the pairs on both its sides.

Line 10 chooses (phi_h, phi_{h+1}) for each h on its own, so that x_h is encoded twice and nothing makes the two
encoders agree. The controllable state is one thing: whatever encodes it at h must serve the pair before and the
pair after. Choosing phi_2..phi_H together, with phi_1 constant (all episodes start in one state), minimises the
sum of the same pairwise losses along a path, which is a shortest path through layers of encoders.

A distractor that mimics a pair of states, as (s_h XOR e^1, s_{h+1} XOR e^1) does, can win one pair. To get into the
chain it must lose one: the first, where s_1 is known, or the one at which the chain changes over from s to it. With
little data a chain that fails does so there, at its weakest link somewhere in the middle, and keeps the mimic from
then on; `craftrl.oracles.markov` charges for that.

What is proved of this, and what is not, is in docs/chain.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from craftrl.core.losses import log_loss
from craftrl.core.relabelling import best_weight

__all__ = ["agreement", "chain_posterior", "most_agreeing", "posterior_tiled", "shortest_chain", "shortest_tiled"]

Floats = NDArray[np.float64]
Tile = tuple[int, int, NDArray[np.int64]]  # which matrix, the first row, some rows
BLOCK = 64  # rows of losses that are weighed together


def shortest_chain(losses: Iterable[NDArray[np.int64]]) -> tuple[list[int], int]:
    """The path i_1, ..., i_H that minimises the sum of losses[h-1][i_h, i_{h+1}], and that sum.

    The losses may come from a generator: one matrix is held at a time. Ties go to the smaller index, from the end
    of the path backwards.
    """
    return shortest_tiled((h, 0, loss) for h, loss in enumerate(losses))


def shortest_tiled(tiles: Iterable[Tile]) -> tuple[list[int], int]:
    """The same from tiles of the matrices, as `Engine.loss_tiles` has them: matrix, first row, rows."""
    cost = np.empty(0, dtype=np.int64)  # of the best path to each encoder of the step before
    best = np.empty(0, dtype=np.int64)  # the same for the step that is being reached
    back: list[NDArray[np.int64]] = []
    for h, first, loss in tiles:
        if h == len(back):
            cost, best = best, np.full(loss.shape[1], np.iinfo(np.int64).max)
            back.append(np.zeros(loss.shape[1], dtype=np.int64))
        through = cost[first : first + len(loss), None] + loss if h else loss
        row = np.argmin(through, axis=0)
        found = np.take_along_axis(through, row[None], axis=0)[0]
        better = found < best
        best = np.where(better, found, best)
        back[h] = np.where(better, first + row, back[h])
    assert back, "a chain needs at least one pair of steps"
    cost = best
    path = [int(np.argmin(cost))]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return path[::-1], int(cost.min())


def chain_posterior(forwards: Iterable[NDArray[np.int64]], backwards: Iterable[NDArray[np.int64]]) -> list[Floats]:
    """The weight of every encoder at every step when each chain weighs exp(-its loss).

    That is the Gibbs posterior under a uniform prior over chains, by one pass in each direction: `forwards` yields
    the losses of the pairs (1, 2), (2, 3), ..., `backwards` the same matrices from the last to the first. Entry h-1 is
    a probability vector over the encoders of step h. As data grows, all weight goes to the shortest chains.
    """
    return posterior_tiled(*(((h, 0, loss) for h, loss in enumerate(losses)) for losses in (forwards, backwards)))


def posterior_tiled(forwards: Iterable[Tile], backwards: Iterable[Tile]) -> list[Floats]:
    """The same from tiles of the matrices, as `Engine.loss_tiles` has them; the result does not depend on the tiles."""
    alpha, beta = _forwards(forwards), _backwards(backwards)[::-1]
    joint = [a + b for a, b in zip(alpha, beta)]
    return [np.exp(log_weight - logsumexp(log_weight)) for log_weight in joint]


def _forwards(tiles: Iterable[Tile]) -> list[Floats]:
    """The log-weight of all ways to reach each encoder: sums over rows, which come tile by tile.

    A sum of floats depends on the order of its terms. So rows are taken in blocks of one size, whatever the tiles.
    """
    messages: list[Floats] = []
    for h, first, loss in _in_blocks(tiles):
        nats = log_loss(loss)
        if not messages:
            messages.append(np.zeros(0))
        if h == 0:  # nothing has been charged before the first step
            messages[0] = np.append(messages[0], np.zeros(len(nats)))
        if len(messages) == h + 1:
            messages.append(np.full(nats.shape[1], -np.inf))
        here = logsumexp(messages[h][first : first + len(nats), None] - nats, axis=0)
        messages[h + 1] = np.logaddexp(messages[h + 1], here)
    return messages


def _backwards(tiles: Iterable[Tile]) -> list[Floats]:
    """The log-weight of all ways on from each encoder, from the last step to the first: each row has its own sum."""
    messages: list[Floats] = []
    for h, first, loss in tiles:
        nats = log_loss(loss)
        if not messages:
            messages.append(np.zeros(nats.shape[1]))
        if len(messages) == h + 1:
            messages.append(np.empty(0))
        assert len(messages[h + 1]) == first, "tiles come in order"
        messages[h + 1] = np.append(messages[h + 1], logsumexp(messages[h] - nats, axis=1))
    return messages


def _in_blocks(tiles: Iterable[Tile]) -> Iterator[Tile]:
    """The same rows, BLOCK of them at a time and at the end of a matrix what is left."""
    for h, of_one in groupby(tiles, key=lambda tile: tile[0]):
        waiting, first = [], 0
        for _, _, rows in of_one:
            waiting.append(rows)
            if sum(map(len, waiting)) < BLOCK:
                continue
            whole = np.concatenate(waiting)
            ready = len(whole) // BLOCK * BLOCK
            for i in range(0, ready, BLOCK):
                yield h, first + i, whole[i : i + BLOCK]
            waiting, first = [whole[ready:]], first + ready
        if sum(map(len, waiting)):
            yield h, first, np.concatenate(waiting)


def most_agreeing(weight: Floats, agreement: Floats) -> int:
    """The encoder expected to agree most with the true one, which is encoder j with probability weight[j].

    `agreement[i, j]` is the share of observations on which i and j agree, up to relabelling. Taking the likeliest
    encoder minimises the chance of any error; taking this one minimises the expected number of errors.
    """
    return int(np.argmax(agreement @ weight))


def agreement(counts: NDArray[np.integer]) -> Floats:
    """Share of observations on which two encoders agree under their best one-to-one relabelling: (I, J).

    `counts` (I, J, N_s, N_s) says how often encoder i has value u where encoder j has value v.
    """
    total = counts.sum(axis=(2, 3))
    return best_weight(counts) / np.maximum(total, 1)
