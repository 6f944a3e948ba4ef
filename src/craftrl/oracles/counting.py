"""Exact answers for any finite hypothesis class: training is counting.

Every encoder of the class is evaluated once on every observation. From then on, all three questions are answered by
counts of the values.

Paper: Lines 9-10, 25, 46; Appendix A
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_room_in_memory, is_whole, shown
from craftrl.core.encoders import ConstantEncoder, Encoder, ValueEncoder
from craftrl.core.evidence import LEVEL, dependence
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, renamed
from craftrl.core.losses import best_bins, best_relabelling, log_loss
from craftrl.core.saved import Savable
from craftrl.core.starts import StartTest
from craftrl.data.dataset import ArraySteps, TrajectoryDataset
from craftrl.engine.counting import Counter
from craftrl.engine.packing import Packed, Share, View, Words
from craftrl.engine.parts import Parts
from craftrl.engine.threads import usable_threads
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.base import RELABEL, Choice, Coupling, EncoderFit, LogOdds, Oracle, PreparedOracle, check_data
from craftrl.oracles.couplings import (
    CONSTANT,
    MarkovChain,
    affordable,
    chain_views,
    check_affordable,
    pair_loss,
    shortest_path,
)
from craftrl.oracles.starts import counted_start_test, counted_starts

__all__ = [
    "CONSTANT",
    "CountedSeparation",
    "CountingOracle",
    "FiniteLogOdds",
    "FinitePairModel",
    "PreparedCounting",
    "check_counting",
]

Ints = NDArray[np.integer]
MOST_VALUES = 2**15  # values are kept as 16-bit integers
RAY = re.compile(r"auto|local|[^\s/@]+:\d{1,5}")
MOST_COUNTED = 2**31  # trajectories of one agent: counts of pairs are 32-bit integers


class CountingOracle(Oracle):
    """What any finite class needs to say: how large it is, how to evaluate it, and how to build one of its encoders.

    n_values           the number of values that an encoder may take
    n_threads          at most so many threads; None for all cores
    ray                the address of a Ray cluster that counts; None to count here
    threadsafe         whether several steps may be evaluated at the same time
    same_at_all_steps  whether Phi_h is the same for every h, so that one encoder can serve all steps
    """

    n_values: int
    n_threads: int | None
    ray: str | None = None
    threadsafe: bool = False
    same_at_all_steps: bool = False

    @abstractmethod
    def n_encoders(self, tau: TrajectoryDataset, h: int) -> int:
        """|Phi_h|."""

    @abstractmethod
    def pack(self, share: Share, h: int) -> Words:
        """All encoders of Phi_h on all observations of step h, as bit planes."""

    @abstractmethod
    def encoder(self, h: int, index: int, state_of: Ints) -> ValueEncoder:
        """Encoder `index` of Phi_h with its values relabelled."""

    def prepare(self, tau: TrajectoryDataset) -> PreparedCounting:
        self.check(tau)
        return PreparedCounting(self, tau)

    def suits(self) -> tuple[Choice, ...]:
        return (
            Choice(
                "coupling", "markov", "the class is finite, and codes that form a Markov chain need the least data."
            ),
            Choice("clusterer", "scan", "the paper's scan: log-odds of a finite class take few values."),
            Choice("relabel", True, RELABEL),
        )

    def check(self, tau: TrajectoryDataset) -> None:
        """Raise where a parameter means nothing, or the class does not fit the observations."""
        check_data(tau)
        if not (is_whole(self.n_values) and 2 <= self.n_values < MOST_VALUES):
            raise InvalidParameterError(
                f"n_values must be an integer of at least 2 and below {MOST_VALUES}; n_values = "
                f"{shown(self.n_values)} was given; it is the most values that an encoder may take."
            )
        usable_threads(self.n_threads)
        if self.ray is not None and not (isinstance(self.ray, str) and RAY.fullmatch(self.ray)):
            raise InvalidParameterError(
                f"ray must be HOST:PORT, 'auto', 'local' or None; {shown(self.ray)} was given; None counts here."
            )
        if max(tau.counts) >= MOST_COUNTED:
            raise InvalidDataError(
                f"There must be fewer than 2**31 trajectories of an agent; {max(tau.counts)} were given; leave some "
                "out."
            )

    def check_memory(self, tau: TrajectoryDataset) -> None:
        """Raise where the values and counts of all encoders would not fit into this machine's memory."""
        sizes = [self.n_encoders(tau, h) for h in range(1, tau.H + 1)]
        values = 0 if self.ray else (self.n_values - 1) * sum(sizes) * tau.n / 8
        counts = 8 * tau.K * max(sizes) * self.n_values**2
        what = f"What is counted of {max(sizes)} encoders with {self.n_values} values"
        check_room_in_memory(what, values + counts, "lower n_values")

    def saved(self) -> dict[str, Any]:
        """Without the cluster: who loads a model says where it counts."""
        return {**super().saved(), "ray": None}


def check_counting(oracle: Any, whose: str) -> None:
    """Refuse an oracle that cannot count, for learners that do nothing else."""
    if not isinstance(oracle, CountingOracle):
        raise InvalidParameterError(
            f"{whose} needs a finite class, CoordinateOracle(...) or FiniteOracle(...); {shown(oracle)} was given."
        )


class PreparedCounting(PreparedOracle):
    """The three questions, answered by counting the values of every encoder on one dataset."""

    N_s: int

    def __init__(self, oracle: CountingOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.N_s = int(oracle.n_values)
        sizes = [oracle.n_encoders(tau, h) for h in range(1, tau.H + 1)]
        self.counter = Counter(tau, _parts(oracle, tau), sizes, self.N_s, oracle.n_threads)
        self._one_start = True
        self._chains: dict[bool, MarkovChain] = {}

    # -- the three questions -------------------------------------------------------------------------------------------

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) for every h: ties to the first pair of encoders.

        Paper: Lines 9-10
        """
        return self.evaluated(self._encoder_pairs(grid, coupling), grid)

    def evaluated(self, pairs: Sequence[tuple[int, int]], grid: Grid) -> LogOdds:
        """The best table for each chosen pair of encoders, and f_h on every pair of observations."""
        cells, counts = self._cells(pairs)
        tables, fixed = best_bins(counts, grid)
        loss = log_loss(fixed.sum(axis=(1, 2))) / np.maximum(counts.sum(axis=(1, 2, 3)), 1)
        bins = np.full((len(pairs), self.tau.n, self.tau.K - 1), -1, dtype=np.int16)
        for h, (cell, table) in enumerate(zip(cells, tables)):
            rows = table.reshape(-1, table.shape[-1]).astype(np.int16)
            np.take(np.concatenate([rows, bins[h, :1]]), cell, axis=0, out=bins[h], mode="wrap")
        # A pair of values that was never seen says no more than the agents' shares.
        shares = np.log(counts.sum(axis=(1, 2)).clip(1))[:, None, None]
        seen = counts.sum(axis=-1, keepdims=True) > 0
        values = np.where(seen, grid.values[tables], shares[..., :1] - shares[..., 1:])
        return LogOdds(
            bins.transpose(1, 0, 2),
            loss,
            tuple(FinitePairModel(i, j, table, float(mean)) for (i, j), table, mean in zip(pairs, tables, loss)),
            p_value=self._p_values(counts, pairs),
            f=FiniteLogOdds(self.oracle, tuple(pairs), values),
        )

    def separation(self, h: int, cluster: Labels, n_clusters: int) -> CountedSeparation:
        return CountedSeparation(self.group_counts(h, cluster, n_clusters))

    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        index, state_of, loss = best_relabelling(self.group_counts(h, label, n_states).transpose(1, 0, 2))
        return EncoderFit(self.oracle.encoder(h, index, state_of), loss)

    def read(self, encoder: Encoder, h: int) -> Labels:
        """From the values that are packed already; observations are not read again."""
        if isinstance(encoder, ConstantEncoder):
            return np.where(self.tau.present(h), encoder.state, -1)
        if not isinstance(encoder, ValueEncoder) or (encoder.h != h and not self.oracle.same_at_all_steps):
            return super().read(encoder, h)
        return renamed(self.values(h, encoder.index), encoder.state_of)

    # -- what else a finite class can say --------------------------------------------------------------------------

    def n_encoders(self, h: int) -> int:
        """|Phi_h|."""
        return self.counter.sizes[h - 1]

    def values(self, h: int, index: int) -> Labels:
        """The values of encoder `index` of Phi_h on every trajectory, -1 where one is over: (n,)."""
        return self.counter.parts.values(View(h, slice(index, index + 1)))

    def group_counts(self, h: int, group: Labels, n_groups: int) -> NDArray[np.int64]:
        """How often each encoder has each value on each group of trajectories at h: (n_groups, |Phi_h|, N_s).

        `group` (n,) names each trajectory's group, -1 for none.
        """
        return self.counter.groups(h, group, n_groups)

    def pair_counts(self, h: int, rows: slice = slice(None)) -> NDArray[np.int64]:
        """How often each agent shows each pair of values of encoders of h, some rows of them, and of h + 1.

        Shape (I, |Phi_{h+1}|, N_s, N_s, K); a pair counts where x_{h+1} exists.
        """
        return self.counter.pairs(View(h, rows), View(h + 1)).transpose(3, 4, 1, 2, 0)

    def own_pair_counts(self, h: int) -> NDArray[np.int64]:
        """How often each agent shows each pair of values of every encoder at h and, the same one, at h + 1.

        Shape (|Phi|, N_s, N_s, K); for a class that is the same at all steps. A pair counts where x_{h+1} exists.
        """
        return self.counter.matched(h)

    def affordable(self, coupling: Coupling) -> tuple[Coupling, str] | None:
        """Another coupling and why, where this one would take minutes, or could not add up so many losses."""
        return affordable(self.counter, coupling)

    def from_any_start(self) -> PreparedCounting:
        """The same for trajectories that begin in several states: a chain then begins with any encoder of x_1."""
        several = copy(self)
        several._one_start = False
        return several

    def find_starts(self) -> Labels:
        """The values (n,) of the encoder of x_1 with which the best chain of encoders over all steps begins."""
        return counted_starts(self)

    def test_start(self) -> StartTest:
        """Whether the first two observations speak against one start state."""
        return counted_start_test(self)

    def chain_cost(self, indices: Sequence[int], grid: Grid, coupling: Coupling) -> float:
        """What the coupling's own criterion charges a path of encoders i_1..i_H, in nats; i_1 = -1: the constant one.

        The sum of the losses of all pairs; for "markov" with what codes leave out, and how far they depend on others.
        """
        if coupling == "markov":
            path = [max(indices[0], 0), *indices[1:]]
            return float(log_loss(self._markov(indices[0] == CONSTANT).cost(path, grid)))
        pairs = enumerate(pairwise(indices), start=1)
        return float(log_loss(sum(pair_loss(self.counter, h, i, j, grid) for h, (i, j) in pairs)))

    def chain_costs(self, path: Sequence[int], grid: Grid) -> list[NDArray[np.float64]]:
        """What coupling "markov" charges all pairs of encoders of h and h+1, in nats, for every h; from one start the
        first ones are the constant encoder alone. Exact for those of the path and the most promising others."""
        return self._markov(self._one_start).costs([0 if self._one_start else path[0], *path[1:]], grid)

    # -- Line 10 -----------------------------------------------------------------------------------------------------

    def _encoder_pairs(self, grid: Grid, coupling: Coupling) -> list[tuple[int, int]]:
        """Which encoders (phi_h, phi_{h+1}) f_h reads, for every h."""
        check_affordable(self.counter, coupling, self._one_start)
        every_h = range(1, self.tau.H + 1)
        list((self.counter.map if self.oracle.threadsafe else map)(self._pack, every_h))
        if coupling == "independent":
            return self.counter.best_pairs(list(map(View, every_h)), grid)
        # From one start the first encoder is the constant one: it serves x_1, and the pair that x_1 is in.
        if coupling == "chain":
            path, _ = shortest_path(self.counter.tiles(chain_views(self.tau.H, self._one_start), grid))
        else:
            path = self._markov(self._one_start).shortest(grid)
        return list(pairwise([CONSTANT, *path[1:]] if self._one_start else path))

    def _pack(self, h: int) -> None:
        self.counter.parts.total(_packed, h)

    def _markov(self, one_start: bool) -> MarkovChain:
        """What does not depend on the grid is counted once."""
        if one_start not in self._chains:
            self._chains[one_start] = MarkovChain(self.counter, one_start)
        return self._chains[one_start]

    def _cells(self, pairs: Sequence[tuple[int, int]]) -> tuple[list[Labels], NDArray[np.int64]]:
        """Each trajectory's pair of values at every h, as one number, -1 where x_{h+1} is missing; and their counts.

        (H-1) times (n,), and (H-1, N_s, N_s, K).
        """
        N_s, K, agent = self.N_s, self.tau.K, self.tau.agent
        kind = np.min_scalar_type(-(N_s**2) * K)
        whose, cells, counts = agent.astype(kind), [], np.zeros((len(pairs), N_s, N_s, K), dtype=np.int64)
        known: tuple[int, Labels] = (CONSTANT, np.zeros(self.tau.n, dtype=np.int16))
        for h, (i, j) in enumerate(pairs, start=1):
            first = known[1] if i == known[0] else self.values(h, i)
            known = j, self.values(h + 1, j)
            over = known[1] < 0
            cell = first.astype(kind) * kind.type(N_s) + known[1].astype(kind)
            cell[over] = -1
            tally = np.bincount((cell * kind.type(K) + whose)[~over], minlength=N_s * N_s * K)
            cells.append(cell)
            counts[h - 1] = tally.reshape(N_s, N_s, K)
        return cells, counts

    def _p_values(self, counts: Ints, pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Of every step's table, which is the best of all pairs of encoders there.

        In a chain the first encoder of a pair is the second of the pair before. Where that pair tells the agents apart,
        this one adds one choice, not two. Where it does not, the chain was free to choose both for this pair alone.
        """
        tables = counts.reshape(len(pairs), -1, self.tau.K).transpose(1, 0, 2)
        log_p, _ = dependence(np.ascontiguousarray(tables), np.zeros(len(tables), dtype=np.int64))
        known = pairs[0][0] == CONSTANT  # whether the first encoder was settled by what comes before
        for h in range(1, len(pairs) + 1):
            log_p[h - 1] += np.log((1 if known else self.n_encoders(h)) * self.n_encoders(h + 1))
            known = pairs[0][0] == CONSTANT and log_p[h - 1] <= np.log(LEVEL)
        return np.exp(np.minimum(log_p, 0.0))


def _parts(oracle: CountingOracle, tau: TrajectoryDataset) -> Parts:
    if oracle.ray is None or isinstance(tau.steps, ArraySteps):  # what is in this process's memory is counted here
        return Parts(tau, oracle.pack)
    from craftrl.engine.ray_parts import RayParts

    return RayParts(tau, oracle.pack, oracle.ray)


def _packed(part: Packed, h: int) -> int:
    part.step(h)
    return 0


@dataclass(frozen=True)
class CountedSeparation:
    """Value counts of every encoder on every cluster: (n_clusters, |Phi|, N_s); unions of clusters add up."""

    counts: NDArray[np.int64]

    def __call__(self, new: int, state: Sequence[int]) -> float:
        """`losses.separation_loss` of the two, compiled.

        Paper: Line 25
        """
        from craftrl.engine.kernels import least_overlap

        least, of = least_overlap(self.counts, new, np.array(state))
        return float(least / of)


# -- what was learned --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FinitePairModel(Savable):
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
class FiniteLogOdds(Savable):
    """f_h looks up the values of two encoders in a table.

    oracle  the class that the encoders are from
    pairs   the numbers (i, j) of phi_h and phi_{h+1} in it, for each h; i = -1 for the constant encoder
    values  float (H-1, N_s, N_s, K-1): a grid point for each pair of values, which is the log-odds rounded to alpha/4
            and clipped where eta says; for a pair that was never seen, the log-odds of the agents' shares

    Paper: Line 10
    """

    oracle: CountingOracle
    pairs: tuple[tuple[int, int], ...]
    values: NDArray[np.float64]

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float64]:
        found = []
        for h, ((i, j), table) in enumerate(zip(self.pairs, self.values), start=1):
            first = np.zeros(len(x), dtype=np.int64) if i == CONSTANT else self._read(h, i, x[:, h - 1])
            found.append(table[first, self._read(h + 1, j, x[:, h])])
        return np.stack(found, axis=1)

    def _read(self, h: int, index: int, x_h: NDArray[Any]) -> Ints:
        return self.oracle.encoder(h, index, np.arange(self.values.shape[1]))(x_h)

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> FiniteLogOdds:
        """With the oracle that was given, for functions that no file holds."""
        oracle = given if isinstance(given, CountingOracle) else parts["oracle"]
        if getattr(oracle, "encoders", ()) is None:
            raise InvalidParameterError(
                "The log-odds of this model read functions, which no file holds; give the oracle that it was fitted "
                "with: craftrl.load(path, oracle=...)."
            )
        return cls(oracle, tuple((int(i), int(j)) for i, j in parts["pairs"]), np.asarray(parts["values"]))
