"""Choosing alpha, eta and nu from the data alone.

The paper takes them as known. What they are for is to read states off the log-odds, and how well that went shows in
the data: the encoders that come out, each shared by the pairs on both its sides, tell the agents apart as well as
any chain of encoders can only if they are right (`docs/chain.md`). So `auto` bounds are those whose encoders have
the least chained loss, found by halving and doubling one bound at a time, from several starting points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from craftrl.core.craft import Bounds, Result
from craftrl.core.labels import tally
from craftrl.data.dataset import TrajectoryDataset
from craftrl.estimators.evidence import evidence_of, pair_counts

__all__ = [
    "EXACT_STARTS",
    "LIMITS",
    "START",
    "STARTS",
    "GivenUp",
    "Pace",
    "Tried",
    "limits_for",
    "lowered",
    "search_bounds",
    "starts_for",
    "unnamed",
    "worth_sharing",
]

Ints = NDArray[np.integer]
SAME = 1e-12  # losses that differ by less are equal
START = Bounds(alpha=1.0, eta=0.2, nu=0.1)
# Halving and doubling may end beside the best bounds, or on a plateau: the search begins at the best of several.
EXACT_STARTS = tuple(replace(START, alpha=alpha) for alpha in (1.0, 0.5, 0.25))  # for finite classes
# Where log-odds scatter, the other bounds matter as well.
STARTS = tuple(
    Bounds(alpha, START.eta / finer, START.nu / finer**1.5) for finer in (1.0, 4.0, 16.0) for alpha in (1.0, 0.5)
)
# Beyond these a bound says nothing: alpha is cut off at 1 in Line 1, eta = 1/2 leaves a single bin.
LIMITS = {"alpha": (0.05, 1.0), "eta": (0.005, 0.45), "nu": (0.001, 0.8)}


@dataclass(frozen=True)
class Tried:
    """One run of CRAFT in a search: the bounds, what came out, and its chained loss.

    result   None for a run that was given up, its loss then being infinite
    unnamed  how far its states are from those that its encoders read; decides between runs with one loss
    """

    bounds: Bounds
    result: Result | None
    loss: float
    unnamed: float = 0.0


def starts_for(tau: TrajectoryDataset, exact: bool) -> tuple[Bounds, ...]:
    """Where to begin: `EXACT_STARTS` or `STARTS`, but eta is set for the agents' own shares rather than for equal ones.

    Of agents with 20,000 and 1,000 trajectories the second makes one visit in 21 where both act alike: with eta = 0.2
    all log-odds would lie beyond the grid.
    """
    return tuple(replace(start, eta=_beside(tau, start.eta)) for start in (EXACT_STARTS if exact else STARTS))


def limits_for(tau: TrajectoryDataset) -> dict[str, tuple[float, float]]:
    """`LIMITS`, but the least eta is set for the agents' own shares rather than for equal ones."""
    return {**LIMITS, "eta": (_beside(tau, LIMITS["eta"][0]), LIMITS["eta"][1])}


def _beside(tau: TrajectoryDataset, eta: float) -> float:
    """An eta meant for agents with equally many trajectories, at the odds of the rarest and the most frequent one."""
    if tau.counts.min() == tau.counts.max():
        return eta
    odds = eta / (1 - eta) * float(tau.counts.min() / tau.counts.max())
    return odds / (1 + odds)


def unnamed(codes: Iterable[Ints], n_states: Iterable[int]) -> float:
    """How far the states that CRAFT found are from those that its encoders read, from 0 on; lower is better.

    An encoder of a finite class has a value for every observation, also where CRAFT found fewer states than it has
    values: it may be right by luck, but the user is told of fewer states. Counted are, summed over steps, the share of
    codes that stand for no state, and the states that no code stands for.
    """
    total = 0.0
    for visits, n in zip(map(tally, codes), n_states):
        total += int(visits[n:].sum()) / max(int(visits.sum()), 1)
        total += n - int((visits[:n] > 0).sum())
    return total


class GivenUp(Exception):
    """A run of CRAFT that will not be the best of its search, and ends here."""


class Pace:
    """What runs of a search reach at each step, so that one that has fallen behind need not go on.

    A run has fallen behind if it would not be the best even if it did, at every step that is still to come, as well as
    the best run so far did at that very step. That is no proof: it may find there what none has found before. So all
    starts come to their end, from high bounds to low ones, and only what is tried after them may be given up.

    best  float (H-1,): the least loss of each pair of steps, in nats, over the runs that ended
    """

    def __init__(self, tau: TrajectoryDataset) -> None:
        self.tau = tau
        self.n_pairs = int((tau.lengths - 1).sum())
        self.best = np.full(tau.H - 1, np.inf)

    def losses(self, codes: Iterable[Ints]) -> list[float]:
        """Of each pair of neighbouring steps, in nats."""
        return [evidence_of(counts, self.tau) for counts in pair_counts(codes, self.tau)]

    def check(self, losses: Sequence[float], at_most: float) -> None:
        """Raise `GivenUp` where the losses of the first steps are too large for a loss of `at_most` per pair."""
        total = (sum(losses) + float(self.best[len(losses) :].sum())) / self.n_pairs
        if total > at_most + SAME:
            raise GivenUp

    def ended(self, losses: Sequence[float]) -> None:
        """Take note of a run that came to its end."""
        self.best = np.minimum(self.best, losses)


def lowered(bounds: Bounds, name: str, factor: float) -> Bounds:
    """The same with one bound divided by `factor`, within what a bound can say; those that are lower stay."""
    value = getattr(bounds, name)
    return replace(bounds, **{name: min(value, max(value / factor, LIMITS[name][0]))})


def search_bounds(
    run: Callable[[Bounds, float], Tried],
    starts: Sequence[Bounds],
    free: Sequence[str],
    limits: Mapping[str, tuple[float, float]] = LIMITS,
    one_will_do: bool = False,
) -> list[Tried]:
    """From the best of `starts`, halve or double one free bound at a time while that lowers the loss.

    Where `one_will_do` and the run at the first start names just the states that its encoders read, the others are left
    out: with more to choose from, a loss can be lower by chance.

    `run` is told the loss above which a run is of no use, infinity for starts, and may give it up.

    Returned are all runs that were made, the best first; larger bounds win ties. Deterministic; each combination is
    tried once: one that was not better when it was tried is not better than what was found since. A larger bound asks
    more of the data, and where both explain it equally well it is the better guide.
    """
    tried = {starts[0]: run(starts[0], np.inf)}
    if not (one_will_do and tried[starts[0]].unnamed == 0):
        tried |= {start: run(start, np.inf) for start in dict.fromkeys(starts[1:]) if start not in tried}
    best = _first_of_least(tried.values())
    while True:
        before = best
        for name in free:
            low, high = limits[name]
            for factor in (2.0, 0.5):
                moved = replace(best.bounds, **{name: min(max(getattr(best.bounds, name) * factor, low), high)})
                if moved not in tried:
                    tried[moved] = run(moved, best.loss)
                    best = _first_of_least((best, tried[moved]))
        if best is before:
            return [best, *sorted((t for t in tried.values() if t is not best), key=lambda t: t.loss)]


def worth_sharing(tried: Sequence[Tried], starts: Sequence[Bounds]) -> list[Tried]:
    """The best run, and the best of `starts` for each eta and nu: of these, any may be the best once states are shared.

    High bounds find few states that are surely there, low ones find rare states too and some that are none; which is
    the better beginning shows only when the steps have been compared with each other.
    """
    best = {(run.bounds.eta, run.bounds.nu): run for run in reversed(tried) if run.bounds in starts}  # the best is last
    return list({id(run): run for run in (tried[0], *best.values())}.values())


def _first_of_least(runs: Iterable[Tried]) -> Tried:
    """The run with the least loss; of those that are as good, the one with the states that its encoders read."""
    best, *others = runs
    for other in others:
        best = other if _better(other, best) else best
    return best


def _better(one: Tried, other: Tried) -> bool:
    if abs(one.loss - other.loss) > SAME:
        return one.loss < other.loss
    return one.unnamed < other.unnamed - SAME
