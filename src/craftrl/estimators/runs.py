"""Runs of Algorithm 2 on one dataset: with the bounds given, or with several, of which the data takes the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.craft import Bounds, Result, craft
from craftrl.core.encoders import Encoder, named_by_step
from craftrl.core.labels import Labels
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.tests import StateTests, run_tests
from craftrl.estimators.bounds import (
    GivenUp,
    Pace,
    Tried,
    limits_for,
    search_bounds,
    starts_for,
    unnamed,
    worth_sharing,
)
from craftrl.estimators.evidence import chained_evidence, chained_loss
from craftrl.estimators.parting import part_fused
from craftrl.estimators.sharing import Shared, Turn, share_over_time
from craftrl.oracles.base import Choice
from craftrl.oracles.counting import PreparedCounting
from craftrl.oracles.memory import RememberingOracle
from craftrl.progress import tell

__all__ = ["Runs", "state_counts", "why_taken"]

Ints = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Runs:
    """All runs of one fit.

    known    the bounds that are given, by name; the others are chosen
    free     the names of those others
    reading  what `craft` takes beside the bounds: coupling, clusterer, relabel, start
    """

    prepared: RememberingOracle
    tau: TrajectoryDataset
    known: Mapping[str, float]
    free: Sequence[str]
    reading: Mapping[str, Any]

    @property
    def counting(self) -> PreparedCounting | None:
        """The oracle, if its class is finite."""
        return self.prepared.prepared if isinstance(self.prepared.prepared, PreparedCounting) else None

    @property
    def starts(self) -> list[Bounds]:
        """Where a search for bounds begins."""
        return [replace(start, **self.known) for start in starts_for(self.tau, exact=self.counting is not None)]

    def run(
        self, bounds: Bounds, states: Ints | None = None, each_step: Callable[[int, Encoder], None] | None = None
    ) -> Result:
        """Algorithm 2; with `states`, from these."""
        tell("run")
        return craft(self.prepared, self.tau, bounds, **self.reading, states=states, each_step=each_step)

    def tried(self) -> list[Tried]:
        """One run with the bounds given; where some are free, all that a search made, the best first."""
        if not self.free:
            bounds = self.starts[0]
            return [Tried(bounds, self.run(bounds), np.nan)]
        limits = limits_for(self.tau)
        if self.counting is not None:
            return search_bounds(self._counted, self.starts, self.free, limits, one_will_do=True)
        pace = Pace(self.tau)
        return search_bounds(partial(self._trained, pace), self.starts, self.free, limits)

    def _counted(self, bounds: Bounds, at_most: float) -> Tried:
        """One run of a search with a finite class: to the end, since it trains nothing."""
        result = self.run(bounds)
        codes = self.codes(result)
        return Tried(bounds, result, chained_loss(codes, self.tau), unnamed(codes, state_counts(result)))

    def _trained(self, pace: Pace, bounds: Bounds, at_most: float) -> Tried:
        """One run of a search whose encoders are trained: given up where its loss will not be `at_most`."""
        codes: list[Ints] = []
        losses: list[float] = []

        def each_step(h: int, encoder: Encoder) -> None:
            codes.append(self.prepared.read(encoder, self.tau, h))
            losses.extend(pace.losses(codes[-2:]))
            pace.check(losses, at_most)

        try:
            result = self.run(bounds, each_step=each_step)
        except GivenUp:
            return Tried(bounds, None, np.inf)
        pace.ended(losses)
        return Tried(bounds, result, chained_evidence(codes, self.tau), unnamed(codes, state_counts(result)))

    def shared(self, tried: Sequence[Tried]) -> Turn:
        """One encoder for all steps. Where log-odds scatter, several runs are worth a trial, and lower bounds too."""
        exact = self.counting is not None
        worth = worth_sharing(tried, () if exact else self.starts)
        firsts = [(run.bounds, run.result) for run in worth if run.result is not None]
        one_start = self.reading["start"] is None
        free = () if exact else self.free
        turn = share_over_time(self.prepared, firsts, self.tau, self.run, free, one_start, slips=not exact)
        if exact:  # what its encoders read is up to the class
            return turn
        return replace(turn, shared=part_fused(self.prepared, turn.shared, self.tau, turn.bounds.nu, one_start))

    def tests(self, result: Result, shared: Shared | None) -> StateTests | None:
        """Tests of the states that the encoders, or the one encoder, read; for finite classes.

        The states are taken at their word: a code that stands for none is a code of the commonest.
        """
        if self.counting is None:
            return None
        codes = self.codes(result) if shared is None else list(shared.labels.T)
        n_states = state_counts(result) if shared is None else [shared.n_states] * self.tau.H
        return run_tests(named_by_step(codes, n_states), self.counting)

    def codes(self, result: Result) -> list[Labels]:
        """What the encoders of all steps say of all trajectories."""
        return [self.prepared.read(encoder, self.tau, h) for h, encoder in enumerate(result.encoders, start=1)]


def state_counts(result: Result) -> list[int]:
    """|S_1|..|S_H|."""
    return [result.n_starts, *(step.n_states for step in result.trace.steps)]


def why_taken(name: str, tried: Sequence[Tried], used: Bounds) -> Choice:
    """Why a bound was taken: the best for the steps by themselves, or the best once states were shared."""
    best = tried[0]
    if used == best.bounds:
        apart = f"its encoders tell the agents apart best ({best.loss:.4f} nats per pair)"
    else:
        alone = getattr(best.bounds, name)
        apart = f"these tell the agents apart best with states shared over time (step by step, {alone:.4g} is best)"
    return Choice(name, getattr(used, name), f"of {len(tried)} combinations tried, {apart}.")
