"""The Markov chain of agents whose habits do not change: one table of moves for each agent, tied over time.

`markov` lets every pair of steps have tables of its own. Where agents do the same in the same state at every step, and
the world answers in the same way, the tables of all steps are one. Pooled over time it is known far better, and a pair
of codes that does not move as the others do is found out.

Codes and table are learned in turn: given the table, the best codes and their labels are a shortest path; given those,
the table is a count. Where that ends depends on where it starts. Starts are tables of the Markov chain's own codes: of
the whole chain and of parts of it, as a chain that fails is right in some part. Where habits do change over time, one
table costs more than chance can explain, and the Markov chain is returned as it is (docs/markov.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.engine.counting import CountMemory, pair_counts
from craftrl.engine.dependence import chance_ratios
from craftrl.engine.packing import PackedStep
from craftrl.engine.tying import TiedPair, labellings, log_table, pooled
from craftrl.errors import InvalidParameterError
from craftrl.oracles.chain import shortest_chain
from craftrl.oracles.markov import TOO_LARGE, TOO_LONG, MarkovChain, for_labels, in_words

__all__ = ["TiedChain", "check_tied_cost"]

FEW = 3  # pairs that a start is made of at least
PURSUED = 4  # starts that are followed to the end because they look best
PATHS = 30  # that are searched for in all, roughly
SECONDS_EACH = 3e-9  # for a cell of a table with its labels, measured

Int64 = NDArray[np.int64]
Find = Callable[[list[Int64]], tuple[list[int], int]]


class _Path(NamedTuple):
    """What a chain costs, its encoders i with labels p as numbers i P + p, and the moves that it counts."""

    cost: int
    nodes: list[int]
    visits: Int64


class TiedChain:
    """The shortest Markov chain of one dataset if its agents' tables of moves are the same at every step.

    markov  the chain that it starts from, with its charges
    """

    def __init__(self, markov: MarkovChain) -> None:
        self.markov = markov
        self.N_s = markov.after[-1].N_s
        self.names = labellings(self.N_s)
        # From one start, the first code is constant and has no table like the others'.
        self.first = int(markov.before[0].N_s != self.N_s)
        pairs = range(len(markov.after))
        self.tied = list(markov.engine.map(self._count, pairs[self.first :]))
        # Counted anew, as the chain's are settled by and by: answers must not depend on what was asked before.
        self.bounds = list(markov.engine.map(markov.bounds, pairs))

    def _count(self, h: int) -> TiedPair:
        return TiedPair(pair_counts(self.markov.before[h], self.markov.after[h]))

    def shortest(self, grid: Grid, counts: CountMemory | None = None) -> list[int]:
        """The encoders i_1, ..., i_H of the best tied chain found, or of the Markov chain where nothing is tied."""
        free = self.markov.charges(grid, counts)
        apart, _ = self.markov.cheapest(free)
        if not self.tied:
            return apart
        best = self._best(free[: self.first], apart)
        if best.cost - self._cost_apart(free[: self.first], apart) > self._allowed():
            return apart
        return [node // len(self.names) for node in best.nodes]

    def _best(self, untied: Sequence[Int64], apart: Sequence[int]) -> _Path:
        """Every start once, with dependences bounded; then some to the end, with dependences settled.

        These are the most promising ones, and those from the beginning of the chain: a chain that changes over to a
        mimic is right there, and only there.
        """
        find = partial(self._bounded, untied)
        tried = [(leading, self._next(self.tied, visits, find)) for leading, visits in self._starts(apart)]
        different = {tuple(path.nodes): path for _, path in tried}.values()
        promising = sorted(different, key=lambda path: path.cost)[:PURSUED]
        promising += [path for leading, path in tried if leading]
        seen: set[tuple[int, ...]] = set()
        return _shortest_of(
            self._improve(self.tied, path.visits, partial(self._settled, untied), seen) for path in promising
        )

    def _bounded(self, untied: Sequence[Int64], tied: list[Int64]) -> tuple[list[int], int]:
        charges = self._charges(untied, tied)
        return shortest_chain(charge + for_labels(d, len(self.names)) for charge, d in zip(charges, self.bounds))

    def _settled(self, untied: Sequence[Int64], tied: list[Int64]) -> tuple[list[int], int]:
        return self.markov.cheapest(list(self._charges(untied, tied)), len(self.names))

    def _charges(self, untied: Sequence[Int64], tied: Sequence[Int64]) -> Iterator[Int64]:
        """Of all pairs of steps, whatever the labels: those that share no table, and those that do."""
        P = len(self.names)
        yield from (for_labels(charge, P) for charge in untied)
        for charge, left_out in zip(tied, self.markov.left_out[self.first :]):
            yield charge + np.repeat(left_out, P)[:, None]

    def _improve(self, tied: Sequence[TiedPair], visits: Int64, find: Find, seen: set[tuple[int, ...]]) -> _Path | None:
        """Path and table in turn, until they come to where one was before: the shortest path on the way, if any."""
        best: _Path | None = None
        while True:
            path = self._next(tied, visits, find)
            if tuple(path.nodes) in seen:
                return best
            seen.add(tuple(path.nodes))
            best, visits = _shortest_of([best, path]), path.visits

    def _next(self, tied: Sequence[TiedPair], visits: Int64, find: Find) -> _Path:
        """The shortest path if agents move as these visits say."""
        charges = partial(TiedPair.charges, table=log_table(visits), names=self.names)
        nodes, cost = find(list(self.markov.engine.map(charges, tied)))
        at = [divmod(node, len(self.names)) for node in nodes[len(nodes) - len(tied) - 1 :]]
        moves = (
            pooled(pair.cells[i, j], self.names[p], self.names[q]) for pair, ((i, p), (j, q)) in zip(tied, pairwise(at))
        )
        return _Path(cost, nodes, np.asarray(sum(moves)))

    def _starts(self, path: Sequence[int]) -> Iterator[tuple[bool, Int64]]:
        """Tables from the whole of a chain, its halves, its quarters, and so on; the first of each is marked."""
        on_path = [pair.only(i, j) for pair, (i, j) in zip(self.tied, list(pairwise(path))[self.first :])]
        parts = 1
        while parts == 1 or len(on_path) // parts >= FEW:
            bounds = np.linspace(0, len(on_path), parts + 1).astype(int)
            yield from ((a == 0, self._labelled(on_path[a:b])) for a, b in pairwise(bounds))
            parts *= 2

    def _labelled(self, pairs: Sequence[TiedPair]) -> Int64:
        """The moves of given codes, labelled so that one table fits them best."""
        firsts = (pooled(pairs[0].cells[0, 0], self.names[0], second) for second in self.names)
        return _shortest_of(self._improve(pairs, visits, shortest_chain, set()) for visits in firsts).visits

    def _cost_apart(self, untied: Sequence[Int64], path: Sequence[int]) -> int:
        """What a chain costs if every pair has tables of its own, off the grid."""
        at = list(pairwise(path))
        cost = sum(int(charge[i, j]) for charge, (i, j) in zip(untied, at))
        cost += sum(int(d[i, j]) for d, (i, j) in zip(self.markov.dependences, at))
        for pair, left_out, (i, j) in zip(self.tied, self.markov.left_out[self.first :], at[self.first :]):
            cost += pair.own_charge(i, j) + int(left_out[i])
        return cost

    def _allowed(self) -> int:
        """How much more one table may cost: for every pair what one in ten would lose by chance."""
        freedom = (self.tied[0].cells.shape[-1] - 1) * self.N_s * (self.N_s - 1)
        return len(self.tied) * int(chance_ratios(freedom, 1)[freedom])


def _shortest_of(paths: Iterable[_Path | None]) -> _Path:
    return min((path for path in paths if path is not None), key=lambda path: path.cost)


def check_tied_cost(codes: Sequence[PackedStep]) -> None:
    """Refuse what nobody would wait for, or what no memory would hold: every labelling of every encoder is tried."""
    N_s, K = codes[-1].N_s, len(codes[-1].counts)
    pairs, labels = sum(a.size * b.size for a, b in pairwise(codes)), math.factorial(N_s) ** 2
    seconds, n_bytes = PATHS * pairs * labels * N_s**2 * K * SECONDS_EACH, pairs * (16 * labels + 4 * N_s**2 * K)
    if seconds > TOO_LONG or n_bytes > TOO_LARGE:
        most = max(step.size for step in codes)
        raise InvalidParameterError(
            f"coupling='tied' tries every order of {N_s} values and must do with an hour and {TOO_LARGE >> 30} GiB; up "
            f"to {most} encoders on {len(codes)} steps would take {in_words(seconds, n_bytes)}; use "
            "coupling='markov', fewer encoders, or fewer values."
        )
