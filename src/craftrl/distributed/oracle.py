"""The three training problems of a finite class on shards: the same answers, from sums over shards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.losses import best_relabelling
from craftrl.core.pairs import Kinds
from craftrl.core.seam import EncoderFit
from craftrl.core.spread import HERE, Labels, Recipe, SpreadLabels, paired, renamed
from craftrl.distributed.parts import beginnings, sizes_of, start_of, step_of
from craftrl.distributed.places import Item, Result, ShardPlaces
from craftrl.engine.counting import group_counts
from craftrl.engine.engine import Engine
from craftrl.engine.spread_step import SpreadStep, value_counts_of
from craftrl.oracles.counting import CONSTANT, CountedSeparation, CountingOracle, PreparedCounting

__all__ = ["PreparedShards", "ShardEngine"]

Ints = NDArray[np.integer]
DEEP = 6  # a recipe that is made of so many, one within the other, is made once and kept


@dataclass(frozen=True)
class ShardEngine(Engine):
    """The engine for steps that are spread over shards: nothing is counted here, and questions travel together."""

    places: ShardPlaces | None = None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        assert self.places is not None
        return self.places.together(function, items)

    def together(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return list(self.map(function, items))


class PreparedShards(PreparedCounting):
    """`PreparedCounting` where no trajectory is at hand: steps and labels are spread, counts are sums.

    What is inherited is all that decides; what is here says how steps and labels are made on each shard.
    """

    patience = math.inf  # there may be any number of cores

    def __init__(self, oracle: CountingOracle, tau: Any, places: ShardPlaces) -> None:
        self.places = places
        super().__init__(oracle, tau)
        self.engine = ShardEngine(tile_bytes=oracle.tile_bytes, places=places)
        (sizes,) = places.executor.get([places.executor.submit(sizes_of, places.packed[0])])
        for h, (size, N_s) in enumerate(sizes, start=1):
            recipe = Recipe(step_of, HERE, h)
            self._steps[h] = SpreadStep(places, recipe, size, N_s, tau.counts, tau.running(h))
        found = places.totals([Recipe(value_counts_of, self._steps[h]) for h in self._steps])
        for step, counts in zip(self._steps.values(), found):
            step.value_counts = counts
        self._last: tuple[int, SpreadLabels, Ints] | None = None

    def _constant_start(self) -> SpreadStep:
        return SpreadStep(self.places, Recipe(start_of, HERE), 1, 1, self.tau.counts, self.tau.running(1))

    def first_labels(self, tau: Any) -> SpreadLabels:
        return SpreadLabels(self.places, Recipe(beginnings, HERE), 1)

    def held(self, label: SpreadLabels) -> SpreadLabels:
        """Labels made from those of many steps before are kept with their shards; most are the values of an encoder."""
        if label.recipe.depth <= DEEP:
            return label
        return SpreadLabels(self.places, self.places.held(label.recipe), label.n)

    def _all_bins(self, pairs: Sequence[tuple[int, int]], tables: Ints) -> tuple[Kinds, ...]:
        """A pair of observations is of the kind of its two values, of which the table says what f_h is."""
        kinds = []
        for h, ((i, j), table) in enumerate(zip(pairs, tables), start=1):
            kind: Any = self.step(h + 1).values(j)
            if i != CONSTANT:
                kind = paired(self.step(h).values(i), kind, self.N_s)
            rows = table[:1] if i == CONSTANT else table
            kinds.append(Kinds(kind, rows.reshape(-1, table.shape[-1]).astype(np.int16)))
        return tuple(kinds)

    def separation(self, h: int, cluster: SpreadLabels, n_clusters: int) -> CountedSeparation:
        counts = group_counts(self.step(h), cluster, n_clusters)
        self._last = h, cluster, counts
        return CountedSeparation(counts)

    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        """From the counts of the clusters that the states are made of, if these were the last to be counted."""
        counts = self._from_clusters(h, label, n_states)
        if counts is None:
            return super().encode(h, label, n_states)
        index, state_of, loss = best_relabelling(counts.transpose(1, 0, 2))
        return EncoderFit(self.oracle.encoder(h, index, state_of), loss)

    def _from_clusters(self, h: int, label: SpreadLabels, n_states: int) -> Ints | None:
        if self._last is None or self._last[0] != h:
            return None
        _, cluster, counts = self._last
        if not cluster.recipe.function is label.recipe.function is renamed:
            return None
        (base, cluster_of), (other, state_of) = cluster.recipe.args, label.recipe.args
        if base != other:
            return None
        state = np.full(len(counts) + 1, -1, dtype=np.int64)  # of each cluster; that of none is the last
        state[cluster_of] = np.where(cluster_of >= 0, state_of, -1)
        if not np.array_equal(state[cluster_of], state_of):
            return None
        joined = np.zeros((n_states, *counts.shape[1:]), dtype=np.int64)
        there = state[:-1] >= 0
        np.add.at(joined, state[:-1][there], counts[there])
        return joined
