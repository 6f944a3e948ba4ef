"""Fits of oracles that train: a search for bounds, and one encoder for all steps.

Learned log-odds scatter, so that no setting of the bounds is right at once. The search begins at the best of several
settings and halves or doubles one bound at a time, while the agents are told apart better. With `stationary=True` the
states of all steps are then matched, and one encoder is trained on them (`sharing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from craftrl.core.craft import Bounds, ClustererName, Result, craft
from craftrl.core.encoders import Encoder
from craftrl.core.labels import Labels
from craftrl.core.learned import PreparedLearned
from craftrl.core.oracle import Coupling, OracleCalls, PreparedOracle
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.estimators.bounds import BOUNDS, eta_beside, settings
from craftrl.estimators.evidence import agents_evidence, chained_evidence, pair_tables
from craftrl.estimators.exact import Fitted
from craftrl.estimators.parting import part_fused
from craftrl.estimators.sharing import Shared, Turn, share_over_time
from craftrl.oracles.base import Choice
from craftrl.progress import tell

__all__ = ["Runs", "fit_learned"]

SAME = 1e-12  # losses that differ by less are equal
ALPHAS = (1.0, 0.5)  # of the settings that a search begins with
# Beyond these a bound says nothing: alpha is cut off at 1 in Line 1, eta = 1/2 leaves a single bin.
LIMITS = {"alpha": (0.05, 1.0), "eta": (0.005, 0.45), "nu": (0.001, 0.8)}


@dataclass(frozen=True)
class Tried:
    """One run of CRAFT in a search, and how badly its encoders tell the agents apart.

    result  None for a run that was given up, its loss then being infinite
    """

    bounds: Bounds
    result: Result | None
    loss: float


class _GivenUp(Exception):
    """A run of CRAFT that will not be the best of its search, and ends here."""


@dataclass(frozen=True, eq=False)
class Runs:
    """All runs of one fit.

    known  the bounds that are given, by name; the others are chosen
    """

    prepared: PreparedOracle
    known: Mapping[str, float]
    coupling: Coupling
    clusterer: ClustererName
    relabel: bool
    start: Labels | None
    ask: OracleCalls

    @property
    def tau(self) -> TrajectoryDataset:
        return self.prepared.tau

    @property
    def free(self) -> list[str]:
        """The bounds to choose."""
        return [name for name in BOUNDS if name not in self.known]

    def run(self, bounds: Bounds, states: Labels | None = None, watch: _Watch | None = None) -> Result:
        """Algorithm 2; with `states`, from these."""
        tell("run")
        return craft(
            self.prepared,
            bounds,
            coupling=self.coupling,
            clusterer=self.clusterer,
            relabel=self.relabel,
            start=self.start,
            states=states,
            each_step=watch,
            ask=self.ask,
        )

    def tried(self) -> list[Tried]:
        """One run with the bounds given; where some are free, all that a search made, the best first.

        From the best of the first settings, one free bound at a time is halved or doubled while that lowers the loss.
        Larger bounds win ties: a larger bound asks more of the data, and where both explain it equally well it is the
        better guide. Each combination is tried once.
        """
        firsts = settings(self.tau, self.known, ALPHAS)
        if not self.free:
            return [Tried(firsts[0], self.run(firsts[0]), np.nan)]
        reached = np.full(self.tau.H - 1, np.inf)
        tried = {bounds: self._watched(bounds, reached, np.inf) for bounds in firsts}
        best = min(tried.values(), key=lambda run: run.loss)
        limits = {**LIMITS, "eta": (eta_beside(self.tau, LIMITS["eta"][0]), LIMITS["eta"][1])}
        while True:
            before = best
            for name in self.free:
                low, high = limits[name]
                for factor in (2.0, 0.5):
                    moved = replace(best.bounds, **{name: min(max(getattr(best.bounds, name) * factor, low), high)})
                    if moved not in tried:
                        tried[moved] = self._watched(moved, reached, best.loss)
                        best = tried[moved] if tried[moved].loss < best.loss - SAME else best
            if best is before:
                return [best, *sorted((t for t in tried.values() if t is not best), key=lambda t: t.loss)]

    def _watched(self, bounds: Bounds, reached: np.ndarray, at_most: float) -> Tried:
        """One run of the search, given up where its loss will not be `at_most`; `reached` takes note of it."""
        watch = _Watch(self, reached, at_most)
        try:
            result = self.run(bounds, watch=watch)
        except _GivenUp:
            return Tried(bounds, None, np.inf)
        np.minimum(reached, watch.losses, out=reached)
        return Tried(bounds, result, chained_evidence(watch.codes, self.tau))

    def shared(self, tried: Sequence[Tried]) -> Turn:
        """One encoder for all steps. Where log-odds scatter, several runs are worth a trial, and lower bounds too.

        High bounds find few states that are surely there, low ones find rare states too and some that are none; which
        is the better beginning shows only when the steps have been compared with each other. So the best run goes on,
        and the best of the first settings for each eta and nu.
        """
        if not isinstance(self.prepared, PreparedLearned):
            raise InvalidParameterError(
                "stationary=True needs an oracle that can train one encoder for all steps; "
                f"{type(self.prepared).__name__} cannot; use stationary=False, or derive it from PreparedLearned."
            )
        firsts = settings(self.tau, self.known, ALPHAS)
        best = {(run.bounds.eta, run.bounds.nu): run for run in reversed(tried) if run.bounds in firsts}
        worth = {id(run): run for run in (tried[0], *best.values())}.values()
        runs = [(run.bounds, run.result) for run in worth if run.result is not None]
        one_start = self.start is None
        turn = share_over_time(self.prepared, runs, self.run, self.free, one_start, self.ask)
        return replace(turn, shared=part_fused(self.prepared, turn.shared, turn.bounds.nu, one_start, self.ask))

    def why(self, tried: Sequence[Tried], used: Bounds) -> tuple[Choice, ...]:
        """Why these bounds were taken: the best for the steps by themselves, or the best once states were shared."""
        best = tried[0]
        choices = []
        for name in self.free:
            apart = f"its encoders tell the agents apart best ({best.loss:.4f} nats per pair)"
            if used != best.bounds:
                alone = getattr(best.bounds, name)
                apart = (
                    f"these tell the agents apart best with states shared over time (step by step, {alone:.4g} is best)"
                )
            choices.append(Choice(name, getattr(used, name), f"of {len(tried)} combinations tried, {apart}."))
        return tuple(choices)


def fit_learned(
    prepared: PreparedOracle,
    known: Mapping[str, float],
    coupling: Coupling,
    clusterer: ClustererName,
    relabel: bool,
    start: Labels | None,
    ask: OracleCalls,
    stationary: bool,
) -> tuple[Fitted, Shared | None]:
    """Algorithm 2 as often as it takes, and how one encoder for all steps came about, if that was asked for."""
    runs = Runs(prepared, known, coupling, clusterer, relabel, start, ask)
    tried = runs.tried()
    result, bounds = tried[0].result, tried[0].bounds
    assert result is not None, "the best run came to its end"
    if not stationary:
        return Fitted(result, bounds, runs.why(tried, bounds), result.labels), None
    turn = runs.shared(tried)
    shared = turn.shared
    result = replace(turn.result, encoders=(shared.encoder,) * prepared.tau.H, labels=shared.labels)
    return Fitted(result, turn.bounds, runs.why(tried, turn.bounds), shared.labels, shared.encoder), shared


class _Watch:
    """Reads what the encoders of a run say, step by step, and ends the run where it has fallen behind.

    A run has fallen behind if it would not be the best even if it did, at every step that is still to come, as well as
    the best run so far did at that very step. That is no proof: it may find there what none has found before. So all
    first settings come to their end, and only what is tried after them may be given up.
    """

    def __init__(self, runs: Runs, reached: np.ndarray, at_most: float) -> None:
        self.runs = runs
        self.reached = reached
        self.at_most = at_most
        self.codes: list[Labels] = []
        self.losses: list[float] = []

    def __call__(self, h: int, encoder: Encoder) -> None:
        runs = self.runs
        self.codes.append(runs.ask("reading", runs.prepared.read, encoder, h))
        tables = pair_tables(self.codes[-2:], runs.tau)
        self.losses.extend(float(agents_evidence(counts, runs.tau).sum()) for counts in tables)
        n_pairs = int((runs.tau.lengths - 1).sum())
        if (sum(self.losses) + self.reached[len(self.losses) :].sum()) / n_pairs > self.at_most + SAME:
            raise _GivenUp
