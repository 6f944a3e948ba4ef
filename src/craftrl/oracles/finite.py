"""Exact oracles for finite hypothesis classes: training is counting.

Paper: Lines 9-10, 25, 46; Appendix A
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.plain import PlainStep, evaluate, group_counts, pair_counts, pair_losses
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.grid import Grid
from craftrl.losses import best_bins, best_relabelling, log_loss, separation_loss
from craftrl.oracles.base import BoundOracle, Coupling, EncoderFit, LogOdds, Oracle
from craftrl.oracles.chain import shortest_chain

Ints = NDArray[np.integer]
EncoderFunction = Callable[[NDArray[Any]], Any]

CONSTANT = -1

__all__ = [
    "CONSTANT",
    "CoordinateEncoder",
    "CoordinateOracle",
    "FiniteEncoder",
    "FiniteOracle",
    "FinitePairModel",
]


@dataclass(frozen=True)
class FinitePairModel:
    """f_h = (phi_i, phi_j, table): indices into Phi_h and Phi_{h+1}, and the bins of each pair of values.

    i      CONSTANT (-1) for the constant encoder that starts a chain
    table  int (N_s, N_s, K-1)
    loss   the mean loss per pair, in nats
    """

    i: int
    j: int
    table: Ints
    loss: float


@dataclass(frozen=True)
class FiniteEncoder:
    """One function of the class with its values relabelled: value v means state `state_of[v]`."""

    function: EncoderFunction
    index: int
    state_of: Ints

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.state_of[np.asarray(self.function(x)).astype(np.int64)]


@dataclass(frozen=True)
class CoordinateEncoder:
    """Reads one coordinate of the observation: `feature` is its index."""

    feature: int
    state_of: Ints

    def __call__(self, x: NDArray[Any]) -> Ints:
        flat = np.asarray(x).reshape(len(x), -1)
        return self.state_of[flat[:, self.feature].astype(np.int64)]


class FiniteClassOracle(Oracle):
    """What any finite class needs to say: how to evaluate Phi_h, and how to build one of its encoders.

    N_s  the number of values that an encoder may take
    """

    N_s: int

    def bind(self, tau: TrajectoryDataset) -> BoundFiniteOracle:
        self.check(tau)
        return BoundFiniteOracle(self, tau)

    @abstractmethod
    def check(self, tau: TrajectoryDataset) -> None:
        """Raise where the class does not fit the observations."""

    @abstractmethod
    def evaluate(self, tau: TrajectoryDataset, h: int) -> PlainStep:
        """All encoders of Phi_h on all observations of step h."""

    @abstractmethod
    def encoder(self, h: int, index: int, state_of: Ints) -> FiniteEncoder | CoordinateEncoder:
        """Encoder `index` of Phi_h with its values relabelled."""


class CoordinateOracle(FiniteClassOracle):
    """Phi_h = {x -> x_i | i in [M]}, each coordinate with both labellings: the paper's class.

    Observations must be 0/1, or integers in 0..N_s-1; arrays of any shape are read as flat.

    Paper: Section 5
    """

    def __init__(self, N_s: int = 2) -> None:
        self.N_s = _checked_N_s(N_s)

    def check(self, tau: TrajectoryDataset) -> None:
        if tau.dtype.kind not in "biu":
            raise InvalidDataError(
                f"Coordinates must be integers in 0..{self.N_s - 1}; observations of dtype {tau.dtype} were given; "
                "convert them, or use a FiniteOracle with functions that do."
            )

    def evaluate(self, tau: TrajectoryDataset, h: int) -> PlainStep:
        values = np.empty((int(np.prod(tau.obs_shape)), tau.n), dtype=np.int16)
        for rows, x in tau.blocks(h):
            flat = x.reshape(len(x), -1)
            if flat.max() >= self.N_s or flat.min() < 0:
                raise InvalidDataError(
                    f"Coordinates must lie in 0..{self.N_s - 1}; {flat.min()}..{flat.max()} were given at h = {h}; "
                    "raise N_s, or use a FiniteOracle with functions that map them there."
                )
            values[:, rows] = flat.T
        values[:, ~tau.present(h)] = -1
        return PlainStep(values, self.N_s, tau.agent)

    def encoder(self, h: int, index: int, state_of: Ints) -> CoordinateEncoder:
        return CoordinateEncoder(index, state_of)


class FiniteOracle(FiniteClassOracle):
    """Any finite class: a list of functions from observations (n, *obs) to values (n,) in 0..N_s-1.

    `encoders` is one list for all steps, or a function from h to the list of that step. Relabellings need not be
    listed: every encoder is tried with all of them.

    Paper: Section 2.5 (function approximation), Appendix A
    """

    def __init__(
        self,
        encoders: Sequence[EncoderFunction] | Callable[[int], Sequence[EncoderFunction]],
        N_s: int = 2,
    ) -> None:
        self.N_s = _checked_N_s(N_s)
        self.encoders = encoders

    def Phi(self, h: int) -> Sequence[EncoderFunction]:
        """The functions of step h."""
        return self.encoders(h) if callable(self.encoders) else self.encoders

    def check(self, tau: TrajectoryDataset) -> None:
        for h in range(1, tau.H + 1):
            if len(self.Phi(h)) == 0:
                raise InvalidParameterError(
                    f"Every step needs at least one encoder; none was given for h = {h}."
                )

    def evaluate(self, tau: TrajectoryDataset, h: int) -> PlainStep:
        return evaluate(tau, h, self.Phi(h), self.N_s)

    def encoder(self, h: int, index: int, state_of: Ints) -> FiniteEncoder:
        return FiniteEncoder(self.Phi(h)[index], index, state_of)


class BoundFiniteOracle(BoundOracle):
    """The three questions, answered by counting the values of every encoder on one dataset."""

    def __init__(self, oracle: FiniteClassOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.N_s = oracle.N_s
        self._steps: dict[int, PlainStep] = {}

    def step(self, h: int) -> PlainStep:
        """All encoders on all observations of step h, evaluated once."""
        if h not in self._steps:
            self._steps[h] = self.oracle.evaluate(self.tau, h)
        return self._steps[h]

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) for every h: ties to the first pair of encoders."""
        H = self.tau.H
        pairs: Sequence[tuple[int, int]]
        if coupling == "chain":
            path, _ = shortest_chain(self._chain_losses(grid))
            pairs = list(zip([CONSTANT, *path[1:]], path[1:]))
        else:
            pairs = [self._best_pair(h, grid) for h in range(1, H)]
        models, bins = [], np.full((H - 1, self.tau.n, self.tau.K - 1), -1, dtype=np.int16)
        for h, (i, j) in enumerate(pairs, start=1):
            model, bins[h - 1] = self._fit_pair(h, i, j, grid)
            models.append(model)
        loss = np.array([model.loss for model in models])
        return LogOdds(bins.transpose(1, 0, 2), loss, tuple(models))

    def _best_pair(self, h: int, grid: Grid) -> tuple[int, int]:
        losses = pair_losses(self.step(h), self.step(h + 1), grid)
        i, j = divmod(int(np.argmin(losses)), losses.shape[1])
        return i, j

    def _chain_losses(self, grid: Grid) -> Iterator[NDArray[np.int64]]:
        """Pairwise losses along the chain; the first encoder is the constant one."""
        yield pair_losses(self._constant_step(), self.step(2), grid)
        for h in range(2, self.tau.H):
            yield pair_losses(self.step(h), self.step(h + 1), grid)

    def _constant_step(self) -> PlainStep:
        return PlainStep(np.zeros((1, self.tau.n), dtype=np.int16), 1, self.tau.agent)

    def _fit_pair(self, h: int, i: int, j: int, grid: Grid) -> tuple[FinitePairModel, Ints]:
        """The best table for one pair of encoders, and f_h on every pair of observations."""
        v = self.step(h + 1).values[j]
        u = np.zeros_like(v) if i == CONSTANT else self.step(h).values[i]
        one = PlainStep(u[None], self.N_s, self.tau.agent), PlainStep(v[None], self.N_s, self.tau.agent)
        counts = pair_counts(*one)[0, 0]
        table, losses = best_bins(counts, grid)
        bins = np.where((v >= 0)[:, None], table[u, v], -1)
        return FinitePairModel(i, j, table, float(log_loss(losses.sum()) / counts.sum())), bins

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> FiniteSeparation:
        return FiniteSeparation(group_counts(self.step(h), cluster, n_clusters))

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        counts = group_counts(self.step(h), label, n_states).transpose(1, 0, 2)
        index, state_of, loss = best_relabelling(counts)
        return EncoderFit(self.oracle.encoder(h, index, state_of), loss)


@dataclass(frozen=True)
class FiniteSeparation:
    """Value counts of every encoder on every cluster: (n_clusters, |Phi|, N_s); unions of clusters add up."""

    counts: NDArray[np.int64]

    def loss(self, new: int, state: Sequence[int]) -> float:
        return separation_loss(self.counts[new], self.counts[list(state)].sum(axis=0))


def _checked_N_s(N_s: int) -> int:
    if not (isinstance(N_s, (int, np.integer)) and N_s >= 2):
        raise InvalidParameterError(
            f"N_s must be an integer of at least 2; N_s = {N_s} was given; it is the most states at any step."
        )
    return int(N_s)
