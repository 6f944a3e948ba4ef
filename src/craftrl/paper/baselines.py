"""What the paper compares CRAFT with, all with the same `fit` and `encode`, each by counting over a finite class.

DRAFT is the paper's first draft of CRAFT for two steps; recursive DRAFT applies it step by step, and its mistakes may
multiply. Single and paired observation are two shortcuts: the observation, or pair of observations, that best tells the
agents apart. Neither works: the latent states of two policies may be equally frequent at every step, and a pair of
distractors that share their noise tells the agents apart as well as a pair of states.

Paper: Section 3.1, Algorithm 1, Section 3.1.1; Section 4, Appendix D
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from craftrl.arrays import Ints
from craftrl.core.clusters import merge_clusters
from craftrl.core.encoders import ConstantEncoder, Encoder
from craftrl.core.labels import n_labels, renamed
from craftrl.core.losses import FIXED_POINT
from craftrl.data.inputs import Grouped, as_dataset
from craftrl.errors import AssumptionWarning, InvalidDataError, InvalidParameterError
from craftrl.estimators.base import ByStep, Learner
from craftrl.oracles.finite import CountingOracle, PreparedCounting, check_counting

AT_ONCE = 2**20  # counts of pairs of values that are looked at together


class _Counting(Learner):
    """A learner that asks for a finite class and does nothing but count."""

    def __init__(self, oracle: CountingOracle) -> None:
        self.oracle = oracle

    def _prepare(self, x: Any, agent: Any, binary: bool = False) -> tuple[Grouped, PreparedCounting]:
        """The data and its counts; `binary`: for two agents and encoders with two values, as DRAFT asks for."""
        data, name = as_dataset(x, agent), type(self).__name__
        check_counting(self.oracle, name)
        if binary and self.oracle.n_values != 2:
            raise InvalidParameterError(
                f"{name} needs encoders with n_values = 2; n_values = {self.oracle.n_values} was given."
            )
        if binary and data.tau.K != 2:
            raise InvalidDataError(f"{name} compares exactly two agents; {data.tau.K} were given; use CRAFT for more.")
        return data, self.oracle.prepare(data.tau)

    def _encoder(self, h: int, index: int, flipped: bool = False) -> Encoder:
        """Encoder `index` of Phi_h with its own values, or with the two of them exchanged; constant at h = 1."""
        values = np.arange(self.oracle.n_values)
        return self.oracle.encoder(h, index, values[::-1].copy() if flipped else values) if h > 1 else ConstantEncoder()


class DRAFT(_Counting):
    """Algorithm 1, for H = 2 and two states: the encoder of x_2 that best classifies the agent.

    Paper: Algorithm 1
    """

    def fit(self, x: Any, agent: Any = None) -> DRAFT:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        data, prepared = self._prepare(x, agent, binary=True)
        tau = data.tau
        if tau.H != 2:
            raise InvalidDataError(
                f"DRAFT is for trajectories of two steps; these have {tau.H}; use RecursiveDRAFT or CRAFT."
            )
        mine = np.where(tau.present(2), tau.agent, -1)
        phi = self._encoder(2, *_best_split(prepared.group_counts(2, mine, 2)))
        self.encoders_ = ByStep([ConstantEncoder(), phi])
        self.n_states_ = ByStep([1, 2])
        label = np.where(mine >= 0, phi(tau.at(2)), -1)
        self.labels_ = data.as_given(np.stack([np.zeros(tau.n, dtype=np.int64), label], axis=1))
        self.obs_shape_ = tau.obs_shape
        return self


class RecursiveDRAFT(_Counting):
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
        data, prepared = self._prepare(x, agent, binary=True)
        tau = data.tau
        labels = np.zeros((tau.H, tau.n), dtype=np.int64)
        encoders: list[Encoder] = [ConstantEncoder()]
        n_states = [1]
        for h in range(1, tau.H):
            usable = (labels[h - 1] >= 0) & tau.present(h + 1)
            group = np.where(usable, 2 * labels[h - 1] + tau.agent, -1)
            counts = prepared.group_counts(h + 1, group, 2 * n_states[-1])
            half, predecessors = np.full(tau.n, -1, dtype=np.int64), list[int]()
            for s in range(n_states[-1]):
                mine = counts[2 * s : 2 * s + 2]
                if (mine[:, 0].sum(axis=-1) == 0).any():
                    continue
                index, flipped = _best_split(mine)
                rows = np.flatnonzero(usable & (labels[h - 1] == s))
                value = prepared.values(h + 1, index)[rows] ^ int(flipped)
                for bit in np.unique(value):
                    half[rows[value == bit]] = len(predecessors)
                    predecessors.append(s)
            state_of, _ = merge_clusters(predecessors, prepared.separation(h + 1, half, len(predecessors)))
            labels[h] = renamed(half, state_of)
            encoders.append(prepared.encode(h + 1, labels[h], n_labels(state_of)).encoder)
            n_states.append(n_labels(state_of))
        if min(n_states) == 0:
            warnings.warn(
                f"RecursiveDRAFT found no state from h = {n_states.index(0) + 1} on; give it more trajectories.",
                AssumptionWarning,
                stacklevel=2,
            )
        self.encoders_, self.n_states_ = ByStep(encoders), ByStep(n_states)
        self.labels_ = data.as_given(np.ascontiguousarray(labels.T))
        self.obs_shape_ = tau.obs_shape
        return self


class SingleObservation(_Counting):
    """phi_h maximises the mutual information between phi_h(x_h) and the agent's identity, each h by itself.

    At h = 1 there is one state, and the encoder is constant as CRAFT's is.

    Paper: Appendix D
    """

    def fit(self, x: Any, agent: Any = None) -> SingleObservation:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        data, prepared = self._prepare(x, agent)
        encoders: list[Encoder] = [ConstantEncoder()]
        for h in range(2, data.tau.H + 1):
            counts = prepared.group_counts(h, data.tau.agent, data.tau.K)  # (K, |Phi|, N_s)
            encoders.append(self._encoder(h, int(np.argmax(_information(np.moveaxis(counts, 0, -1))))))
        self.encoders_ = ByStep(encoders)
        self.obs_shape_ = data.tau.obs_shape
        return self


class PairedObservation(_Counting):
    """(phi_h, phi_{h+1}) maximise the mutual information between the pair of codes and the agent's identity.

    Steps 2..H-1 get two encoders, from the pair after and the pair before: `candidates_[h]` holds both, and the
    paper averages their accuracies. `encode` uses the one before, where there is one.

    Paper: Appendix D
    """

    candidates_: ByStep[tuple[Encoder, ...]]

    def fit(self, x: Any, agent: Any = None) -> PairedObservation:
        """Learn from trajectories, given as to `CRAFT.fit`."""
        data, prepared = self._prepare(x, agent)
        candidates: list[list[Encoder]] = [[] for _ in range(data.tau.H)]
        for h in range(1, data.tau.H):
            # The first pair with the most information; some rows of the table of all pairs at a time.
            at_once = max(1, AT_ONCE // (prepared.n_encoders(h + 1) * prepared.N_s**2 * data.tau.K))
            best, i, j = np.iinfo(np.int64).min, 0, 0
            for first in range(0, prepared.n_encoders(h), at_once):
                counts = prepared.pair_counts(h, slice(first, first + at_once))  # (I, J, N_s, N_s, K)
                information = _information(counts.reshape(*counts.shape[:2], -1, counts.shape[-1]))
                if information.max() > best:
                    best = information.max()
                    i, j = divmod(first * information.shape[1] + int(information.argmax()), information.shape[1])
            candidates[h - 1].append(self._encoder(h, i))
            candidates[h].append(self._encoder(h + 1, j))
        self.candidates_ = ByStep([tuple(found) for found in candidates])
        self.encoders_ = ByStep([found[0] for found in candidates])
        self.obs_shape_ = data.tau.obs_shape
        return self


def _best_split(counts: Ints) -> tuple[int, bool]:
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


def _information(counts: Ints) -> NDArray[np.int64]:
    """I(cell; agent) of cell counts (..., cells, K), times their sum, up to a constant and in fixed point.

    Integers, so that equal ones are equal in whatever order they are summed.
    """
    joint = np.rint(xlogy(counts, counts) * FIXED_POINT).astype(np.int64).sum(axis=(-2, -1))
    cells = counts.sum(axis=-1)
    return joint - np.rint(xlogy(cells, cells) * FIXED_POINT).astype(np.int64).sum(axis=-1)
