"""Fits by Algorithm 2, with bounds that are given or chosen; and finite classes with one encoder for all steps.

Bounds are chosen by the encoders that come out: of the settings tried, the one whose encoders tell the agents apart
best and, for finite classes, leave least out (`PreparedCounting.beyond_losses`). For `stationary=True` nothing is
searched: one encoder serves all steps, and the class is finite, so each is scored in that way, and the best one's
values are the states.

Paper: Algorithm 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from craftrl.core.craft import Bounds, Result, craft
from craftrl.core.encoders import ConstantEncoder, Encoder, ValueEncoder
from craftrl.core.evidence import shares_loss
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, n_labels, paired, renamed, tally
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds, OracleCalls, PreparedOracle
from craftrl.core.trace import Cluster, StepTrace, Trace
from craftrl.data.dataset import TrajectoryDataset
from craftrl.diagnostics.state_tests import StateTests, run_tests
from craftrl.errors import InvalidParameterError
from craftrl.estimators.bounds import BOUNDS, agents_nll, candidate_bounds, chained_nll, eta_beside
from craftrl.oracles.base import Choice
from craftrl.oracles.finite import CONSTANT, PreparedCounting
from craftrl.progress import tell

if TYPE_CHECKING:
    from craftrl.estimators.states import Found

CHAIN_ALPHA, CHAIN_ETA = 0.25, 0.05  # of the grid on which encoders are compared
PROMISING = 8  # encoders that are tested for what their values leave out
SPAN = (5, 95)  # percentiles of the log-odds of a move that its cluster spans
ONE_START = 5.0  # nats, and as many as the choice among all encoders may be worth by chance


@dataclass(frozen=True)
class Fitted:
    """What a fit has learned.

    result        of Algorithm 2; with one encoder for all steps, what it would record of its states
    bounds        that were used
    choices       what was left to the library
    codes         int (n, H): what the encoders say of every trajectory, -1 where one is over
    encoder       the one for all steps, None where each step has its own
    embedding_r2  of the log-odds, the share that the embedding explains; None without one that is trained
    states        how they were found in an embedding; None for those of Algorithm 2 and of finite classes
    """

    result: Result
    bounds: Bounds
    choices: tuple[Choice, ...]
    codes: Labels
    encoder: Encoder | None = None
    embedding_r2: float | None = None
    states: Found | None = None


def fit_by_step(
    prepared: PreparedOracle,
    known: Mapping[str, float],
    coupling: Coupling,
    relabel: bool,
    start: Labels | None,
    ask: OracleCalls,
) -> Fitted:
    """Algorithm 2, at the bounds that are known or, where some are not, at the best of nine settings.

    Where one finds too many states, a smaller alpha finds even more; smaller eta and nu need not: the grid is wider.
    """
    tau = prepared.tau
    free = [name for name in BOUNDS if name not in known]
    best: tuple[float, float] = (np.inf, np.inf)
    tried = 0
    crowded: tuple[float, float] | None = None
    for bounds in candidate_bounds(tau, known):
        if crowded == (bounds.eta, bounds.nu):
            continue
        tell("run")
        tried += 1
        run = craft(prepared, bounds, coupling=coupling, relabel=relabel, start=start, ask=ask)
        codes = np.empty((tau.H, tau.n), dtype=np.int32)
        for h, encoder in enumerate(run.encoders, start=1):
            codes[h - 1] = ask("reading", prepared.read, encoder, h)
        if not free:
            return Fitted(run, bounds, (), codes.T)
        path = _path(run.encoders)
        nats = chained_nll(codes, tau) * int((tau.lengths - 1).sum()) + _left_out(path, prepared)
        score = round(nats, 6), _unnamed(codes, run.n_states)  # equal encoders tie, whatever their states are called
        if score < best:
            best, found = score, Fitted(run, bounds, (), codes.T)
        chain = [*(model.i for model in run.trace.models[:1]), *(model.j for model in run.trace.models)]
        if score[1] == 0 and coupling != "independent" and path == chain:
            break  # these encoders are the best chain there is, and their values the states
        if len(run.trace.outcomes().get("too many states", ())) > tau.H / 2:
            crowded = bounds.eta, bounds.nu
    why = f"of {tried} settings tried, its encoders are the best chain of codes."
    return replace(found, choices=tuple(Choice(name, getattr(found.bounds, name), why) for name in free))


def fit_stationary(prepared: PreparedCounting, known: Mapping[str, float], ask: OracleCalls) -> Fitted:
    """One encoder for all steps: of all in the class the one whose values best tell the agents apart.

    An agent's habits may be other ones at each step, or the same at all of them: the better account of the two counts.
    A code that mimics the state, s XOR a coin that was tossed once, tells the agents apart as well as the state does.
    But where all trajectories begin in one state, its first value is a coin: an encoder with one first value is taken
    unless another is better by more than chance.
    Bounds have no part in the choice; they are those of the grid that its log-odds are rounded to.
    """
    tau = prepared.tau
    if not prepared.oracle.same_at_all_steps:
        raise InvalidParameterError(
            "stationary=True needs one class of encoders for all steps; this oracle has one for each h; give "
            "FiniteOracle a list of functions."
        )
    counts = np.stack([ask("sharing", prepared.counter.matched, h) for h in range(1, tau.H)])  # (H-1, |Phi|, ., ., K)
    by_step = agents_nll(counts, tau).sum(axis=(0, 2, 3))
    pooled = agents_nll(counts.sum(axis=0), tau).sum(axis=(1, 2))
    nats = np.minimum(by_step, pooled)
    one_first = (counts[0].sum(axis=(2, 3)) > 0).sum(axis=1) == 1
    order = np.argsort(nats, kind="stable")
    score = np.full(len(nats), np.inf)
    for i in np.union1d(order[:PROMISING], order[one_first[order]][:PROMISING]):
        score[i] = nats[i] + _left_out([int(i)] * tau.H, prepared)
    index = int(np.argmin(score))
    if one_first.any():
        other = int(np.argmin(np.where(one_first, score, np.inf)))
        index = other if score[other] - score[index] < ONE_START + np.log(len(nats)) else index
    score /= max(int(counts[:, 0].sum()), 1)
    values = np.stack([prepared.values(h, index) for h in range(1, tau.H + 1)], axis=1)
    occurs = tally(values.ravel(), prepared.N_s) > 0
    state_of = np.where(occurs, np.cumsum(occurs) - 1, np.cumsum(~occurs) + occurs.sum() - 1)
    labels = renamed(values, state_of)
    encoder = prepared.oracle.encoder(1, index, state_of)
    others = np.delete(score, index).min(initial=np.inf)
    beside = f"; {others:.4f} by the next best" if np.isfinite(others) else ""
    why = f"of {len(score)}, its values tell the agents apart best ({score[index]:.4f} nats per pair{beside})."
    bounds = candidate_bounds(tau, known)[0]
    because = "with stationary=True bounds decide nothing but the grid on which log-odds are shown."
    choices = [Choice(name, getattr(bounds, name), because) for name in BOUNDS if name not in known]
    f = prepared.evaluated([(index, index)] * (tau.H - 1), Grid.from_bounds(bounds.alpha, bounds.eta), one_encoder=True)
    result = recorded(f, labels, bounds, [EncoderFit(encoder, 0.0)] * tau.H, tau, one_encoder=True)
    return Fitted(result, bounds, (Choice("encoder", index, why), *choices), labels, encoder)


def tests_of(prepared: PreparedCounting, fitted: Fitted, coupling: Coupling) -> StateTests:
    """Tests of the states by every function of a finite class; with what coupling "markov" has counted, also whether
    other chains of encoders explain the data as well."""
    encoders, tau = fitted.result.encoders, prepared.tau
    if fitted.encoder is not None:
        return run_tests(fitted.codes, [n_labels(fitted.codes)] * tau.H, prepared, by_step=False)
    members = all(isinstance(encoder, (ConstantEncoder, ValueEncoder)) for encoder in encoders)
    chain = (_path(encoders), chain_grid(tau)) if coupling == "markov" and members else ()
    return run_tests(fitted.codes, fitted.result.n_states, prepared, *chain)


def _path(encoders: Sequence[Encoder]) -> list[int]:
    """The numbers of encoders in their classes."""
    return [encoder.index if isinstance(encoder, ValueEncoder) else CONSTANT for encoder in encoders]


def _left_out(path: Sequence[int], prepared: PreparedOracle) -> float:
    """What codes of a finite class owe beyond their losses, in nats; 0 where counting it would take too long."""
    if not isinstance(prepared, PreparedCounting) or prepared.affordable("markov") is not None:
        return 0.0
    return prepared.beyond_losses(path, chain_grid(prepared.tau))


def chain_grid(tau: TrajectoryDataset) -> Grid:
    """The grid on which chains of encoders are compared, whatever the bounds."""
    return Grid.from_bounds(CHAIN_ALPHA, eta_beside(tau, CHAIN_ETA))


def recorded(
    f: LogOdds,
    labels: NDArray[np.int64],
    bounds: Bounds,
    fits: Sequence[EncoderFit],
    tau: TrajectoryDataset,
    one_encoder: bool,
) -> Result:
    """States of all steps in the records of Algorithm 2: every move is a cluster of its own, from bin to bin."""
    grid = Grid.from_bounds(bounds.alpha, bounds.eta)
    in_all = n_labels(labels)
    steps = []
    for h in range(1, tau.H):
        before, after, bins = labels[:, h - 1], labels[:, h], f.bins[:, h - 1]
        n_states, n_after = (in_all, in_all) if one_encoder else (n_labels(before), max(n_labels(after), 1))
        there = (before >= 0) & (after >= 0)
        move = paired(before, after, n_after)
        spectra = np.zeros((n_states, tau.K - 1, grid.size), dtype=np.int64)
        np.add.at(spectra, (before[there, None], np.arange(tau.K - 1), bins[there]), 1)
        clusters = []
        for one in np.unique(move[there]):
            at = np.percentile(bins[there & (move == one)], SPAN, axis=0, method="nearest").astype(int)
            s, s_next = divmod(int(one), n_after)
            spans = tuple((int(low), int(high)) for low, high in at.T)
            clusters.append(Cluster(s, spans, int((there & (move == one)).sum()), s_next))
        n_next = int((tally(after[after >= 0]) > 0).sum())
        steps.append(
            StepTrace(
                h=h,
                threshold=0.0,
                spectra=spectra[:, 0] if tau.K == 2 else spectra,
                clusters=tuple(clusters),
                comparisons=(),
                n_states=n_next,
                assigned=1.0,
                outcome="ok" if n_next > 1 else "one state",
                f_loss=float(f.loss[h - 1]),
                encoder_loss=fits[h].loss / max(in_all if one_encoder else n_next, 1),
                chance=shares_loss(tau.running(h + 1)) if f.chance is None else float(f.chance[h - 1]),
                p_value=None if f.p_value is None else float(f.p_value[h - 1]),
            )
        )
    n_starts = int((tally(labels[labels[:, 0] >= 0, 0]) > 0).sum())
    return Result(tuple(fit.encoder for fit in fits), labels, Trace(grid, tuple(steps), f.models), f.f, n_starts)


def _unnamed(codes: Labels, n_states: Sequence[int]) -> float:
    """How far the states that CRAFT found are from those that its encoders read; 0 where they are the same.

    An encoder has a value for every observation, also where CRAFT found fewer states than it has values: it may be
    right by luck, but the user is told of fewer states. Counted are, summed over steps, the share of codes that stand
    for no state, and the states that no code stands for.
    """
    total = 0.0
    for code, n in zip(codes, n_states):
        visits = tally(code, n)
        total += int(visits[n:].sum()) / max(int(visits.sum()), 1) + n - int((visits[:n] > 0).sum())
    return total
