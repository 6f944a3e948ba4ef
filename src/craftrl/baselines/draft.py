"""DRAFT, the paper's first draft of CRAFT, and its recursive use over many steps.

Paper: Section 3.1, Algorithm 1, Section 3.1.1
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import ConstantEncoder
from craftrl.core.merging import merge_clusters, state_of_cluster
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.inputs import as_dataset
from craftrl.errors import AssumptionWarning, InvalidDataError, InvalidParameterError
from craftrl.estimators.base import ByStep, Learner
from craftrl.oracles.base import Encoder
from craftrl.oracles.counting import CountingOracle, PreparedCounting, check_counting

Ints = NDArray[np.integer]

__all__ = ["DRAFT", "RecursiveDRAFT"]


def best_split(counts: NDArray[np.integer]) -> tuple[int, bool]:
    """argmin of DRAFT's loss over a binary class closed under relabelling: the encoder, and whether it is flipped.

    `counts` (2, |Phi|, 2): how often each encoder takes each value in each agent's data. The loss is
    mean_A phi + mean_B (1 - phi), so that 0 stands for the state that agent A visits more often.

    Paper: Algorithm 1
    """
    n_A, n_B = (int(counts[k, 0].sum()) for k in range(2))
    loss = counts[0, :, 1] * n_B + counts[1, :, 0] * n_A  # times n_A n_B: integers, so that ties are exact
    both = np.stack([loss, 2 * n_A * n_B - loss], axis=1)
    index, flipped = divmod(int(np.argmin(both)), 2)
    return index, bool(flipped)


class _BinaryTwoAgents(Learner):
    """What both variants ask for: binary encoders and two agents."""

    def __init__(self, oracle: CountingOracle) -> None:
        self.oracle = oracle

    def _prepare(self, tau: TrajectoryDataset) -> PreparedCounting:
        name = type(self).__name__
        check_counting(self.oracle, name)
        if self.oracle.n_values != 2:
            raise InvalidParameterError(
                f"{name} needs encoders with n_values = 2; n_values = {self.oracle.n_values} was given."
            )
        if tau.K != 2:
            raise InvalidDataError(f"{name} compares exactly two agents; {tau.K} were given; use CRAFT for more.")
        return self.oracle.prepare(tau)


class DRAFT(_BinaryTwoAgents):
    """Algorithm 1, for H = 2 and two states: the encoder of x_2 that best classifies the agent.

    Paper: Algorithm 1
    """

    def fit(self, x: Any, agent: Any = None) -> DRAFT:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        data = as_dataset(x, agent)
        tau = data.tau
        prepared = self._prepare(tau)
        if tau.H != 2:
            raise InvalidDataError(
                f"DRAFT is for trajectories of two steps; these have {tau.H}; use RecursiveDRAFT or CRAFT."
            )
        mine = np.where(tau.present(2), tau.agent, -1)
        index, flipped = best_split(prepared.group_counts(2, mine, 2))
        phi = self.oracle.encoder(2, index, np.array([1, 0] if flipped else [0, 1]))
        self.encoders_ = ByStep([ConstantEncoder(), phi])
        self.n_states_ = ByStep([1, 2])
        label = np.where(mine >= 0, phi(tau.at(2)), -1)
        self.labels_ = data.as_given(np.stack([np.zeros(tau.n, dtype=np.int64), label], axis=1))
        self.obs_shape_ = tau.obs_shape
        return self


class RecursiveDRAFT(_BinaryTwoAgents):
    """DRAFT applied again to the trajectories of each state found, for binary actions.

    Each state of h is split in two by the encoder of x_{h+1} that best classifies the agent among its trajectories;
    halves that no encoder can tell apart are merged, as in CRAFT. The next split is trained on what the
    last one returned, so that its mistakes are the next one's data: the paper shows why they may multiply.

    `labels_`, `n_states_` and `encoders_` are CRAFT's; a state all of whose trajectories are one agent's cannot be
    split and ends there (its trajectories are unassigned from then on).

    Paper: Section 3.1.1
    """

    def fit(self, x: Any, agent: Any = None) -> RecursiveDRAFT:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        data = as_dataset(x, agent)
        tau = data.tau
        prepared = self._prepare(tau)
        labels = np.full((tau.H, tau.n), -1, dtype=np.int64)
        labels[0] = 0
        encoders: list[Encoder] = [ConstantEncoder()]
        n_states = [1]
        for h in range(1, tau.H):
            half, predecessors = self._split(prepared, h, labels[h - 1], n_states[-1])
            states, _ = merge_clusters(predecessors, prepared.separation(h + 1, half, len(predecessors)))
            labels[h] = state_of_cluster(states, len(predecessors))[half]
            encoders.append(prepared.encode(h + 1, labels[h], len(states)).encoder)
            n_states.append(len(states))
        if min(n_states) == 0:
            warnings.warn(
                f"RecursiveDRAFT found no state from h = {n_states.index(0) + 1} on; give it more trajectories.",
                AssumptionWarning,
                stacklevel=2,
            )
        self.encoders_ = ByStep(encoders)
        self.n_states_ = ByStep(n_states)
        self.labels_ = data.as_given(np.ascontiguousarray(labels.T))
        self.obs_shape_ = tau.obs_shape
        return self

    def _split(self, prepared: PreparedCounting, h: int, label: Ints, n_states: int) -> tuple[Ints, list[int]]:
        """Each state's trajectories in two halves by x_{h+1}: the half of each trajectory, and whose half it is."""
        tau = prepared.tau
        usable = (label >= 0) & tau.present(h + 1)
        counts = prepared.group_counts(h + 1, np.where(usable, 2 * label + tau.agent, -1), 2 * n_states)
        half = np.full(tau.n, -1, dtype=np.int64)
        predecessors: list[int] = []
        for s in range(n_states):
            mine = counts[2 * s : 2 * s + 2]
            if (mine[:, 0].sum(axis=-1) == 0).any():
                continue
            index, flipped = best_split(mine)
            rows = usable & (label == s)
            value = prepared.values(h + 1, index)[rows] ^ int(flipped)
            for bit in np.unique(value):
                half[np.flatnonzero(rows)[value == bit]] = len(predecessors)
                predecessors.append(s)
        return half, predecessors
