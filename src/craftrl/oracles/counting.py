"""Exact answers for any finite hypothesis class: training is counting.

Paper: Lines 9-10, 25, 46; Appendix A
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_room_in_memory, is_whole, shown
from craftrl.core.clusters import find_clusters
from craftrl.core.encoders import ConstantEncoder, Encoder, ValueEncoder
from craftrl.core.evidence import LEVEL, table_p_value
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, renamed
from craftrl.core.limits import check_sums, too_many_for, widest_coupling
from craftrl.core.losses import best_bins, best_relabelling, log_loss
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.counting import CountMemory, group_counts, pair_counts
from craftrl.engine.engine import Engine
from craftrl.engine.packing import PackedStep, constant_step
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import RELABEL, Choice, Coupling, EncoderFit, LogOdds, Oracle, PreparedOracle, check_data
from craftrl.oracles.chain import agreement, most_agreeing, posterior_tiled, shortest_tiled
from craftrl.oracles.markov import TOO_LONG, MarkovChain, check_cost, dear
from craftrl.oracles.pair_functions import FiniteLogOdds
from craftrl.oracles.starts import counted_starts
from craftrl.oracles.tied import TiedChain, check_tied_cost

Ints = NDArray[np.integer]

CONSTANT = -1
CANDIDATES = 256  # encoders of a step compared for agreement: beyond these there is hardly any weight

__all__ = ["CONSTANT", "CountedSeparation", "CountingOracle", "FinitePairModel", "PreparedCounting", "check_counting"]

MOST_VALUES = 2**15  # values are kept as 16-bit integers


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


class CountingOracle(Oracle):
    """What any finite class needs to say: how to evaluate Phi_h, and how to build one of its encoders.

    n_values           the number of values that an encoder may take
    device, n_threads, tile_bytes  where and with how much to count
    threadsafe         whether several steps may be evaluated at the same time
    same_at_all_steps  whether Phi_h is the same for every h, so that one encoder can serve all steps
    """

    n_values: int
    device: str
    n_threads: int | None
    tile_bytes: int
    threadsafe: bool = False
    same_at_all_steps: bool = False

    @property
    def engine(self) -> Engine:
        """Where and with how much to count."""
        return Engine(self.device, self.n_threads, self.tile_bytes)

    def prepare(self, tau: TrajectoryDataset) -> PreparedCounting:
        self.check(tau)
        return PreparedCounting(self, tau)

    def suits(self) -> tuple[Choice, ...]:
        return (
            Choice(
                "coupling", "markov", "the class is finite, and codes that form a Markov chain need the least data."
            ),
            Choice("clusterer", find_clusters, "the paper's scan: log-odds of a finite class take few values."),
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
        self.engine  # noqa: B018  which checks what it is given

    def check_memory(self, tau: TrajectoryDataset, n_encoders: int) -> None:
        """Raise where the values and counts of so many encoders would not fit into this machine's memory."""
        values = tau.H * (self.n_values - 1) * n_encoders * tau.n / 8
        counts = 8 * tau.K * n_encoders * self.n_values**2
        what = f"What is counted of {n_encoders} encoders with {self.n_values} values"
        check_room_in_memory(what, values + counts, "lower n_values")

    @abstractmethod
    def evaluate(self, tau: TrajectoryDataset, h: int) -> PackedStep:
        """All encoders of Phi_h on all observations of step h."""

    @abstractmethod
    def encoder(self, h: int, index: int, state_of: Ints) -> ValueEncoder:
        """Encoder `index` of Phi_h with its values relabelled."""


def check_counting(oracle: Any, whose: str) -> None:
    """Refuse an oracle that cannot count, for learners that do nothing else."""
    if not isinstance(oracle, CountingOracle):
        raise InvalidParameterError(
            f"{whose} needs a finite class, CoordinateOracle(...) or FiniteOracle(...); {shown(oracle)} was given."
        )


class PreparedCounting(PreparedOracle):
    """The three questions, answered by counting the values of every encoder on one dataset."""

    N_s: int
    patience = TOO_LONG  # seconds of one core that a Markov chain may take

    def __init__(self, oracle: CountingOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.N_s = int(oracle.n_values)
        self.engine = oracle.engine
        self._steps: dict[int, Any] = {}
        self._start = self._constant_start()
        self._one_start = True
        self._counts: CountMemory | None = None
        self._markov: MarkovChain | None = None
        self._tied: TiedChain | None = None

    def _constant_start(self) -> Any:
        """The constant encoder of x_1, which a chain begins with."""
        return constant_step(self.tau, 1)

    def keep_for_reuse(self) -> None:
        """Keep the counts of pairs, which do not depend on the grid, where there is room for them."""
        self._counts = CountMemory()

    def step(self, h: int) -> PackedStep:
        """All encoders on all observations of step h, evaluated once; a `SpreadStep` where these lie elsewhere."""
        if h not in self._steps:
            self._steps[h] = self.oracle.evaluate(self.tau, h)
        return self._steps[h]

    def n_encoders(self, h: int) -> int:
        """|Phi_h|."""
        return self.step(h).size

    def group_counts(self, h: int, group: Labels, n_groups: int) -> NDArray[np.int64]:
        """How often each encoder has each value on each group of trajectories at h: (n_groups, |Phi_h|, N_s).

        `group` (n,) names each trajectory's group, -1 for none.
        """
        return group_counts(self.step(h), group, n_groups)

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) for every h: ties to the first pair of encoders."""
        return self._evaluated(self._encoder_pairs(grid, coupling), grid)

    def _evaluated(self, pairs: Sequence[tuple[int, int]], grid: Grid) -> LogOdds:
        """The best table for each chosen pair of encoders, and f_h on every pair of observations."""
        H, K = self.tau.H, self.tau.K
        counts = np.zeros((H - 1, self.N_s, self.N_s, K), dtype=np.int64)

        def count(h: int) -> None:
            i, j = pairs[h - 1]
            step_h, i = (self._start, 0) if i == CONSTANT else (self.step(h), i)
            cells = pair_counts(step_h, self.step(h + 1), slice(i, i + 1), slice(j, j + 1))[0, 0]
            counts[h - 1, : len(cells)] = cells

        self.engine.together(count, range(1, H))
        tables, fixed = best_bins(counts, grid)
        loss = log_loss(fixed.sum(axis=(1, 2))) / np.maximum(counts.sum(axis=(1, 2, 3)), 1)
        models = tuple(FinitePairModel(i, j, table, float(mean)) for (i, j), table, mean in zip(pairs, tables, loss))
        f = FiniteLogOdds(self.oracle, tuple(pairs), self._table_values(counts, tables, grid))
        bins = self._all_bins(pairs, tables)
        return LogOdds(bins, loss, models, p_value=self._p_values(counts, pairs), f=f)

    def _all_bins(self, pairs: Sequence[tuple[int, int]], tables: Ints) -> Any:
        """Every f_h on every trajectory."""
        bins = np.empty((len(pairs), self.tau.n, tables.shape[-1]), dtype=np.int16)

        def evaluate(h: int) -> None:
            bins[h - 1] = self._bins(h, *pairs[h - 1], tables[h - 1])

        list(self.engine.map(evaluate, range(1, self.tau.H)))
        return bins.transpose(1, 0, 2)

    def _table_values(self, counts: Ints, tables: Ints, grid: Grid) -> NDArray[np.float64]:
        """Each step's table in nats; a pair of values that was never seen says no more than the agents' shares."""
        shares = np.log(counts.sum(axis=(1, 2)).clip(1))[:, None, None]
        seen = counts.sum(axis=-1, keepdims=True) > 0
        return np.where(seen, grid.values[tables], shares[..., :1] - shares[..., 1:])

    def _p_values(self, counts: Ints, pairs: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Of every step's table, which is the best of all pairs of encoders there.

        In a chain the first encoder of a pair is the second of the pair before. Where that pair tells the agents apart,
        this one adds one choice, not two. Where it does not, the chain was free to choose both for this pair alone.
        """
        known = pairs[0][0] == CONSTANT  # whether the first encoder was settled by what comes before
        p_values = np.ones(len(pairs))
        for h, table in enumerate(counts, start=1):
            tried = (1 if known else self.step(h).size) * self.step(h + 1).size
            p_values[h - 1] = p = table_p_value(table.reshape(-1, self.tau.K), tried)
            known = pairs[0][0] == CONSTANT and p <= LEVEL
        return p_values

    def _bins(self, h: int, i: int, j: int, table: Ints) -> NDArray[np.int16]:
        """f_h on every trajectory: the table's entry for its two values, -1 where x_{h+1} is missing."""
        cell = self.step(h + 1).values(j).astype(np.intp)
        if i != CONSTANT:
            # Where x_{h+1} is missing, its value is -1 and stays so: it picks the last row below.
            cell += self.N_s * (self.step(h).values(i) * (cell >= 0))
        rows = table.reshape(-1, table.shape[-1]).astype(np.int16)
        return np.concatenate([rows, np.full((1, rows.shape[1]), -1, dtype=np.int16)])[cell]

    def _encoder_pairs(self, grid: Grid, coupling: Coupling) -> list[tuple[int, int]]:
        """Which encoders (phi_h, phi_{h+1}) f_h reads, for every h."""
        check_sums(coupling, self._n_pairs, self.tau.K, self.N_s)
        steps = self._all_steps()
        if coupling == "independent":
            return self.engine.best_pairs(steps, grid, self._counts)
        # From one start the first encoder is the constant one: it serves x_1, and the pair that x_1 is in.
        chain = [self._start, *steps[1:]] if self._one_start else steps
        if coupling == "chain":
            path = shortest_tiled(self.engine.loss_tiles(chain, grid, self._counts))[0]
        elif coupling == "markov":
            path = self._markov_chain(chain).shortest(grid, self._counts)
        elif coupling == "tied":
            path = self._tied_chain(chain).shortest(grid, self._counts)
        else:
            path = self._consensus(chain, grid)
        if self._one_start:
            path[0] = CONSTANT
        return list(pairwise(path))

    def _markov_chain(self, chain: list[PackedStep]) -> MarkovChain:
        """What does not depend on the grid is counted once."""
        if self._markov is None:
            check_cost(chain, self.patience)
            self._markov = MarkovChain(chain, self._all_steps(), self.engine)
        return self._markov

    def _tied_chain(self, chain: list[PackedStep]) -> TiedChain:
        if self._tied is None:
            check_tied_cost(chain)
            self._tied = TiedChain(self._markov_chain(chain))
        return self._tied

    def instead_of(self, coupling: Coupling) -> tuple[Coupling, str] | None:
        """What takes less time, or can add up the losses of so many observations."""
        cheaper: tuple[Coupling, str] | None = None
        if coupling == "markov" and (cost := dear(self._all_steps())) is not None:
            cheaper = "chain", f'the class is finite; "markov" may need less data, but would take {cost}.'
        wanted = coupling if cheaper is None else cheaper[0]
        widest = widest_coupling(wanted, self._n_pairs, self.tau.K, self.N_s)
        return cheaper if widest == wanted else (widest, too_many_for(wanted, self._n_pairs))

    @cached_property
    def _n_pairs(self) -> list[int]:
        """How many pairs of observations there are at each h."""
        return [int(self.tau.running(h).sum()) for h in range(2, self.tau.H + 1)]

    def _consensus(self, chain: list[PackedStep], grid: Grid) -> list[int]:
        """At each step the encoder that agrees best with all chains, each weighed by its loss."""
        last_first = (
            (number, first, rows)
            for number, h in enumerate(reversed(range(1, len(chain))))
            for _, first, rows in self.engine.loss_tiles(chain[h - 1 : h + 1], grid, self._counts)
        )
        weights = posterior_tiled(self.engine.loss_tiles(chain, grid, self._counts), last_first)
        return [self._most_agreeing(s, weight) if s.size > 1 else 0 for s, weight in zip(chain, weights)]

    def _most_agreeing(self, step: PackedStep, weight: NDArray[np.float64]) -> int:
        candidates = np.sort(np.argsort(-weight, kind="stable")[:CANDIDATES])
        few = step.take(candidates)
        shares = agreement(pair_counts(few, few).sum(axis=-1))
        return int(candidates[most_agreeing(weight[candidates], shares)])

    def _all_steps(self) -> list[PackedStep]:
        """Every step, packed; side by side where the class allows it."""
        every_h = range(1, self.tau.H + 1)
        return list(self.engine.map(self.step, every_h) if self.oracle.threadsafe else map(self.step, every_h))

    def separation(self, h: int, cluster: Labels, n_clusters: int) -> CountedSeparation:
        return CountedSeparation(group_counts(self.step(h), cluster, n_clusters))

    def encode(self, h: int, label: Labels, n_states: int) -> EncoderFit:
        counts = group_counts(self.step(h), label, n_states).transpose(1, 0, 2)
        index, state_of, loss = best_relabelling(counts)
        return EncoderFit(self.oracle.encoder(h, index, state_of), loss)

    def read(self, encoder: Encoder, tau: TrajectoryDataset, h: int) -> Labels:
        """From the values that are packed already; observations are not read again."""
        if isinstance(encoder, ConstantEncoder):
            return renamed(self.step(h).nothing().values(0), np.array([encoder.state]))
        if not isinstance(encoder, ValueEncoder) or (encoder.h != h and not self.oracle.same_at_all_steps):
            return super().read(encoder, tau, h)
        return renamed(self.step(h).values(encoder.index), encoder.state_of)

    def expect_several_starts(self) -> None:
        """A chain then begins with any encoder of x_1, not with the constant one."""
        self._one_start, self._markov, self._tied = False, None, None

    def find_starts(self) -> Labels:
        """The values of the encoder of x_1 in the best chain over all steps."""
        return counted_starts(self)

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        """The best encoder of the class on the observations of all steps together."""
        if not self.oracle.same_at_all_steps:
            raise InvalidParameterError(
                "stationary=True needs one class of encoders for all steps; this oracle has one for each h; give "
                "FiniteOracle a list of functions."
            )
        counts = sum(group_counts(self.step(h), labels[:, h - 1], n_states) for h in range(1, self.tau.H + 1))
        index, state_of, loss = best_relabelling(np.asarray(counts).transpose(1, 0, 2))
        return EncoderFit(self.oracle.encoder(1, index, state_of), loss)


@dataclass(frozen=True)
class CountedSeparation:
    """Value counts of every encoder on every cluster: (n_clusters, |Phi|, N_s); unions of clusters add up."""

    counts: NDArray[np.int64]

    def loss(self, new: int, state: Sequence[int]) -> float:
        """`losses.separation_loss` of the two, compiled.

        Paper: Line 25
        """
        from craftrl.engine.separation_kernel import least_overlap

        least, of = least_overlap(self.counts, new, np.array(state))
        return least / of
