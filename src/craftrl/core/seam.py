"""The seam between CRAFT and whatever learns: three training problems on one dataset.

CRAFT never looks at observations. It asks three kinds of question of an oracle that was given the dataset: log-odds
(Line 10), separation (Line 25) and encoding (Line 46).

Paper: Lines 9-10, 25, 46
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import Encoder, read_states
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.merging import Merged, merge_clusters
from craftrl.core.starts import StartTest
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError

__all__ = [
    "COUPLINGS",
    "CheckablePairFunction",
    "Coupling",
    "EncoderFit",
    "LogOdds",
    "PairFunction",
    "PreparedOracle",
    "Profiles",
    "Separation",
    "SeparationAtOnce",
]

Coupling = Literal["independent", "chain", "posterior", "markov", "tied"]
COUPLINGS: tuple[Coupling, ...] = get_args(Coupling)
Ints = NDArray[np.integer]


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
    def unseen(self) -> Ints:
        """The trajectories (m,) of the data fitted whose log-odds can be had from what did not learn from them."""
        ...

    def of_unseen(self, x: NDArray[Any], rows: Ints) -> NDArray[np.float64]:
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
    f        f_1..f_{H-1} for trajectories to come, where the oracle keeps them: a `PairFunction`
    """

    bins: NDArray[np.int16]
    loss: NDArray[np.float64]
    models: tuple[Any, ...] = ()
    chance: NDArray[np.float64] | None = None
    p_value: NDArray[np.float64] | None = None
    f: PairFunction | None = None

    def at(self, h: int) -> NDArray[np.int16]:
        """f_h on every pair: the bins (n, K-1)."""
        return self.bins[:, h - 1]


@dataclass(frozen=True)
class Profiles:
    """Log-odds of every x_{h+1} beside things that are the same for all: the same for observations of one state.

    values    float (n, S + A, K-1): beside each of the S states of h, then beside A observations of h+2, if there are
              any; NaN in rows without x_{h+1} or without a state at h
    n_before  S
    """

    values: NDArray[np.float64]
    n_before: int


class Separation(Protocol):
    """Answers Line 25 for the clusters of one step."""

    def loss(self, new: int, state: Sequence[int]) -> float:
        """L(g) of the best g that tells cluster `new` from the union of the clusters `state`; chance is 1."""
        ...


class SeparationAtOnce(Separation, Protocol):
    """The same for an oracle that compares a cluster with all states as quickly as with one: it is then asked once."""

    def losses(self, new: int, states: Sequence[Sequence[int]]) -> Sequence[float] | NDArray[np.float64]:
        """`loss(new, state)` for each of the states, mostly those of the last question and one cluster more."""
        ...


@dataclass(frozen=True)
class EncoderFit:
    """phi'_h and the loss of Line 46 that it attains, summed over states as in the paper.

    unseen  int (n,): the states of the observations at h as encoders read them that did not learn from the very
            observation, -1 where there is none; None where the class is too small to learn labels by heart
    """

    encoder: Encoder
    loss: float
    unseen: Ints | None = None


class PreparedOracle(ABC):
    """The three training problems, posed on one dataset.

    N_s   how many states the encoders can tell apart, None where that is not limited
    seed  of whatever is drawn at random on the way
    """

    N_s: int | None = None
    seed: int = 0

    @abstractmethod
    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """f_1..f_{H-1}, evaluated on the data they were learned from (Line 10)."""

    def log_odds_given(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> Any:
        """The bins of f_h (n, K-1) once the states `label` (n,) of x_h are known, -1 for unknown.

        f_h depends on x_h through its state alone. An oracle whose answers scatter may use that to steady them; as
        they come is the default.
        """
        return f.at(h)

    def profiles(self, h: int, label: Ints, f: LogOdds, grid: Grid) -> Profiles | None:
        """Log-odds of every x_{h+1} beside each state `label` (n,) of h, and beside what may follow; None: not known.

        They are the same for observations x_{h+1} of the same state, so that clusters in which they are of several
        kinds are taken apart (`craftrl.core.splitting`).
        """
        return None

    @abstractmethod
    def separation(self, h: int, cluster: Labels, n_clusters: int) -> Separation:
        """Tell sets of observations x_h apart (Line 25); `cluster` (n,) names each one's set, -1 for none.

        All clusters of the step are given at once, so that one training run can serve every comparison.
        """

    def merge(self, h: int, cluster: Ints, predecessors: Sequence[int], strays: bool = False) -> Merged:
        """Which of these clusters are one state (Lines 22-45): by `separation`, which is all that an oracle writes."""
        return merge_clusters(predecessors, self.separation(h, cluster, len(predecessors)), strays)

    @abstractmethod
    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        """phi'_h from labelled trajectories (Line 46); `label` (n,) in 0..n_states-1, -1 for unassigned."""

    def keep_for_reuse(self) -> None:  # noqa: B027
        """The same questions will come again with other bounds: keep what does not depend on them."""

    def instead_of(self, coupling: Coupling) -> tuple[Coupling, str] | None:
        """Another coupling, and why, where the one that suits the oracle would cost too much on this dataset."""
        return None

    def read(self, encoder: Encoder, tau: TrajectoryDataset, h: int) -> Ints:
        """What an encoder of this oracle's says of every trajectory at h, -1 where one is over.

        An oracle that holds features or values of the observations in memory reads them there.
        """
        return read_states(encoder, tau, h)

    def expect_several_starts(self) -> None:  # noqa: B027
        """Trajectories begin in several states: use nothing that rests on there being one."""

    def find_starts(self) -> Ints:
        """The state that each trajectory begins in (n,), -1 for unknown, where nobody says that it is the same."""
        raise InvalidParameterError(
            f"start='find' needs an oracle that can group first observations; {type(self).__name__} cannot; name the "
            "starts yourself, or write its `find_starts`."
        )

    def test_start(self) -> StartTest | None:
        """Whether the first two observations speak against one start state; None where the oracle cannot tell."""
        return None

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        """One encoder for all steps, from the states (n, H) of all observations, -1 for unassigned.

        `name` tells training runs apart where there are several.
        """
        raise InvalidParameterError(
            f"stationary=True needs an oracle that can train one encoder for all steps; {type(self).__name__} "
            "cannot; use stationary=False, or write its `share`."
        )
