"""Algorithm 2 as a pure function of a prepared oracle: from log-odds to states, step by step.

Paper: Algorithm 2
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from craftrl.core.clusters import cluster_pairs, heaviness_threshold, merge_clusters
from craftrl.core.encoders import ConstantEncoder, Encoder
from craftrl.core.evidence import shares_loss
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, n_labels, renamed
from craftrl.core.oracle import Coupling, OracleCalls, PairFunction, PreparedOracle
from craftrl.core.saved import Savable
from craftrl.core.trace import Comparison, Outcome, StepTrace, Trace

FAILED: dict[int, Outcome] = {0: "no state", 1: "one state"}


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
    relabel: bool = False,
    start: Labels | None = None,
    ask: OracleCalls | None = None,
) -> Result:
    """Learn phi'_1..phi'_H; as it stands, Algorithm 2 to the letter.

    D_{A,h}(s) and D_{B,h}(s) are one label per trajectory: `labels[h - 1]`.

    relabel  reads the states of h+1 off phi'_{h+1} once it is trained, so that trajectories between clusters are not
             lost
    start    (n,): the state that each trajectory begins in, -1 for unknown, where that is not one and the same
    ask      all questions to the oracle pass through it; it counts and times them

    Paper: Algorithm 2
    """
    ask = ask or OracleCalls()
    tau = prepared.tau
    grid = Grid.from_bounds(bounds.alpha, bounds.eta)  # Lines 1-4
    f = ask("log-odds", prepared.log_odds, grid, coupling)  # Lines 9-10, for all h
    labels = np.zeros((tau.H, tau.n), dtype=np.int64)  # of which one step after the other is filled in
    labels[0] = 0 if start is None else start  # Line 5
    n_starts = n_states = n_labels(labels[0])
    encoder: Encoder = ConstantEncoder()  # Line 6
    if n_starts > 1:
        encoder = ask("encoding", prepared.encode, 1, labels[0], n_starts).encoder
    encoders, steps = [encoder], []

    def merge(h: int, cluster: Labels, s_pred: tuple[int, ...]) -> tuple[Labels, tuple[Comparison, ...]]:
        return merge_clusters(s_pred, prepared.separation(h, cluster, len(s_pred)))

    for h in range(1, tau.H):  # Line 7
        running = tau.running(h + 1)
        threshold = heaviness_threshold(h, tau.H, bounds.nu, int(running.sum()))  # Line 11
        found = cluster_pairs(f.bins[:, h - 1], labels[h - 1], n_states, grid.size, threshold)  # Lines 12-21
        s_pred = tuple(c.s_pred for c in found.clusters)
        state_of, comparisons = ask("separation", merge, h + 1, found.cluster, s_pred)  # Lines 22-45
        label: Labels = renamed(found.cluster, state_of)
        n_states = n_labels(state_of)
        fit = ask("encoding", prepared.encode, h + 1, label, n_states)  # Line 46
        too_many = prepared.N_s is not None and n_states > prepared.N_s
        steps.append(
            StepTrace(
                h=h,
                threshold=threshold,
                spectra=found.spectra,
                clusters=tuple(replace(c, state=int(s)) for c, s in zip(found.clusters, state_of)),
                comparisons=comparisons,
                n_states=n_states,
                assigned=int((label >= 0).sum()) / max(int(running.sum()), 1),
                outcome=FAILED.get(n_states, "too many states" if too_many else "ok"),
                f_loss=float(f.loss[h - 1]),
                encoder_loss=fit.loss / max(n_states, 1),
                chance=shares_loss(running) if f.chance is None else float(f.chance[h - 1]),
                p_value=None if f.p_value is None else float(f.p_value[h - 1]),
            )
        )
        if relabel and n_states:
            label = ask("reading", prepared.read, fit.encoder, h + 1)
            label = np.where(label < n_states, label, -1)
        labels[h] = label
        encoders.append(fit.encoder)
    return Result(tuple(encoders), labels.T, Trace(grid, tuple(steps), f.models), f.f, n_starts)
