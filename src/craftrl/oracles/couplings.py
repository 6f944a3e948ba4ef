"""Encoders of all steps chosen together: the shortest path, and the Markov chain whose charges are exact.

Line 10 chooses (phi_h, phi_{h+1}) for each h on its own, so that x_h is encoded twice and nothing makes the two
encoders agree. The controllable state is one thing: whatever encodes it at h must serve the pair before and the
pair after. Choosing phi_2..phi_H together, with phi_1 constant (all episodes start in one state), minimises the
sum of the same pairwise losses along a path, which is a shortest path through layers of encoders: coupling="chain".

A distractor that mimics a pair of states, as (s_h XOR e^1, s_{h+1} XOR e^1) does, can win one pair. To get into the
chain it must lose one. With little data a chain fails there, at its weakest link. Two things go wrong: what a code says
by itself is counted in the pairs on both its sides, noise included; and nothing keeps a chain from changing over to a
code that moves like the state and is not. So coupling="markov" charges each pair of codes for

- its loss, less that of the first code by itself, plus whatever else in x_h says about the agent once that code is
  known: so each code's own part is counted once, and a code that leaves something out gains nothing by it;
- how far the second code depends on x_h given the first code and the agent, and the first on x_{h+1} given the second.
  For the states it does not, whatever the agents do (Equation 1).

The charges are of pairs of codes, so the best chain is still a shortest path.

Paper: Equation 1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_room_in_memory
from craftrl.core.grid import Grid
from craftrl.core.losses import FIXED_POINT, best_bins
from craftrl.core.oracle import Coupling
from craftrl.engine.counting import Counter, Int64, Tile
from craftrl.engine.dependence import agent_dependence, dependence, likely_dependence
from craftrl.engine.packing import LANES, NOTHING, View
from craftrl.errors import InvalidParameterError

__all__ = ["CONSTANT", "MarkovChain", "affordable", "chain_views", "check_affordable", "shortest_path"]

CONSTANT = -1  # in place of an encoder's number: the constant one, with which a chain from one start begins
LONG, TOO_LONG = 60.0, 3600.0  # seconds on one core: where it is no longer the default, and where it is refused
LARGE, TOO_LARGE = 2**30, 2**33  # bytes, likewise
SECONDS_EACH = 25e-9  # for a cell of a table or a vector of bits, measured
BYTES_EACH = 25  # for each pair of encoders: its charge, its dependences, their sum, and whether they are settled
BYTES_MADE = 16  # for each pair of encoders of the largest two steps, while those are made
ROUNDS = 2  # in which the dependences of the most promising encoders are settled before all chains are compared
AT_ONCE = 8  # encoders of a step whose dependences are settled together, the most promising first


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
        better = found < best
        best = np.where(better, found, best)
        back[h] = np.where(better, first + row, back[h])
    path = [int(np.argmin(best))]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return path[::-1], int(best.min())


def chain_views(H: int, one_start: bool) -> list[View]:
    """The encoders to choose from at each step: from one start, the constant one at the first."""
    return [View(1, NOTHING) if one_start else View(1), *map(View, range(2, H + 1))]


def pair_loss(counter: Counter, h: int, i: int, j: int, grid: Grid) -> int:
    """The loss of one pair of encoders of h and h + 1, in fixed point."""
    first = View(h, NOTHING) if i == CONSTANT else View(h, slice(i, i + 1))
    counts = counter.pairs(first, View(h + 1, slice(j, j + 1)))[..., 0, 0]
    return int(best_bins(counts.transpose(1, 2, 0), grid)[1].sum())


class MarkovChain:
    """The shortest Markov chain of one dataset, for any grid; dependences do not depend on the grid and are kept.

    Dependences are bounded from below for all pairs and settled, round by round, for the most promising encoders of
    each step. Once the shortest chain has settled pairs only, no other chain can be shorter.
    """

    def __init__(self, counter: Counter, one_start: bool) -> None:
        self.counter = counter
        codes = chain_views(counter.tau.H, one_start)
        # Pair h is of those trajectories that have both steps. `seen` are all encoders: what codes may depend on.
        self.before = [View(code.h, code.encoders, code.h + 1) for code in codes[:-1]]
        self.seen_before = [View(code.h, until=code.h + 1) for code in codes[:-1]]
        self.after = codes[1:]
        pairs = range(len(self.after))
        self.left_out = list(
            counter.map(lambda h: agent_dependence(counter, self.before[h], self.seen_before[h]), pairs)
        )
        self.dependences: list[Int64] = list(counter.map(self._bounds, pairs))
        self.settled = [np.zeros(bound.shape, dtype=bool) for bound in self.dependences]

    def shortest(self, grid: Grid) -> list[int]:
        """The best chain of encoders i_1..i_H."""
        charges = list(self.counter.map(lambda h: self.charge(h, grid), range(len(self.after))))
        while True:
            costs = [charge + bound for charge, bound in zip(charges, self.dependences)]
            path, _ = shortest_path((h, 0, cost) for h, cost in enumerate(costs))
            if all(known[i, j] for known, i, j in zip(self.settled, path, path[1:])):
                return path
            self._settle_best(costs, path)

    def costs(self, path: Sequence[int], grid: Grid) -> list[NDArray[np.float64]]:
        """What all pairs of codes are charged, in nats: exact for the most promising encoders of each step and those of
        the path, from below for the others."""
        charges = list(self.counter.map(lambda h: self.charge(h, grid), range(len(self.after))))
        for _ in range(ROUNDS):
            self._settle_best([charge + bound for charge, bound in zip(charges, self.dependences)], path)
        return [(charge + bound) / FIXED_POINT for charge, bound in zip(charges, self.dependences)]

    def _settle_best(self, costs: list[Int64], path: Sequence[int]) -> None:
        """With the path itself: where many tie, it need not be among the first."""
        best = [np.union1d(np.argsort(cost)[:AT_ONCE], [i]) for cost, i in zip(through_costs(costs), path)]
        costs.clear()  # as large as the charges, and to be made again
        list(self.counter.map(self.settle, list(zip(range(len(self.after)), best, best[1:]))))

    def cost(self, path: Sequence[int], grid: Grid) -> int:
        """What a given chain is charged."""
        total = 0
        for h, (i, j) in enumerate(pairwise(path)):
            self.settle((h, np.array([i]), np.array([j])))
            first, second = (CONSTANT if self._is_nothing(h) else i), j
            alone = self.counter.pairs(View(h + 1, NOTHING), self.before[h])[:, 0, :, 0, i].T
            own = int(self.left_out[h][i]) - int(best_bins(alone, grid)[1].sum())
            total += pair_loss(self.counter, h + 1, first, second, grid) + own + int(self.dependences[h][i, j])
        return total

    def charge(self, h: int, grid: Grid) -> Int64:
        """What pairs of codes do not say about the agent beyond the first code, and what the first one leaves out."""
        before = self.before[h]
        pair = self.counter.losses(before, self.after[h], grid)
        alone = self.counter.losses(View(before.h, NOTHING), before, grid)
        pair += (self.left_out[h] - alone[0])[:, None]
        return pair

    def settle(self, what: tuple[int, NDArray[np.intp], NDArray[np.intp]]) -> None:
        """The exact dependences of some encoders of one step and some of the next."""
        h, rows, columns = what
        block = np.ix_(rows, columns)
        wanted = ~self.settled[h][block]
        if not wanted.any():
            return
        before = self.before[h] if self._is_nothing(h) else self.before[h].take(rows)
        after = self.after[h].take(columns)
        found = dependence(self.counter, before, self.seen_before[h], after, wanted)
        found += dependence(self.counter, after, self.after[h], before, wanted.T).T
        self.dependences[h][block] = np.where(wanted, found, self.dependences[h][block])
        self.settled[h][block] = True

    def _bounds(self, h: int) -> Int64:
        """Dependences of all pairs of codes of h and h + 1, from below."""
        before, after = self.before[h], self.after[h]
        bounds = likely_dependence(self.counter, before, self.seen_before[h], after)
        bounds += likely_dependence(self.counter, after, after, before).T
        return bounds

    def _is_nothing(self, h: int) -> bool:
        return isinstance(self.before[h].encoders, str)


def through_costs(costs: Sequence[Int64]) -> list[Int64]:
    """For each encoder of each step the cost of the shortest chain through it."""
    there, back = [np.zeros(len(costs[0]), dtype=np.int64)], [np.zeros(costs[-1].shape[1], dtype=np.int64)]
    for cost in costs:
        there.append((there[-1][:, None] + cost).min(axis=0))
    for cost in reversed(costs):
        back.append((cost + back[-1]).min(axis=1))
    return [a + b for a, b in zip(there, reversed(back))]


# -- what a coupling costs, and what it can add up -------------------------------------------------------------------


def affordable(counter: Counter, coupling: Coupling) -> tuple[Coupling, str] | None:
    """Another coupling and why, where this one would take minutes, or could not add up so many losses; else None."""
    wanted, why = coupling, ""
    if coupling == "markov":
        seconds, n_bytes = markov_cost(counter)
        if seconds > LONG or n_bytes > LARGE:
            cost = in_words(seconds, n_bytes)
            wanted, why = "chain", f'the class is finite; "markov" may need less data, but would take {cost}.'
    widest = _widest(counter, wanted)
    if widest != wanted:
        n_pairs = int(counter.running[2:].sum())
        why = f'the losses of {n_pairs:.2g} pairs of observations are more than "{wanted}" can add up.'
    return None if widest == coupling else (widest, why)


def check_affordable(counter: Counter, coupling: Coupling, one_start: bool) -> None:
    """Refuse what nobody would wait for, no memory would hold, or 64 bits cannot add up."""
    if not sums_fit(counter, coupling):
        widest = _widest(counter, coupling)
        other = "" if widest == coupling else f"coupling='{widest}', "
        raise InvalidParameterError(
            f"coupling='{coupling}' adds up losses of all steps in 64 bits, which must be enough; "
            f"{int(counter.running[2:].sum()):.2g} pairs of observations are too many for it; use {other}fewer "
            "trajectories or fewer steps."
        )
    if coupling != "markov":
        return
    seconds, n_bytes = markov_cost(counter, one_start)
    if seconds > TOO_LONG * len(counter.parts.rows) or n_bytes > TOO_LARGE:
        raise InvalidParameterError(
            f"coupling='markov' counts triples of encoders and must do with an hour and {TOO_LARGE >> 30} GiB; up to "
            f"{max(counter.sizes)} encoders of {counter.N_s} values on {counter.tau.H} steps would take "
            f"{in_words(seconds, n_bytes)}; use coupling='chain', fewer encoders, or fewer values."
        )
    check_room_in_memory("What is kept of all pairs of encoders", n_bytes, "use coupling='chain', or fewer encoders")


def sums_fit(counter: Counter, coupling: Coupling) -> bool:
    """Whether the losses of all pairs of observations fit into 64 bits, in units of 2^-30 nats.

    A pair loses at most ln K nats by the agent and, where dependences are charged, as much again and 2 ln N_s by the
    codes on both sides. Steps that are chosen one by one are not added up. Likelihood ratios need n ln n.
    """
    pairs = counter.running[2:].sum(axis=1).tolist()
    nats = (max(pairs) if coupling == "independent" else sum(pairs)) * math.log(counter.tau.K)
    if coupling == "markov":
        nats = max(2 * nats + 2 * sum(pairs) * math.log(counter.N_s), max(pairs) * math.log(max(pairs[0], 2)))
    return nats * FIXED_POINT < 2**63


def _widest(counter: Counter, wanted: Coupling) -> Coupling:
    """The coupling wanted, or what comes closest to it and can add up so many pairs."""
    nearest: tuple[Coupling, ...] = (wanted, "chain", "independent")
    return next((coupling for coupling in nearest if sums_fit(counter, coupling)), wanted)


def markov_cost(counter: Counter, one_start: bool = False) -> tuple[float, int]:
    """Seconds on one core and bytes, roughly: bounds for all pairs of encoders, and one round of settling them."""
    pairs = [a * b for a, b in pairwise([1, *counter.sizes[1:]] if one_start else counter.sizes)]
    triples = sum(pair + AT_ONCE**2 * size for pair, size in zip(pairs, counter.sizes[1:]))
    words = sum(-(-int(n) // (64 * LANES)) for n in counter.tau.counts)
    each = counter.tau.K * counter.N_s**3 + (counter.N_s - 1) ** 3 * words
    return 2 * triples * each * SECONDS_EACH, BYTES_EACH * sum(pairs) + BYTES_MADE * max(pairs)


def in_words(seconds: float, n_bytes: int) -> str:
    """A cost as an error tells it."""
    time = f"{seconds / 3600:,.0f} hours" if seconds > 7200 else f"{seconds / 60:.0f} minutes"
    return f"about {time} of one core and {n_bytes / 2**30:.1f} GiB"
