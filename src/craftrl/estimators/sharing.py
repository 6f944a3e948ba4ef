"""One encoder for all steps, where the world is stationary.

Step by step, CRAFT uses a state's observations at one h alone, and its labels are only as clean as those of the step
before. Where the world is stationary, the states of all steps are matched (`matching`), and one encoder is trained
on all of them: what one step got wrong is outvoted by the others. What it reads is then a better beginning for every
step, and CRAFT runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from craftrl.core.craft import Bounds, Result
from craftrl.core.encoders import Encoder
from craftrl.core.labels import Labels
from craftrl.core.learned import PreparedLearned
from craftrl.core.oracle import OracleCalls
from craftrl.data.dataset import TrajectoryDataset
from craftrl.estimators.evidence import shared_evidence
from craftrl.estimators.matching import Matching, match_states
from craftrl.estimators.misread import corrected
from craftrl.states.visits import count_visits

__all__ = ["Shared", "Turn", "read_states", "share_over_time"]

Bools = NDArray[np.bool_]
TURNS = 6  # how often CRAFT runs at most, each time with the states of the one encoder before
AGREED = 0.99  # share of the states on which a run and its one encoder agree, from which on CRAFT does not run again
ROUNDS = 2  # how often the encoder is trained at most, each time on the labels that the last one reads
LOWERED, FINER = ("nu", "eta", "alpha"), 4.0  # bounds that may be lowered once states are shared, and by what factor
LEAST = {"alpha": 0.05, "eta": 0.005, "nu": 0.001}  # below which a bound says nothing
SETTLED = 0.995  # share of the labels that an encoder reads as it was told, from which on it is not trained again


@dataclass(frozen=True)
class Shared:
    """One encoder, the states that it reads, and how they came about.

    labels    int (n, H): the states of the dataset, as the encoder reads them, but for observations that the moves
              before and after show to be misread (`misread`); -1 where it names none; at h = 1 there is one
    n_states  how many there are
    n_at      int (H,): how many of them are states of each step
    found     bool (n_states, H): whether CRAFT found the state at the step
    matching  how those of different steps were matched
    """

    encoder: Encoder
    labels: NDArray[np.int64]
    n_states: int
    n_at: NDArray[np.int64]
    found: Bools
    matching: Matching

    def at_step(self, nu: float, tau: TrajectoryDataset) -> Bools:
        """(n_states, H): whether the state is one of the step's."""
        return _at_step(self.labels, self.found, nu, tau)


@dataclass(frozen=True)
class Turn:
    """One run of CRAFT and the one encoder that was made of its states.

    loss  how badly those tell the agents apart (`shared_evidence`)
    """

    bounds: Bounds
    result: Result
    shared: Shared
    loss: float


def share_over_time(
    prepared: PreparedLearned,
    firsts: Sequence[tuple[Bounds, Result]],
    again: Callable[[Bounds, NDArray[np.int64]], Result],
    free: Collection[str],
    one_start: bool,
    ask: OracleCalls,
) -> Turn:
    """One encoder for all steps, and the run of CRAFT that it comes from.

    `firsts` are runs step by step; where there are several, the one whose shared states tell the agents apart best is
    taken, which need not be the one that was best before.

    The one encoder knows the states of h better than step h itself did, and from better states of h the log-odds show
    better ones of h+1. So where the two disagree CRAFT runs `again` with the states that the one encoder reads, and
    the states of that run are shared in turn. The run whose states tell the agents apart best is kept. With
    `one_start` all labels at h = 1 are one state.

    The bounds named in `free` were chosen for steps that stand alone. With the states of all steps behind it, a step
    may do with less: where steps and encoder disagreed, such bounds are lowered as long as that tells the agents
    apart better.
    """

    def turn(bounds: Bounds, result: Result, name: str) -> Turn:
        shared = _share(prepared, result, bounds.nu, f"shared-{name}", one_start, ask)
        return Turn(bounds, result, shared, shared_evidence(shared.labels, prepared.tau))

    last = best = min(
        (turn(*first, f"1-of-run-{i}") for i, first in enumerate(_different(firsts, prepared.tau), start=1)), key=_loss
    )
    for number in range(2, TURNS + 1):
        if _agreement(last.result.labels, last.shared.labels, prepared.tau) >= AGREED:
            return best
        before, last = last, turn(last.bounds, again(last.bounds, last.shared.labels), str(number))
        best = min(best, last, key=_loss)
        if _agreement(before.shared.labels, last.shared.labels, prepared.tau) >= SETTLED:
            break
    for name in (name for name in LOWERED if name in free):
        while (lower := _lowered(best.bounds, name)) != best.bounds:
            known = best.shared.labels
            last = turn(lower, again(lower, known), f"{name}-{getattr(lower, name):.4g}")
            if last.loss >= best.loss:
                break
            best = last
    return best


def _share(
    prepared: PreparedLearned, result: Result, nu: float, name: str, one_start: bool, ask: OracleCalls
) -> Shared:
    """Match the states of all steps, train one encoder on them, read the labels off it, and repeat.

    A state without support is dropped before each training (`_supported`). With `one_start` all labels at h = 1 are
    one state.
    """
    tau = prepared.tau

    def read(encoder: Encoder, h: int) -> Labels:
        return ask("reading", prepared.read, encoder, h)

    matching = match_states(result.encoders, result.labels, tau, read, prepared.seed, one_start)
    found = _found(matching)
    labels: NDArray[np.int64] = corrected(matching.labels, len(found))
    for turn in range(1, ROUNDS + 1):
        labels, found = _supported(labels, found, nu, tau)
        encoder = ask("sharing", prepared.share, labels, len(found), f"{name}-{turn}-of-{ROUNDS}").encoder
        said = read_states(prepared, encoder, len(found), one_start, ask)
        told, labels = labels, corrected(said, len(found))
        there = np.arange(tau.H) < tau.lengths[:, None]
        if (labels == told)[there].mean() >= SETTLED:
            break
    return Shared(encoder, labels, len(found), _at_step(labels, found, nu, tau).sum(axis=0), found, matching)


def _lowered(bounds: Bounds, name: str) -> Bounds:
    """The same with one bound divided by FINER, within what a bound can say; those that are lower stay."""
    value = getattr(bounds, name)
    return replace(bounds, **{name: min(value, max(value / FINER, LEAST[name]))})


def _loss(turn: Turn) -> float:
    return turn.loss


def _different(runs: Sequence[tuple[Bounds, Result]], tau: TrajectoryDataset) -> list[tuple[Bounds, Result]]:
    """The runs, without those whose states are those of an earlier one."""
    kept: list[tuple[Bounds, Result]] = []
    for bounds, result in runs:
        if all(_agreement(result.labels, other.labels, tau) < AGREED for _, other in kept):
            kept.append((bounds, result))
    return kept


def _agreement(by_step: NDArray[np.int64], shared: NDArray[np.int64], tau: TrajectoryDataset) -> float:
    """The share of observations whose state at their step is, mostly, the one that the shared encoder reads."""
    agreed = 0
    for own, common in zip(by_step.T, shared.T):
        known = (own >= 0) & (common >= 0)
        table = count_visits(own[known], common[known], sizes=(own.max(initial=0) + 1, common.max(initial=0) + 1))
        rows, columns = linear_sum_assignment(table, maximize=True)
        agreed += table[rows, columns].sum()
    return float(agreed / tau.lengths.sum())


def _found(matching: Matching) -> Bools:
    """(n_states, H): whether CRAFT found the state at the step."""
    found = np.zeros((matching.n_states, matching.labels.shape[1]), dtype=bool)
    for (h, _), state in zip(matching.nodes, matching.state_of):
        if state >= 0:
            found[state, h - 1] = True
    return found


def read_states(
    prepared: PreparedLearned, encoder: Encoder, n_states: int, one_start: bool, ask: OracleCalls
) -> NDArray[np.int64]:
    """The states of all observations, -1 where the encoder names none; from one start, at h = 1 that of most."""
    read = np.stack([ask("reading", prepared.read, encoder, h) for h in range(1, prepared.tau.H + 1)], axis=1)
    labels = np.where(read < n_states, read, -1).astype(np.int64)
    if not one_start:
        return labels
    starts = labels[labels[:, 0] >= 0, 0]
    labels[:, 0] = np.bincount(starts).argmax() if len(starts) else 0
    return labels


def _visits(labels: NDArray[np.int64], n_states: int) -> NDArray[np.int64]:
    """(n_states, H): how many trajectories are in the state at the step."""
    return np.stack([count_visits(label, sizes=(n_states,)) for label in labels.T], axis=1)


def _present(tau: TrajectoryDataset) -> NDArray[np.int64]:
    """(H,): how many trajectories are still running at each step."""
    return np.array([int(tau.running(h).sum()) for h in range(1, tau.H + 1)])


def _at_step(labels: NDArray[np.int64], found: Bools, nu: float, tau: TrajectoryDataset) -> Bools:
    """(n_states, H): whether the state is one of the step's.

    Half of nu of the trajectories that are still running are enough by themselves. Where CRAFT found it, an eighth of
    nu will do, which is what Line 19 asks of a bin at the last step.
    """
    visits = _visits(labels, len(found))
    return visits >= np.maximum(np.where(found, nu / 8, nu / 2) * _present(tau), 1)


def _supported(
    labels: NDArray[np.int64], found: Bools, nu: float, tau: TrajectoryDataset
) -> tuple[NDArray[np.int64], Bools]:
    """Labels and `found` (n_states, H) without the states that lack support, renumbered; one state where none is left.

    A state that is rare at each step may be common over all of them, and one that is reached late may be seen at one
    step alone. So a state has support if half of nu of the trajectories are in it at some step; or if an eighth of
    nu of them are in it at the steps, all together, at which CRAFT found it, and it was found at two steps or at the
    one where it is mostly visited. What one step found, and others see as often but did not find, is spurious.
    """
    visits, present = _visits(labels, len(found)), np.maximum(_present(tau), 1)
    at_found = (visits * found).sum(axis=1)
    confirmed = (found.sum(axis=1) > 1) | (2 * at_found >= visits.sum(axis=1))
    share_found = (visits / present * found).sum(axis=1)
    enough = (share_found >= nu / 8) & (at_found >= 1) & confirmed
    kept = enough | ((visits >= np.maximum(nu / 2 * present, 1)).any(axis=1))
    if not kept.any():
        return np.zeros_like(labels), np.ones((1, labels.shape[1]), dtype=bool)
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return number[labels], found[kept]
