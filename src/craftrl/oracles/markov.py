"""The Markov chain: encoders of all steps chosen together, with codes that a Markov chain could have.

`chain` adds up what pairs of codes say about the agent. Two things go wrong with little data (docs/markov.md): what a
code says by itself is counted in the pairs on both its sides, noise included; and nothing keeps a chain from changing
over, somewhere in the middle, to a code that moves like the state and is not. Here each pair of codes is charged for

- its loss, less that of the first code by itself, plus whatever else in x_h says about the agent once that code is
  known: so each code's own part is counted once, and a code that leaves something out gains nothing by it;
- how far the second code depends on x_h given the first code and the agent, and the first on x_{h+1} given the second.
  For the states it does not, whatever the agents do (Equation 1).

The charges are of pairs of codes, so the best chain is still a shortest path.

Paper: Equation 1
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_room_in_memory
from craftrl.core.grid import Grid
from craftrl.engine.counting import CountMemory
from craftrl.engine.dependence import agent_dependence, dependence, likely_dependence
from craftrl.engine.engine import Engine
from craftrl.engine.packing import LANES, PackedStep
from craftrl.errors import InvalidParameterError
from craftrl.oracles.chain import shortest_chain

__all__ = ["MarkovChain", "check_cost", "dear", "for_labels", "in_words", "through_costs"]

LONG, TOO_LONG = 60.0, 3600.0  # seconds on one core: where it is no longer the default, and where it is refused
LARGE, TOO_LARGE = 2**30, 2**33  # bytes, likewise
SECONDS_EACH = 25e-9  # for a cell of a table or a vector of bits, measured
BYTES_EACH = 25  # for each pair of encoders: its charge, its dependences, their sum, and whether they are settled
BYTES_MADE = 16  # for each pair of encoders of the largest two steps, while those are made
AT_ONCE = 8  # encoders of a step whose dependences are settled together, the most promising first

Int64 = NDArray[np.int64]


class MarkovChain:
    """The shortest Markov chain of one dataset, for any grid; dependences do not depend on the grid and are kept.

    codes   the encoders to choose from at each step; at the first the constant one, if all episodes start in one state
    seen    all encoders of each step: what the codes may depend on
    engine  where to count
    """

    def __init__(self, codes: Sequence[Any], seen: Sequence[Any], engine: Engine) -> None:
        self.engine = engine
        # Pair h is of those trajectories that have both steps.
        self.before = [code.among(after) for code, after in pairwise(codes)]
        self.seen_before = [all_.among(after) for all_, after in zip(seen, codes[1:])]
        self.after, self.seen_after = codes[1:], seen[1:]
        self.nothing = [step.nothing() for step in self.before]
        pairs = range(len(self.after))
        tile = engine.tile_bytes
        self.left_out = list(engine.map(lambda h: agent_dependence(self.before[h], self.seen_before[h], tile), pairs))
        self.dependences: list[Int64] = list(engine.map(self.bounds, pairs))
        self.settled = [np.zeros(bound.shape, dtype=bool) for bound in self.dependences]

    def bounds(self, h: int) -> Int64:
        """Dependences of all pairs of codes of h and h + 1, from below."""
        before, after, tile = self.before[h], self.after[h], self.engine.tile_bytes
        bounds = likely_dependence(before, self.seen_before[h], after, tile)
        bounds += likely_dependence(after, self.seen_after[h], before, tile).T
        return bounds

    def shortest(self, grid: Grid, counts: CountMemory | None = None) -> list[int]:
        """The encoders i_1, ..., i_H of the shortest chain; of equal ones that of `shortest_chain`."""
        return self.cheapest(self.charges(grid, counts))[0]

    def charges(self, grid: Grid, counts: CountMemory | None = None) -> list[Int64]:
        """What pairs of codes are charged, but for their dependences: one matrix for each pair of steps."""
        run = self.engine.map if self.engine.device == "cpu" else map  # a GPU does one pair of steps at a time
        return list(run(lambda h: self._charge(h, grid, counts), range(len(self.after))))

    def cheapest(self, charges: Sequence[Int64], n_labels: int = 1) -> tuple[list[int], int]:
        """The shortest chain under given charges and the dependences, and its cost.

        With `n_labels` P > 1 the charges are of encoders with labels, entry i P + p being encoder i with label p.
        Dependences are bounded from below for all pairs and settled, round by round, for the most promising encoders of
        each step. Once the shortest chain has settled pairs only, no other chain can be shorter.
        """
        while True:
            costs = [charge + for_labels(bound, n_labels) for charge, bound in zip(charges, self.dependences)]
            nodes, cost = shortest_chain(costs)
            path = [node // n_labels for node in nodes]
            if all(known[i, j] for known, i, j in zip(self.settled, path, path[1:])):
                return nodes, cost
            through = (cost.reshape(-1, n_labels).min(axis=1) for cost in through_costs(costs))
            # With the path itself: where many tie, it need not be among the first.
            best = [np.union1d(np.argsort(cost)[:AT_ONCE], [i]) for cost, i in zip(through, path)]
            del costs, through  # as large as the charges, and to be made again
            list(self.engine.map(self._settle_pair, list(zip(range(len(charges)), best, best[1:]))))

    def _charge(self, h: int, grid: Grid, counts: CountMemory | None) -> Int64:
        """What pairs of codes do not say about the agent beyond the first code, and what the first one leaves out."""
        (pair,) = self.engine.all_losses([self.before[h], self.after[h]], grid, counts)
        (alone,) = self.engine.all_losses([self.nothing[h], self.before[h]], grid, counts)
        pair += (self.left_out[h] - alone[0])[:, None]
        return pair

    def _settle_pair(self, what: tuple[int, NDArray[np.intp], NDArray[np.intp]]) -> None:
        """The exact dependences of some encoders of one step and some of the next."""
        h, rows, columns = what
        block = np.ix_(rows, columns)
        wanted = ~self.settled[h][block]
        if not wanted.any():
            return
        before, after, tile = self.before[h].take(rows), self.after[h].take(columns), self.engine.tile_bytes
        found = dependence(before, self.seen_before[h], after, wanted, tile)
        found += dependence(after, self.seen_after[h], before, wanted.T, tile).T
        self.dependences[h][block] = np.where(wanted, found, self.dependences[h][block])
        self.settled[h][block] = True


def dear(codes: Sequence[PackedStep]) -> str | None:
    """What a Markov chain over these encoders costs, in words, if that is too much for a default."""
    seconds, n_bytes = _cost(codes)
    return in_words(seconds, n_bytes) if seconds > LONG or n_bytes > LARGE else None


def check_cost(codes: Sequence[PackedStep], at_most: float = TOO_LONG) -> None:
    """Refuse what nobody would wait for, more than `at_most` seconds of one core, or what no memory would hold."""
    seconds, n_bytes = _cost(codes)
    if seconds > at_most or n_bytes > TOO_LARGE:
        most = max(step.size for step in codes)
        raise InvalidParameterError(
            f"coupling='markov' counts triples of encoders and must do with an hour and {TOO_LARGE >> 30} GiB; up to "
            f"{most} encoders of {codes[-1].N_s} values on {len(codes)} steps would take "
            f"{in_words(seconds, n_bytes)}; use coupling='chain', fewer encoders, or fewer values."
        )
    check_room_in_memory("What is kept of all pairs of encoders", n_bytes, "use coupling='chain', or fewer encoders")


def _cost(codes: Sequence[PackedStep]) -> tuple[float, int]:
    """Seconds on one core and bytes, roughly: bounds for all pairs of encoders, and one round of settling them."""
    pairs = [a.size * b.size for a, b in pairwise(codes)]
    triples = sum(pair + AT_ONCE**2 * b.size for pair, b in zip(pairs, codes[1:]))
    step = codes[-1]
    each = len(step.counts) * step.N_s**3 + (step.N_s - 1) ** 3 * int(step.segments[-1]) / LANES
    return 2 * triples * each * SECONDS_EACH, BYTES_EACH * sum(pairs) + BYTES_MADE * max(pairs)


def in_words(seconds: float, n_bytes: int) -> str:
    """A cost as an error tells it."""
    time = f"{seconds / 3600:,.0f} hours" if seconds > 7200 else f"{seconds / 60:.0f} minutes"
    return f"about {time} of one core and {n_bytes / 2**30:.1f} GiB"


def for_labels(matrix: Int64, n_labels: int) -> Int64:
    """Every entry for every label of its row and of its column."""
    return np.repeat(np.repeat(matrix, n_labels, axis=0), n_labels, axis=1) if n_labels > 1 else matrix


def through_costs(costs: Sequence[Int64]) -> list[Int64]:
    """For each encoder of each step the cost of the shortest chain through it."""
    there, back = [np.zeros(len(costs[0]), dtype=np.int64)], [np.zeros(costs[-1].shape[1], dtype=np.int64)]
    for cost in costs:
        there.append((there[-1][:, None] + cost).min(axis=0))
    for cost in reversed(costs):
        back.append((cost + back[-1]).min(axis=1))
    return [a + b for a, b in zip(there, reversed(back))]
