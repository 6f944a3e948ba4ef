"""CRAFT: comparison-based representations from action-free trajectories.

Paper: Algorithm 2
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from craftrl.clusters import cluster_pairs, heaviness_threshold
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import AssumptionWarning, InvalidParameterError
from craftrl.grid import Grid, check_nu
from craftrl.learner import ByStep, Learner, check_dataset, constant_encoder
from craftrl.merging import merge_clusters, state_of_cluster
from craftrl.oracles.base import BoundOracle, Coupling, Encoder, LogOdds, Oracle
from craftrl.trace import Cluster, Outcome, StepTrace, Trace

Ints = NDArray[np.integer]

__all__ = ["CRAFT"]


class CRAFT(Learner):
    """Learns, from action-free trajectories of several agents, an encoder of the states that the agents control.

    Parameters
    ----------
    oracle
        The hypothesis class with its training oracles, such as `CoordinateOracle()`.
    alpha, eta, nu
        Known lower bounds: how much two agents' log-odds of any two successors of a state differ; the least share
        of one agent among the visits to a pair of states; the least share of the trajectories that visit any
        possible pair of states. With these, and enough data, every encoder is accurate with high probability
        (Theorem 1; `craftrl.theory.sample_size` says how much is enough).
    coupling
        "independent" is the paper's ERM, each f_h by itself. "chain" chooses the encoders of all steps at
        once, which needs a tenth of the data but is covered by no theorem.
    relabel
        Whether the trajectories' states at h+1 are read off phi'_{h+1} once it is trained, rather than off
        the clusters. The paper does not: without it, a trajectory that falls between the clusters is lost for good.

    Attributes
    ----------
    encoders_, n_states_
        phi'_h and |S_h|, indexed from h = 1.
    labels_
        int (n, H): the state of every trajectory at every step, -1 where it was left unassigned.
    trace_
        Everything that was decided on the way: `trace_[h]` is iteration h of Line 7.

    What happens where the paper's assumptions fail: with no state at h+1, all later steps have none either and
    their encoders are the first of their class; with one state, the most constant encoder is returned; with more
    states than an encoder has values, as many states as possible get a value of their own. Each is recorded in
    `trace_[h].outcome`, and `fit` warns once.

    Paper: Algorithm 2
    """

    def __init__(
        self,
        oracle: Oracle,
        *,
        alpha: float,
        eta: float,
        nu: float,
        coupling: Coupling = "independent",
        relabel: bool = False,
    ) -> None:
        self.oracle = oracle
        self.alpha = alpha
        self.eta = eta
        self.nu = nu
        self.coupling = coupling
        self.relabel = relabel

    def fit(self, tau: TrajectoryDataset) -> CRAFT:
        """Learn phi'_1..phi'_H from tau."""
        check_dataset(tau)
        self._check_parameters()
        grid = Grid.from_bounds(self.alpha, self.eta)  # Lines 1-4
        bound = self.oracle.bind(tau)
        f = bound.log_odds(grid, self.coupling)  # Lines 9-10, for all h
        labels = np.full((tau.H, tau.n), -1, dtype=np.int64)
        labels[0] = 0  # Line 5
        encoders: list[Encoder] = [constant_encoder]  # Line 6
        steps: list[StepTrace] = []
        n_states = 1
        for h in range(1, tau.H):  # Line 7
            labels[h], step, encoder = self._iterate(h, labels[h - 1], n_states, f, bound, tau, grid)
            if self.relabel and step.n_states:
                labels[h] = _relabelled(encoder, tau, h + 1, step.n_states)
            encoders.append(encoder)
            steps.append(step)
            n_states = step.n_states
        self.encoders_ = ByStep(encoders)  # Line 48
        self.n_states_ = ByStep([1, *(step.n_states for step in steps)])
        self.labels_ = np.ascontiguousarray(labels.T)
        self.trace_ = Trace(grid, tuple(steps), f.models)
        self.obs_shape_ = tau.obs_shape
        _warn_of_failed_assumptions(self.trace_)
        return self

    def _iterate(
        self,
        h: int,
        label: Ints,
        n_states: int,
        f: LogOdds,
        bound: BoundOracle,
        tau: TrajectoryDataset,
        grid: Grid,
    ) -> tuple[Ints, StepTrace, Encoder]:
        """From the states of h to those of h+1: their labels, the record of what was decided, and phi'_{h+1}.

        Paper: Lines 8-46
        """
        threshold = heaviness_threshold(h, tau.H, self.nu, tau.n)  # Line 11
        found = cluster_pairs(f.bins[:, h - 1], label, n_states, grid.size, threshold)  # Lines 12-21
        predecessors = [c.s_pred for c in found.clusters]
        separation = bound.separation(h + 1, found.cluster, len(predecessors))  # Lines 24-25
        states, comparisons = merge_clusters(predecessors, separation)  # Lines 22-45
        state_of = state_of_cluster(states, len(predecessors))
        label_next = state_of[found.cluster]
        fit = bound.encode(h + 1, label_next, len(states))  # Line 46
        step = StepTrace(
            h=h,
            threshold=threshold,
            spectra=found.spectra,
            clusters=tuple(Cluster(c.s_pred, c.bins, c.size, int(state_of[i])) for i, c in enumerate(found.clusters)),
            comparisons=comparisons,
            n_states=len(states),
            assigned=float((label_next >= 0).mean()),
            outcome=_outcome(len(states), bound.N_s),
            f_loss=float(f.loss[h - 1]),
            encoder_loss=fit.loss / max(len(states), 1),
        )
        return label_next, step, fit.encoder

    def _check_parameters(self) -> None:
        check_nu(self.nu)
        if self.coupling not in ("independent", "chain"):
            raise InvalidParameterError(f"coupling must be 'independent' or 'chain'; {self.coupling!r} was given.")


def _relabelled(encoder: Encoder, tau: TrajectoryDataset, h: int, n_states: int) -> Ints:
    """The states at h as the encoder reads them, -1 where it names none of the states found."""
    label = np.concatenate([encoder(x) for _, x in tau.blocks(h)])
    label[(label >= n_states) | ~tau.present(h)] = -1
    return label


def _outcome(n_states: int, N_s: int | None) -> Outcome:
    if n_states == 0:
        return "no state"
    if n_states == 1:
        return "one state"
    return "too many states" if N_s is not None and n_states > N_s else "ok"


def _warn_of_failed_assumptions(trace: Trace) -> None:
    failed = {kind: steps for kind, steps in trace.outcomes().items() if kind != "one state"}
    if failed:
        what = "; ".join(f"{kind} at h = {_ranges(steps)}" for kind, steps in failed.items())
        warnings.warn(
            f"CRAFT found {what}. The data is too small, or the bounds alpha, eta, nu do not hold on it; the encoders "
            "there are guesses. See trace_ for what was decided, and try coupling='chain'.",
            AssumptionWarning,
            stacklevel=3,
        )


def _ranges(steps: list[int]) -> str:
    """Steps as text, runs shortened: 3, 5-9."""
    runs = np.split(np.array(steps), np.flatnonzero(np.diff(steps) != 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
