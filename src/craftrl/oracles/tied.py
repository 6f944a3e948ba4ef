"""The Markov chain of agents whose habits do not change: one table of moves for each agent, tied over time.

`markov` lets every pair of steps have a table of its own. Where agents do the same in the same state at every step,
and the world answers in the same way, the tables of all steps are one. Pooled over time it is known far better, and a
pair of codes that does not move as the others do is found out.

Codes and table are learned in turn: given the table, the best codes and their labels are a shortest path; given those,
the table is a count. Where that ends depends on where it starts. It starts from the codes of the Markov chain, from its
first few pairs, twice as many, and so on, since a chain goes wrong in the middle (docs/markov.md); the shortest path
of all is kept. Where habits do change over time, tying costs more than chance can explain, and the Markov chain is
returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.engine.counting import CountMemory, pair_counts
from craftrl.engine.dependence import chance_ratios
from craftrl.engine.tying import TiedPair, labellings, log_table, pooled
from craftrl.oracles.chain import shortest_chain
from craftrl.oracles.markov import MarkovChain, for_labels

__all__ = ["TiedChain"]

PURSUED = 4  # starts that are followed to the end
FEW = 3  # pairs that a start is made of at least

Int64 = NDArray[np.int64]
Find = Callable[[list[Int64]], tuple[list[int], int]]


class _Path(NamedTuple):
    """Encoders with their labels, as numbers i P + p, what they cost, and the moves that they count."""

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
        pairs = range(self.first, len(markov.after))
        self.tied = list(markov.engine.map(self._count, pairs))

    def _count(self, h: int) -> TiedPair:
        return TiedPair(pair_counts(self.markov.before[h], self.markov.after[h]))

    def shortest(self, grid: Grid, counts: CountMemory | None = None) -> list[int]:
        """The encoders i_1, ..., i_H: of the best chain found, or of the Markov chain where the tables are not tied."""
        free = self.markov.charges(grid, counts)
        apart, _ = self.markov.cheapest(free)
        if not self.tied:
            return apart
        tied = self._best(free, apart)
        if tied.cost - self._cost_apart(free, apart) > self._allowed():
            return apart
        return [node // len(self.names) for node in tied.nodes]

    def _best(self, free: Sequence[Int64], apart: list[int]) -> _Path:
        """The shortest path of all starts; dependences are bounded on the way there, and settled on from it."""
        P = len(self.names)
        untied = [for_labels(charge, P) for charge in free[: self.first]]
        left_out = [np.repeat(known, P)[:, None] for known in self.markov.left_out[self.first :]]

        def find(tied: list[Int64], settle: bool = False) -> tuple[list[int], int]:
            charges = [*untied, *(charge + known for charge, known in zip(tied, left_out))]
            return self.markov.cheapest(charges, P, settle)

        tried = {tuple(path.nodes): path for path in (self._once(visits, find) for visits in self._starts(apart))}
        promising = sorted(tried.values(), key=lambda path: path.cost)[:PURSUED]
        seen: set[tuple[int, ...]] = set()
        settle = partial(find, settle=True)
        return _shortest_of(self._improve(self.tied, path.visits, settle, seen) for path in promising)

    def _once(self, visits, find):
        charges = partial(TiedPair.charges, table=log_table(visits), names=self.names)
        nodes, cost = find(list(self.markov.engine.map(charges, self.tied)))
        return _Path(cost, nodes, self._visits(self.tied, nodes))

    def _improve(self, tied: Sequence[TiedPair], visits: Int64, find: Find, seen: set[tuple[int, ...]]) -> _Path | None:
        """Path and table in turn, until they come to where one was before: the shortest path on the way, if any."""
        best: _Path | None = None
        while True:
            charges = partial(TiedPair.charges, table=log_table(visits), names=self.names)
            nodes, cost = find(list(self.markov.engine.map(charges, tied)))
            if tuple(nodes) in seen:
                return best
            seen.add(tuple(nodes))
            visits = self._visits(tied, nodes)
            if best is None or cost < best.cost:
                best = _Path(cost, nodes, visits)

    def _visits(self, tied: Sequence[TiedPair], nodes: Sequence[int]) -> Int64:
        """The moves of all pairs that share the table, added up."""
        at = [divmod(node, len(self.names)) for node in nodes[len(nodes) - len(tied) - 1 :]]
        named = (
            pooled(pair.cells[i, j], self.names[p], self.names[q]) for pair, (i, p), (j, q) in zip(tied, at, at[1:])
        )
        return np.asarray(sum(named))

    def _starts(self, path: Sequence[int]) -> Iterator[Int64]:
        """Tables from the whole of a chain, from its halves, its quarters, and so on."""
        on_path = [pair.only(i, j) for pair, (i, j) in zip(self.tied, list(pairwise(path))[self.first :])]
        parts = 1
        while parts == 1 or len(on_path) // parts >= FEW:
            bounds = np.linspace(0, len(on_path), parts + 1).astype(int)
            yield from (self._labelled(on_path[a:b]) for a, b in pairwise(bounds))
            parts *= 2

    def _labelled(self, pairs: Sequence[TiedPair]) -> Int64:
        """The moves of given codes, labelled so that one table fits them best."""
        firsts = (pooled(pairs[0].cells[0, 0], self.names[0], second) for second in self.names)
        return _shortest_of(self._improve(pairs, visits, shortest_chain, set()) for visits in firsts).visits

    def _cost_apart(self, free: Sequence[Int64], path: Sequence[int]) -> int:
        """What a chain costs if every pair has a table of its own, off the grid."""
        at = list(pairwise(path))
        tied = at[self.first :]
        untied = sum(int(charge[i, j]) for charge, (i, j) in zip(free[: self.first], at))
        own = sum(pair.own_charge(i, j) for pair, (i, j) in zip(self.tied, tied))
        left_out = sum(int(known[i]) for known, (i, _) in zip(self.markov.left_out[self.first :], tied))
        return untied + own + left_out + sum(int(d[i, j]) for d, (i, j) in zip(self.markov.dependences, at))

    def _allowed(self) -> int:
        """How much dearer tied tables may be: for every pair what one in ten would lose by chance."""
        freedom = (self.tied[0].cells.shape[-1] - 1) * self.N_s * (self.N_s - 1)
        return len(self.tied) * int(chance_ratios(freedom, 1)[freedom])


def _shortest_of(paths: Iterable[_Path | None]) -> _Path:
    return min((path for path in paths if path is not None), key=lambda path: path.cost)
