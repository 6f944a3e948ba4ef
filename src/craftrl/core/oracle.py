"""The interface between Algorithm 2 and whatever learns: three questions about one dataset, and who asks them.

CRAFT never looks at observations. It asks an oracle that was given the dataset for the log-odds of every pair of
observations (Line 10), whether two sets of observations can be told apart (Line 25), and for the encoder that gives
observations these labels (Line 46). No answer depends on what was asked before.

Paper: Lines 9-10, 25, 46
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, ParamSpec, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from craftrl.arrays import Floats, Observations
from craftrl.core.encoders import Encoder
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels
from craftrl.core.trace import FinitePairModel, OracleUse
from craftrl.data.dataset import TrajectoryDataset
from craftrl.progress import tell

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")

Coupling = Literal["independent", "chain", "markov"]
COUPLINGS: tuple[Coupling, ...] = get_args(Coupling)

Separation = Callable[[int, Sequence[int]], float]
"""L(g) of the best g that tells a cluster from the union of some others, in [0, 2]; chance is 1 (Line 25)."""


class PairFunction(Protocol):
    """f_1..f_{H-1} on new data: trajectories (n, H, *obs) to log-odds (n, H-1, K-1) in nats.

    Of agent 0 against each other one, as frequent as in the data fitted. A `Savable` one is saved with the model.
    """

    def __call__(self, x: Observations) -> Floats: ...


@runtime_checkable
class CheckablePairFunction(PairFunction, Protocol):
    """f_1..f_{H-1} that states can be checked with, without training anything again (`diagnostics.sufficiency`).

    unseen     the trajectories (m,) of the data fitted whose log-odds can be had from what did not learn from them
    of_unseen  the log-odds (m, H-1, K-1) of those trajectories, x being what `rows` of them saw: (m, H, *obs)
    """

    @property
    def unseen(self) -> Labels: ...
    def of_unseen(self, x: Observations, rows: Labels) -> Floats: ...


@dataclass(frozen=True)
class LogOdds:
    """f_h on every pair of the dataset: all that clustering and merging see of Line 10.

    bins          int16 (n, H-1, K-1): the grid point of f_h(x_h, x_{h+1}) in column h-1; -1 where there is no pair
    loss          float (H-1,): the mean loss of f_h per pair, in nats; on pairs that were not learned from, unless the
                  class is finite
    models        f_1..f_{H-1} of a finite class, else ()
    chance        float (H-1,): the loss of knowing the agents' shares alone, on the same pairs; None takes all pairs
    p_value       float (H-1,): how likely an f_h as good as this is by chance (`craftrl.core.evidence`); None for not
                  known
    f             f_1..f_{H-1} for trajectories to come, where the oracle keeps them
    embedding_r2  of the log-odds of pairs that were not learned from, the share that the oracle's embedding explains;
                  None where the embedding is not trained
    """

    bins: NDArray[np.int16]
    loss: Floats
    models: tuple[FinitePairModel, ...] = ()
    chance: Floats | None = None
    p_value: Floats | None = None
    f: PairFunction | None = None
    embedding_r2: float | None = None


@dataclass(frozen=True)
class EncoderFit:
    """phi'_h and the loss of Line 46 that it attains, summed over states as in the paper."""

    encoder: Encoder
    loss: float


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
        states = np.concatenate([encoder(x) for _, x in self.tau.blocks(h=h)])
        return np.where(self.tau.present(h), states, -1)


class OracleCalls:
    """The one place that asks oracles: it counts and times what they are asked."""

    def __init__(self) -> None:
        self._use: dict[str, OracleUse] = {}

    @property
    def use(self) -> tuple[OracleUse, ...]:
        """What was asked so far, one entry for each kind of question."""
        return tuple(self._use.values())

    def __call__(
        self, question: str, method: Callable[Asked, Answer], *args: Asked.args, **kwargs: Asked.kwargs
    ) -> Answer:
        """What `method` answers to the arguments."""
        tell(question, args[0] if args and isinstance(args[0], int) else None)
        start = time.perf_counter()
        answer = method(*args, **kwargs)
        use = self._use.get(question, OracleUse(question, 0, 0.0))
        self._use[question] = OracleUse(question, use.asked + 1, use.seconds + time.perf_counter() - start)
        return answer
