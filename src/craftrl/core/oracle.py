"""The interface between Algorithm 2 and whatever learns: three questions about one dataset.

CRAFT never looks at observations. It asks an oracle that was given the dataset for the log-odds of every pair of
observations (Line 10), whether two sets of observations can be told apart (Line 25), and for the encoder that gives
observations these labels (Line 46). No answer depends on what was asked before.

Paper: Lines 9-10, 25, 46
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import Encoder, read_states
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.data.dataset import TrajectoryDataset

__all__ = [
    "COUPLINGS",
    "CheckablePairFunction",
    "Coupling",
    "EncoderFit",
    "LogOdds",
    "PairFunction",
    "PreparedOracle",
    "Separation",
]

Coupling = Literal["independent", "chain", "markov"]
COUPLINGS: tuple[Coupling, ...] = get_args(Coupling)

Separation = Callable[[int, Sequence[int]], float]
"""L(g) of the best g that tells a cluster from the union of some others, in [0, 2]; chance is 1 (Line 25)."""


class PairFunction(Protocol):
    """f_1..f_{H-1} on new data: trajectories (n, H, *obs) to log-odds (n, H-1, K-1) in nats.

    Of agent 0 against each other agent, the agents being as frequent as in the data that was fitted. One that is
    `Savable` is saved with the model.
    """

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float64]: ...


@runtime_checkable
class CheckablePairFunction(PairFunction, Protocol):
    """f_1..f_{H-1} that states can be checked with, without training anything again.

    `craftrl.diagnostics.sufficiency` asks for more than the values of f_h on whole trajectories.
    """

    @property
    def unseen(self) -> Labels:
        """The trajectories (m,) of the data fitted whose log-odds can be had from what did not learn from them."""
        ...

    def of_unseen(self, x: NDArray[Any], rows: Labels) -> NDArray[np.float64]:
        """The log-odds (m, H-1, K-1) of those trajectories, x being what `rows` of them saw: (m, H, *obs)."""
        ...

    def beside(self, x: NDArray[Any], references: NDArray[Any]) -> NDArray[np.float64]:
        """Log-odds (n, H, 2 R (K-1)) of every observation of x (n, H, *obs) with those of other trajectories.

        `references` (R, H, *obs) are the same for all: first come the R pairs (x_h, reference at h+1), then the R pairs
        (reference at h-1, x_h). Constant shifts do not count, and what is not there is 0.
        """
        ...


@dataclass(frozen=True)
class LogOdds:
    """f_h on every pair of the dataset: all that clustering and merging see of Line 10.

    bins     int16 (n, H-1, K-1): the grid point of f_h(x_h, x_{h+1}) in column h-1; -1 where there is no pair
    loss     float (H-1,): the mean loss of f_h per pair, in nats; on pairs that were not learned from, unless the class
             is finite
    models   one entry per step of whatever describes f_h (a `FinitePairModel` for finite classes), or ()
    chance   float (H-1,): the loss of knowing the agents' shares alone, on the same pairs; None takes all pairs
    p_value  float (H-1,): how likely an f_h as good as this is by chance (`craftrl.core.evidence`); None for not known
    f        f_1..f_{H-1} for trajectories to come, where the oracle keeps them
    """

    bins: NDArray[np.int16]
    loss: NDArray[np.float64]
    models: tuple[Any, ...] = ()
    chance: NDArray[np.float64] | None = None
    p_value: NDArray[np.float64] | None = None
    f: PairFunction | None = None


@dataclass(frozen=True)
class EncoderFit:
    """phi'_h and the loss of Line 46 that it attains, summed over states as in the paper.

    unseen  int (n,): the states of the observations at h as encoders read them that did not learn from the very
            observation, -1 where there is none; None where the class is too small to learn labels by heart
    """

    encoder: Encoder
    loss: float
    unseen: Labels | None = None


class PreparedOracle(ABC):
    """The three training problems, posed on one dataset.

    tau  the dataset
    N_s  how many states the encoders can tell apart, None where that is not limited
    """

    tau: TrajectoryDataset
    N_s: int | None = None

    @abstractmethod
    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """f_1..f_{H-1}, evaluated on the data they were learned from (Line 10)."""

    @abstractmethod
    def separation(self, h: int, cluster: Labels, n_clusters: int) -> Separation:
        """A function that tells sets of observations x_h apart (Line 25); `cluster` (n,) has each one's, -1 for none.

        All clusters of the step are given at once, so that one training run can serve every comparison.
        """

    @abstractmethod
    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        """phi'_h from labelled trajectories (Line 46); `label` (n,) in 0..n_states-1, -1 for unassigned."""

    def read(self, encoder: Encoder, h: int) -> Labels:
        """What an encoder of this oracle's says of every trajectory at h, -1 where one is over.

        An oracle that holds features or values of the observations in memory reads them there.
        """
        return read_states(encoder, self.tau, h)
