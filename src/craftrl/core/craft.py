"""Algorithm 2 as a pure function of a prepared oracle: from log-odds to states, step by step.

Paper: Algorithm 2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.core.calls import OracleCalls
from craftrl.core.clusters import PairClusters, cluster_pairs, heaviness_threshold, scan
from craftrl.core.encoders import ConstantEncoder, Encoder
from craftrl.core.evidence import shares_loss
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, n_labels, renamed
from craftrl.core.learned import PreparedLearned
from craftrl.core.merging import Merged, merge_clusters, state_of_cluster
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds, PairFunction, PreparedOracle
from craftrl.core.saved import Savable
from craftrl.core.splitting import split_by_profile
from craftrl.core.trace import Cluster, Outcome, StepTrace, Trace
from craftrl.core.valleys import hills

__all__ = ["CLUSTERERS", "Bounds", "ClustererName", "Result", "craft"]

ClustererName = Literal["scan", "valleys"]
CLUSTERERS = {"scan": scan, "valleys": hills}
APART_BINS = 2  # between the profiles of two states: alpha/2, half of what is asked of f_h beside their predecessor


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

    @property
    def n_states(self) -> list[int]:
        """|S_1|..|S_H|."""
        return [self.n_starts, *(step.n_states for step in self.trace.steps)]


def craft(
    prepared: PreparedOracle,
    bounds: Bounds,
    *,
    coupling: Coupling = "independent",
    clusterer: ClustererName = "scan",
    relabel: bool = False,
    start: Labels | None = None,
    states: Labels | None = None,
    each_step: Callable[[int, Encoder], None] | None = None,
    ask: OracleCalls | None = None,
) -> Result:
    """Learn phi'_1..phi'_H; as it stands, Algorithm 2 to the letter.

    D_{A,h}(s) and D_{B,h}(s) are one label per trajectory: `labels[h - 1]`. With `relabel`, states of h+1 are read off
    phi'_{h+1} once it is trained, so that trajectories between clusters are not lost. `start` (n,) names the state that
    each trajectory begins in, -1 for unknown, where that is not one and the same: Lines 5-6 then begin with these. With
    `states` (n, H), -1 for unknown, those are taken for the states of h from which those of h+1 are found, in place of
    the ones found before. `each_step(h, phi'_h)` is told of every encoder as it is learned; what it raises ends the
    run. All questions to the oracle pass through `ask`, which counts and may remember them.

    Paper: Algorithm 2
    """
    ask = ask or OracleCalls()
    tau = prepared.tau
    grid = Grid.from_bounds(bounds.alpha, bounds.eta)  # Lines 1-4
    f = ask("log-odds", prepared.log_odds, grid, coupling)  # Lines 9-10, for all h
    labels = np.zeros((tau.H, tau.n), dtype=np.int64)  # of which one step after the other is filled in
    labels[0] = 0 if start is None else start  # Line 5
    n_starts = n_states = n_labels(labels[0])
    first: Encoder = ConstantEncoder()  # Line 6
    if n_starts > 1:
        first = ask("encoding", prepared.encode, 1, labels[0], n_starts).encoder
    encoders = [first]
    steps: list[StepTrace] = []
    for h in range(1, tau.H):  # Line 7
        if each_step is not None:
            each_step(h, encoders[-1])
        running = tau.running(h + 1)
        threshold = heaviness_threshold(h, tau.H, bounds.nu, int(running.sum()))  # Line 11
        before, n_before = (labels[h - 1], n_states) if states is None else _numbered(states[:, h - 1])
        found, strays = _clusters(h, before, n_before, f, prepared, grid, threshold, clusterer, ask)  # Lines 12-21
        merged, comparisons = _merged(h + 1, found, strays, prepared, ask)  # Lines 22-45
        state_of = state_of_cluster(merged, len(found.clusters))
        label: Labels = renamed(found.cluster, state_of[:-1])
        n_states = len(merged)
        fit = ask("encoding", prepared.encode, h + 1, label, n_states)  # Line 46
        assigned = int((label >= 0).sum()) / max(int(running.sum()), 1)
        steps.append(
            StepTrace(
                h=h,
                threshold=threshold,
                spectra=found.spectra,
                clusters=tuple(
                    Cluster(c.s_pred, c.bins, c.size, int(state_of[i])) for i, c in enumerate(found.clusters)
                ),
                comparisons=comparisons,
                n_states=n_states,
                assigned=assigned,
                outcome=_outcome(n_states, prepared.N_s),
                f_loss=float(f.loss[h - 1]),
                encoder_loss=fit.loss / max(n_states, 1),
                chance=shares_loss(running) if f.chance is None else float(f.chance[h - 1]),
                p_value=None if f.p_value is None else float(f.p_value[h - 1]),
            )
        )
        if relabel and n_states:
            label = _read(prepared, fit, h + 1, n_states, ask)
        labels[h] = label
        encoders.append(fit.encoder)
    if each_step is not None:
        each_step(tau.H, encoders[-1])
    trace = Trace(grid, tuple(steps), f.models)
    return Result(tuple(encoders), labels.T, trace, f.f, n_starts)


def _clusters(
    h: int,
    label: Labels,
    n_states: int,
    f: LogOdds,
    prepared: PreparedOracle,
    grid: Grid,
    threshold: float,
    clusterer: ClustererName,
    ask: OracleCalls,
) -> tuple[PairClusters, bool]:
    """The pairs of each predecessor, clustered by their values of f_h; and whether a successor may be in two clusters.

    Learned log-odds are steadied by the states of h, and clusters with profiles of several kinds are taken apart.

    Paper: Lines 12-21
    """
    find = CLUSTERERS[clusterer]
    if not isinstance(prepared, PreparedLearned):
        return cluster_pairs(f.bins[:, h - 1], label, n_states, grid.size, threshold, find), False
    bins = ask("log-odds given states", prepared.log_odds_given, h, label, f, grid)
    found = cluster_pairs(bins, label, n_states, grid.size, threshold, find)
    profiles = ask("profiles", prepared.profiles, h, label, f, grid)
    if profiles is None:
        return found, False
    return split_by_profile(found, profiles, APART_BINS * grid.xi), True


def _merged(h: int, found: PairClusters, strays: bool, prepared: PreparedOracle, ask: OracleCalls) -> Merged:
    """Which clusters are one state of h.

    What came of the comparisons is remembered, and not what they were made with: of a network that is the logits of
    every observation for every cluster.

    Paper: Lines 22-45
    """

    def merge(h: int, cluster: Labels, predecessors: tuple[int, ...], strays: bool) -> Merged:
        return merge_clusters(predecessors, prepared.separation(h, cluster, len(predecessors)), strays)

    return ask("separation", merge, h, found.cluster, tuple(c.s_pred for c in found.clusters), strays)


def _numbered(state: Labels) -> tuple[Labels, int]:
    """States numbered from 0 as they occur, -1 staying -1, and how many there are."""
    occurring = np.unique(state[state >= 0])
    return np.where(state >= 0, np.searchsorted(occurring, state), -1), len(occurring)


def _read(prepared: PreparedOracle, fit: EncoderFit, h: int, n_states: int, ask: OracleCalls) -> Labels:
    """The states at h as the encoder reads them, -1 where it names none of the states found.

    Labels that it might know by heart, wrong ones included, are taken from encoders that never saw them.
    """
    label = ask("reading", prepared.read, fit.encoder, h)
    if fit.unseen is not None:
        label = np.where(fit.unseen >= 0, fit.unseen, label)
    return np.where(label < n_states, label, -1)


def _outcome(n_states: int, N_s: int | None) -> Outcome:
    if n_states == 0:
        return "no state"
    if n_states == 1:
        return "one state"
    return "too many states" if N_s is not None and n_states > N_s else "ok"
