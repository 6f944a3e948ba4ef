"""Algorithm 2 as a pure function of a prepared oracle: from log-odds to states, step by step.

Paper: Algorithm 2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import Clusterer, heaviness_threshold
from craftrl.core.encoders import ConstantEncoder, Encoder
from craftrl.core.evidence import shares_loss
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, n_labels, renamed
from craftrl.core.merging import state_of_cluster
from craftrl.core.pairs import cluster_pairs
from craftrl.core.saved import Savable
from craftrl.core.seam import Coupling, EncoderFit, LogOdds, PairFunction, PreparedOracle
from craftrl.core.splitting import split_by_profile
from craftrl.core.trace import Cluster, Outcome, StepTrace, Trace
from craftrl.data.dataset import TrajectoryDataset

Ints = NDArray[np.integer]
APART_BINS = 2  # between the profiles of two states: alpha/2, half of what is asked of f_h beside their predecessor

__all__ = ["Bounds", "Result", "craft"]


@dataclass(frozen=True)
class Bounds(Savable):
    """The three lower bounds that Algorithm 2 takes as known."""

    alpha: float
    eta: float
    nu: float


@dataclass(frozen=True)
class Result:
    """What one run of Algorithm 2 returns, and everything that it decided.

    encoders  phi'_1..phi'_H
    labels    int (n, H): the state of every trajectory at every step, -1 for unassigned
    f         f_1..f_{H-1} for new data, where the oracle keeps them
    n_starts  |S_1|
    """

    encoders: tuple[Encoder, ...]
    labels: NDArray[np.int64]
    trace: Trace
    f: PairFunction | None = None
    n_starts: int = 1


def craft(
    prepared: PreparedOracle,
    tau: TrajectoryDataset,
    bounds: Bounds,
    coupling: Coupling,
    clusterer: Clusterer,
    relabel: bool,
    states: Ints | None = None,
    start: Ints | None = None,
    each_step: Callable[[int, Encoder], None] | None = None,
) -> Result:
    """Learn phi'_1..phi'_H.

    D_{A,h}(s) and D_{B,h}(s) are one label per trajectory: `labels[h - 1]`. With `states` (n, H), -1 for unknown, those
    are taken for the states of h from which those of h+1 are found, in place of the ones found before. `start` (n,)
    names the state that each trajectory begins in, -1 for unknown, where that is not one and the same: Lines 5-6 then
    begin with these. `each_step(h, phi'_h)` is told of every encoder as it is learned; what it raises ends the run.

    Paper: Algorithm 2
    """
    grid = Grid.from_bounds(bounds.alpha, bounds.eta)  # Lines 1-4
    f = prepared.log_odds(grid, coupling)  # Lines 9-10, for all h
    labels: list[Labels] = [np.zeros(tau.n, dtype=np.int64) if start is None else start]  # Line 5
    n_starts = n_states = n_labels(labels[0])
    first: Encoder = ConstantEncoder() if n_states == 1 else prepared.encode(1, labels[0], n_states).encoder
    encoders = [first]  # Line 6
    told = each_step or _nobody
    told(1, first)
    steps: list[StepTrace] = []
    for h in range(1, tau.H):  # Line 7
        threshold = heaviness_threshold(h, tau.H, bounds.nu, int(tau.running(h + 1).sum()))  # Line 11
        before, n_before = (labels[h - 1], n_states) if states is None else _numbered(states[:, h - 1])
        label, step, fit = _iterate(h, before, n_before, f, prepared, grid, threshold, clusterer, tau.n)
        step = _beside_chance(step, f, tau)
        if relabel and step.n_states:
            label = _relabelled(prepared, fit, tau, h + 1, step.n_states)
        labels.append(label)
        encoders.append(fit.encoder)
        steps.append(step)
        told(h + 1, fit.encoder)
        n_states = step.n_states
    trace = Trace(grid, tuple(steps), f.models)
    return Result(tuple(encoders), np.stack(labels, axis=1).astype(np.int64), trace, f.f, n_starts)


def _nobody(h: int, encoder: Encoder) -> None:
    """Who is told of each step where nobody asked."""


def _iterate(
    h: int,
    label: Labels,
    n_states: int,
    f: LogOdds,
    prepared: PreparedOracle,
    grid: Grid,
    threshold: float,
    clusterer: Clusterer,
    n: int,
) -> tuple[Labels, StepTrace, EncoderFit]:
    """From the states of h to those of h+1: their labels, the record of what was decided, and phi'_{h+1}.

    Paper: Lines 8-46
    """
    bins = prepared.log_odds_given(h, label, f, grid)
    found = cluster_pairs(bins, label, n_states, grid.size, threshold, clusterer)  # Lines 12-21
    profiles = prepared.profiles(h, label, f, grid)
    found = found if profiles is None else split_by_profile(found, profiles, APART_BINS * grid.xi)
    predecessors = [c.s_pred for c in found.clusters]
    states, comparisons = prepared.merge(h + 1, found.cluster, predecessors, strays=profiles is not None)  # Lines 22-45
    state_of = state_of_cluster(states, len(predecessors))
    label_next = renamed(found.cluster, state_of[:-1])
    fit = prepared.encode(h + 1, label_next, len(states))  # Line 46
    step = StepTrace(
        h=h,
        threshold=threshold,
        spectra=found.spectra,
        clusters=tuple(Cluster(c.s_pred, c.bins, c.size, int(state_of[i])) for i, c in enumerate(found.clusters)),
        comparisons=comparisons,
        n_states=len(states),
        assigned=sum(c.size for i, c in enumerate(found.clusters) if state_of[i] >= 0) / n,
        outcome=_outcome(len(states), prepared.N_s),
        f_loss=float(f.loss[h - 1]),
        encoder_loss=fit.loss / max(len(states), 1),
    )
    return label_next, step, fit


def _beside_chance(step: StepTrace, f: LogOdds, tau: TrajectoryDataset) -> StepTrace:
    """The record of iteration h with what f_h is worth."""
    h = step.h
    chance = shares_loss(tau.running(h + 1)) if f.chance is None else float(f.chance[h - 1])
    return replace(step, chance=chance, p_value=None if f.p_value is None else float(f.p_value[h - 1]))


def _numbered(state: Ints) -> tuple[Ints, int]:
    """States numbered from 0 as they occur, -1 staying -1, and how many there are."""
    occurring = np.unique(state[state >= 0])
    return np.where(state >= 0, np.searchsorted(occurring, state), -1), len(occurring)


def _relabelled(prepared: PreparedOracle, fit: EncoderFit, tau: TrajectoryDataset, h: int, n_states: int) -> Labels:
    """The states at h as the encoder reads them, -1 where it names none of the states found.

    Labels that it might know by heart, wrong ones included, are taken from encoders that never saw them.
    """
    label = prepared.read(fit.encoder, tau, h)
    if fit.unseen is not None:
        label = np.where(fit.unseen >= 0, fit.unseen, label)
    return np.where(label < n_states, label, -1)


def _outcome(n_states: int, N_s: int | None) -> Outcome:
    if n_states == 0:
        return "no state"
    if n_states == 1:
        return "one state"
    return "too many states" if N_s is not None and n_states > N_s else "ok"
