"""Encoders of all steps chosen together: the shortest path, and the Markov chain whose charges are exact.

Line 10 chooses (phi_h, phi_{h+1}) for each h on its own, so that x_h is encoded twice and nothing makes the two
encoders agree. What encodes the controllable state must serve the pair before and the pair after. coupling="chain"
chooses phi_2..phi_H together, with phi_1 constant (all episodes start in one state): the sum of the same pairwise
losses is least along a shortest path through layers of encoders.

With little data a chain fails at its weakest link: a distractor that mimics a pair of states, as (s_h XOR e^1,
s_{h+1} XOR e^1) does, gets in where a single pair prefers it. So coupling="markov" charges each pair of codes for

- its loss, less that of the first code by itself, plus whatever else in x_h says about the agent once that code is
  known: so each code's own part is counted once, and a code that leaves something out gains nothing by it;
- how far the second code depends on x_h given the first code and the agent, and the first on x_{h+1} given the second.
  For the states it does not, whatever the agents do (Equation 1).

Paper: Equation 1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins
from craftrl.core.oracle import Coupling
from craftrl.engine.counting import Counter, Int64, Tile
from craftrl.engine.dependence import agent_dependence, dependence_bound, full_dependence
from craftrl.engine.packing import LANES, View

SECONDS_EACH = 25e-9  # for a cell of a table or a vector of bits, measured
BYTES_EACH = 25  # for each pair of encoders: its charge, its dependences, their sum, and whether they are exact
BYTES_MADE = 16  # for each pair of encoders of the largest two steps, while those are made
ROUNDS = 2  # in which the dependences of the most promising encoders are computed before all chains are compared
AT_ONCE = 8  # encoders of a step whose dependences are computed together, the most promising first


def shortest_path(tiles: Iterable[Tile]) -> tuple[list[int], int]:
    """The path i_1, ..., i_H that minimises the sum of the losses of (i_h, i_{h+1}), and that sum.

    The matrices come in tiles, one after the other, as `Counter.tiles` has them: few rows are held at a time. Ties go
    to the smaller index, from the end of the path backwards.
    """
    cost = np.empty(0, dtype=np.int64)  # of the best path to each encoder of the step before
    best = np.empty(0, dtype=np.int64)  # the same for the step that is being reached
    back: list[Int64] = []
    for h, first, loss in tiles:
        if h == len(back):
            cost, best = best, np.full(loss.shape[1], np.iinfo(np.int64).max)
            back.append(np.zeros(loss.shape[1], dtype=np.int64))
        through = cost[first : first + len(loss), None] + loss if h else loss
        row = np.argmin(through, axis=0)
        found = np.take_along_axis(through, row[None], axis=0)[0]
        back[h] = np.where(found < best, first + row, back[h])
        best = np.minimum(best, found)
    path = [int(np.argmin(best))]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return path[::-1], int(best.min())


def chain_views(H: int, one_start: bool) -> list[View]:
    """The encoders to choose from at each step: from one start, the constant one at the first."""
    return [View(0 if one_start else 1), *map(View, range(2, H + 1))]


class MarkovChain:
    """The shortest Markov chain of one dataset, for any grid; dependences do not depend on the grid and are kept.

    Branch and bound: dependences are bounded from below for all pairs, and computed exactly, round by round, for the
    most promising encoders of each step. Once the shortest chain has exact pairs only, no other chain can be shorter.
    """

    def __init__(self, counter: Counter, one_start: bool) -> None:
        self.counter = counter
        H = counter.tau.H
        self.after = chain_views(H, one_start)[1:]
        # Pair h is of those trajectories that have both steps. `seen` are all encoders: what codes may depend on.
        self.seen = [View(h, until=h + 1) for h in range(1, H)]
        self.before = [View(0, until=2) if one_start else self.seen[0], *self.seen[1:]]
        pairs = range(H - 1)
        self.left_out = list(counter.map(lambda h: agent_dependence(counter, self.before[h], self.seen[h]), pairs))
        self.dependences: list[Int64] = list(counter.map(self._bounds, pairs))
        self.exact = [np.zeros(bound.shape, dtype=bool) for bound in self.dependences]

    def shortest(self, grid: Grid) -> list[int]:
        """The best chain of encoders i_1..i_H."""
        charges = self._charges(grid)
        while True:
            costs = [charge + bound for charge, bound in zip(charges, self.dependences)]
            path, _ = shortest_path((h, 0, cost) for h, cost in enumerate(costs))
            if all(known[i, j] for known, i, j in zip(self.exact, path, path[1:])):
                return path
            self._compute_best(costs, path)

    def costs(self, path: Sequence[int], grid: Grid) -> list[NDArray[np.float64]]:
        """What all pairs of codes are charged, in nats: exact for the most promising encoders of each step and those of
        the path, from below for the others."""
        charges = self._charges(grid)
        for _ in range(ROUNDS):
            self._compute_best([charge + bound for charge, bound in zip(charges, self.dependences)], path)
        return [(charge + bound) / FIXED_POINT for charge, bound in zip(charges, self.dependences)]

    def _compute_best(self, costs: list[Int64], path: Sequence[int]) -> None:
        """With the path itself: where many tie, it need not be among the first."""
        best = [np.union1d(np.argsort(cost)[:AT_ONCE], [i]) for cost, i in zip(through_costs(costs), path)]
        costs.clear()  # as large as the charges, and to be made again
        list(self.counter.map(self.compute, list(zip(range(len(self.after)), best, best[1:]))))

    def beyond_losses(self, path: Sequence[int], grid: Grid) -> int:
        """What a chain is charged beside the losses of its pairs."""
        total = 0
        for h, (i, j) in enumerate(pairwise(path)):
            self.compute((h, np.array([i]), np.array([j])))
            alone = self.counter.pairs(View(0), self.before[h].part(slice(i, i + 1)))[:, 0, :, 0, 0].T
            total += int(self.left_out[h][i] + self.dependences[h][i, j]) - int(best_bins(alone, grid)[1].sum())
        return total

    def _charges(self, grid: Grid) -> list[Int64]:
        return list(self.counter.map(lambda h: self.charge(h, grid), range(len(self.after))))

    def charge(self, h: int, grid: Grid) -> Int64:
        """What pairs of codes do not say about the agent beyond the first code, and what the first one leaves out."""
        pair = self.counter.losses(self.before[h], self.after[h], grid)
        alone = self.counter.losses(View(0), self.before[h], grid)
        pair += (self.left_out[h] - alone[0])[:, None]
        return pair

    def compute(self, what: tuple[int, NDArray[np.intp], NDArray[np.intp]]) -> None:
        """The exact dependences of some encoders of one step and some of the next."""
        h, rows, columns = what
        known = self.exact[h][np.ix_(rows, columns)]
        rows, columns = rows[~known.all(axis=1)], columns[~known.all(axis=0)]
        if len(rows):
            before, after = self.before[h].part(rows), self.after[h].part(columns)
            found = full_dependence(self.counter, before, self.seen[h], after)
            found += full_dependence(self.counter, after, self.after[h], before).T
            self.dependences[h][np.ix_(rows, columns)] = found
            self.exact[h][np.ix_(rows, columns)] = True

    def _bounds(self, h: int) -> Int64:
        """Dependences of all pairs of codes of h and h + 1, from below."""
        before, after = self.before[h], self.after[h]
        bounds = dependence_bound(self.counter, before, self.seen[h], after)
        bounds += dependence_bound(self.counter, after, after, before).T
        return bounds


def through_costs(costs: Sequence[Int64]) -> list[Int64]:
    """For each encoder of each step the cost of the shortest chain through it."""
    there, back = [np.zeros(len(costs[0]), dtype=np.int64)], [np.zeros(costs[-1].shape[1], dtype=np.int64)]
    for cost in costs:
        there.append((there[-1][:, None] + cost).min(axis=0))
    for cost in reversed(costs):
        back.append((cost + back[-1]).min(axis=1))
    return [a + b for a, b in zip(there, reversed(back))]


def obstacle(counter: Counter, coupling: Coupling, most_seconds: float, most_bytes: float) -> str:
    """Why a coupling cannot be had on these data, as half a sentence; "" if it can.

    Losses are added up in 64 bits, in units of 2^-30 nats. A pair of observations loses at most ln K nats by the agent
    and, where dependences are charged, as much again and 2 ln N_s by the codes on both sides; likelihood ratios need
    n ln n. Steps that are chosen one by one are not added up. The Markov chain's seconds, on one core, and bytes are
    rough: bounds for all pairs of encoders, and one round of settling them.
    """
    pairs = counter.running[2:].sum(axis=1).tolist()
    nats = (max(pairs) if coupling == "independent" else sum(pairs)) * math.log(counter.tau.K)
    if coupling == "markov":
        nats = max(2 * nats + 2 * sum(pairs) * math.log(counter.N_s), max(pairs) * math.log(max(pairs[0], 2)))
    if nats * FIXED_POINT >= 2**63:
        return f"the losses of {sum(pairs):.2g} pairs of observations are more than 64 bits can add up"
    if coupling != "markov":
        return ""
    squares = [a * b for a, b in pairwise(counter.sizes[1:])]
    triples = sum(square + AT_ONCE**2 * size for square, size in zip(squares, counter.sizes[2:]))
    vectors = sum(-(-int(n) // (64 * LANES)) for n in counter.tau.counts)
    cells = counter.tau.K * counter.N_s**3 + (counter.N_s - 1) ** 3 * vectors
    seconds, n_bytes = 2 * triples * cells * SECONDS_EACH, BYTES_EACH * sum(squares) + BYTES_MADE * max(squares)
    if seconds <= most_seconds and n_bytes <= most_bytes:
        return ""
    time = f"{seconds / 3600:,.0f} hours" if seconds > 7200 else f"{seconds / 60:.0f} minutes"
    return f"triples of encoders would take about {time} of one core and {n_bytes / 2**30:.1f} GiB"
