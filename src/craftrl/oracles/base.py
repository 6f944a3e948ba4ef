"""The seam between CRAFT and whatever learns: three training problems on one dataset.

CRAFT never looks at observations. It hands the dataset to an oracle, and then asks three kinds of question:
log-odds (Line 10), separation (Line 25) and encoding (Line 46). An oracle is a description: `bind` gives it
the data, and what is computed there lives no longer than one fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.grid import Grid

__all__ = ["COUPLINGS", "BoundOracle", "Coupling", "Encoder", "EncoderFit", "LogOdds", "Mixed", "Oracle", "Separation"]

Coupling = Literal["independent", "chain", "posterior"]
COUPLINGS: tuple[Coupling, ...] = get_args(Coupling)
Ints = NDArray[np.integer]


class Encoder(Protocol):
    """phi'_h: observations (n, *obs) to states (n,)."""

    def __call__(self, x: NDArray[Any]) -> Ints: ...


@dataclass(frozen=True)
class LogOdds:
    """f_h on every pair of the dataset: all that clustering and merging see of Line 10.

    bins    int16 (n, H-1, K-1): the grid point of f_h(x_h, x_{h+1}) in column h-1; -1 where there is no pair
    loss    float (H-1,): the mean loss of f_h per pair, in nats; chance is ln K for balanced agents
    models  one entry per step of whatever describes f_h (a `FinitePairModel` for finite classes), or ()
    """

    bins: NDArray[np.int16]
    loss: NDArray[np.float64]
    models: tuple[Any, ...] = ()


class Separation(Protocol):
    """Answers Line 25 for the clusters of one step."""

    def loss(self, new: int, state: Sequence[int]) -> float:
        """L(g) of the best g that tells cluster `new` from the union of the clusters `state`; chance is 1."""
        ...


@dataclass(frozen=True)
class EncoderFit:
    """phi'_h and the loss of Line 46 that it attains, summed over states as in the paper."""

    encoder: Encoder
    loss: float


class BoundOracle(ABC):
    """The three training problems, posed on one dataset.

    N_s  how many states the encoders can tell apart, None where that is not limited
    """

    N_s: int | None = None

    @abstractmethod
    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """f_1..f_{H-1}, evaluated on the data they were learned from (Line 10)."""

    @abstractmethod
    def separation(self, h: int, cluster: Ints, n_clusters: int) -> Separation:
        """Tell sets of observations x_h apart (Line 25); `cluster` (n,) names each one's set, -1 for none.

        All clusters of the step are given at once, so that one training run can serve every comparison.
        """

    @abstractmethod
    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        """phi'_h from labelled trajectories (Line 46); `label` (n,) in 0..n_states-1, -1 for unassigned."""


class Oracle(ABC):
    """A hypothesis class with its training oracles."""

    @abstractmethod
    def bind(self, tau: TrajectoryDataset) -> BoundOracle:
        """Pose the three training problems on this dataset; checks that the class fits the observations."""


@dataclass(frozen=True)
class Mixed(Oracle):
    """Each of the three questions answered by an oracle of its own."""

    log_odds: Oracle
    separation: Oracle
    encoding: Oracle

    def bind(self, tau: TrajectoryDataset) -> BoundOracle:
        return _BoundMixed(*(oracle.bind(tau) for oracle in (self.log_odds, self.separation, self.encoding)))


class _BoundMixed(BoundOracle):
    def __init__(self, log_odds: BoundOracle, separation: BoundOracle, encoding: BoundOracle) -> None:
        self._parts = log_odds, separation, encoding
        self.N_s = encoding.N_s

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        return self._parts[0].log_odds(grid, coupling)

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> Separation:
        return self._parts[1].separation(h, cluster, n_clusters)

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        return self._parts[2].encode(h, label, n_states)
