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

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.engine.counting import CountMemory, pair_counts
from craftrl.engine.dependence import chance_ratios
from craftrl.engine.tying import labellings, log_table, own_charge, pooled, tied_charges
from craftrl.oracles.chain import shortest_chain
from craftrl.oracles.markov import MarkovChain

__all__ = ["TiedChain"]

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
        self.cells = list(markov.engine.map(self._count, pairs))

    def _count(self, h: int) -> NDArray[np.int32]:
        return pair_counts(self.markov.before[h], self.markov.after[h]).astype(np.int32)

    def shortest(self, grid: Grid, counts: CountMemory | None = None) -> list[int]:
        """The encoders i_1, ..., i_H: of the best chain found, or of the Markov chain where the tables are not tied."""
        free = self.markov.charges(grid, counts)
        apart, _ = self.markov.cheapest(free)
        if not self.cells:
            return apart
        tied = self._best(free, apart)
        if tied.cost - self._cost_apart(free, apart) > self._allowed():
            return apart
        return [node // len(self.names) for node in tied.nodes]

    def _best(self, free: Sequence[Int64], apart: list[int]) -> _Path:
        """The shortest of the paths that all starts lead to."""
        P = len(self.names)
        untied = [np.repeat(np.repeat(charge, P, axis=0), P, axis=1) for charge in free[: self.first]]
        left_out = [np.repeat(known, P)[:, None] for known in self.markov.left_out[self.first :]]

        def find(tied: list[Int64]) -> tuple[list[int], int]:
            charges = [*untied, *(charge + known for charge, known in zip(tied, left_out))]
            return self.markov.cheapest(charges, P)

        seen: set[tuple[int, ...]] = set()
        found = (self._improve(self.cells, visits, find, seen) for visits in self._starts(apart))
        return min((path for path in found if path is not None), key=lambda path: path.cost)

    def _improve(
        self, cells: Sequence[NDArray[np.int32]], visits: Int64, find: Find, seen: set[tuple[int, ...]]
    ) -> _Path | None:
        """Path and table in turn, until they come to where one was before: the shortest path on the way, if any."""
        best: _Path | None = None
        while True:
            charge = partial(tied_charges, table=log_table(visits), names=self.names)
            nodes, cost = find(list(self.markov.engine.map(charge, cells)))
            if tuple(nodes) in seen:
                return best
            seen.add(tuple(nodes))
            visits = self._visits(cells, nodes)
            if best is None or cost < best.cost:
                best = _Path(cost, nodes, visits)

    def _visits(self, cells: Sequence[NDArray[np.int32]], nodes: Sequence[int]) -> Int64:
        """The moves of all pairs that share the table, added up."""
        at = [divmod(node, len(self.names)) for node in nodes[len(nodes) - len(cells) - 1 :]]
        named = (pooled(c[i, j], self.names[p], self.names[q]) for c, (i, p), (j, q) in zip(cells, at, at[1:]))
        return np.asarray(sum(named))

    def _starts(self, path: Sequence[int]) -> Iterator[Int64]:
        """Tables from the whole of a chain, from its halves, its quarters, and so on."""
        on_path = zip(self.cells, path[self.first :], path[self.first + 1 :])
        cells = [c[i : i + 1, j : j + 1] for c, i, j in on_path]
        parts = 1
        while parts == 1 or len(cells) // parts >= FEW:
            bounds = np.linspace(0, len(cells), parts + 1).astype(int)
            yield from (self._labelled(cells[a:b]) for a, b in pairwise(bounds))
            parts *= 2

    def _labelled(self, cells: Sequence[NDArray[np.int32]]) -> Int64:
        """The moves of given codes, labelled so that one table fits them best."""
        firsts = (pooled(cells[0][0, 0], self.names[0], second) for second in self.names)
        found = (self._improve(cells, visits, shortest_chain, set()) for visits in firsts)
        return min((path for path in found if path is not None), key=lambda path: path.cost).visits

    def _cost_apart(self, free: Sequence[Int64], path: Sequence[int]) -> int:
        """What a chain costs if every pair has a table of its own, off the grid."""
        at = list(pairwise(path))
        untied = sum(int(charge[i, j]) for charge, (i, j) in zip(free[: self.first], at))
        own = sum(own_charge(c[i, j]) for c, (i, j) in zip(self.cells, at[self.first :]))
        left_out = sum(int(known[i]) for known, (i, _) in zip(self.markov.left_out[self.first :], at[self.first :]))
        return untied + own + left_out + sum(int(d[i, j]) for d, (i, j) in zip(self.markov.dependences, at))

    def _allowed(self) -> int:
        """How much dearer tied tables may be: for every pair what one in ten would lose by chance."""
        freedom = (self.cells[0].shape[-1] - 1) * self.N_s * (self.N_s - 1)
        return len(self.cells) * int(chance_ratios(freedom, 1)[freedom])
