"""Finite hypothesis classes, the coordinates of an observation or any list of functions: training is counting.

Every encoder of the class is evaluated once on every observation. From then on, all three questions are answered
exactly, by counts of the values.

Paper: Section 4, Section 2.5 (function approximation), Lines 9-10, 25, 46; Appendix A
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_room_in_memory, check_whole, quoted
from craftrl.arrays import Ints
from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder, Encoder, ValueEncoder
from craftrl.core.evidence import LEVEL, dependence
from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, crossed, paired, renamed
from craftrl.core.losses import FIXED_POINT, best_bins, best_relabelling, separation_loss
from craftrl.core.oracle import Coupling, EncoderFit, LogOdds, PreparedOracle, Separation
from craftrl.core.saved import Savable
from craftrl.core.trace import FinitePairModel
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.counting import Counter, count_groups
from craftrl.engine.packing import Part, Parts, View, Words, pack_coordinates, pack_functions
from craftrl.engine.threads import usable_threads
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.base import Choice, Oracle
from craftrl.oracles.couplings import MarkovChain, chain_views, obstacle, shortest_path

EncoderFunction = Callable[[NDArray[Any]], Any]
CONSTANT = -1  # in place of an encoder's number: the constant one, with which a chain from one start begins
MAX_VALUES = 2**15 - 1  # values are kept as 16-bit integers
RAY = re.compile(r"auto|local|[^\s/@]+:\d{1,5}")
# Seconds on one core and bytes of the Markov chain: beyond the first it is no default, beyond the second refused.
LONG, LARGE = 60.0, 2.0**30
TOO_LONG, TOO_LARGE = 3600.0, 2.0**33


class CountingOracle(Oracle):
    """What both finite classes have in common.

    same_at_all_steps  whether Phi_h is the same for every h, so that one encoder can serve all steps
    """

    coupling = Choice(
        "coupling", "markov", "the class is finite, and codes that form a Markov chain need the least data."
    )
    n_values: int
    n_threads: int | None
    ray: str | None
    same_at_all_steps: bool

    @abstractmethod
    def sizes(self, tau: TrajectoryDataset) -> list[int]:
        """|Phi_1|..|Phi_H|; raises where the class does not fit the observations."""

    @abstractmethod
    def pack(self, part: Part) -> list[Words]:
        """All encoders of Phi_1..Phi_H on some trajectories, as bit planes."""

    @abstractmethod
    def encoder(self, h: int, index: int, state_of: Ints) -> ValueEncoder:
        """Encoder `index` of Phi_h with its values relabelled."""

    def prepare(self, tau: TrajectoryDataset) -> PreparedCounting:
        return PreparedCounting(self, tau)

    def saved(self) -> dict[str, Any]:
        """Without the cluster: who loads a model says where it counts."""
        return {**super().saved(), "ray": None}


class CoordinateOracle(CountingOracle):
    """Phi_h = {x -> x_i | i in [M]}, each coordinate with all labellings: the paper's class.

    Observations must be 0/1, or integers in 0..n_values-1; arrays of any shape are read as flat.

    Parameters
    ----------
    n_values
        How many values a coordinate may take: the paper's N_s, the most states at any step. 2 for bits.
    n_threads
        Count on at most so many threads; None: on all cores. Results do not depend on it.
    ray
        Count on a Ray cluster, one part of the data on each core: "HOST:6379"; "auto" for the cluster that this process
        or machine belongs to; "local" for a Ray that is started on this machine. Results are the same as here. The data
        must be a dataset on disk, at a path that leads to it on every machine; arrays in memory are counted here.

    Notes
    -----
    Paper: Section 4
    """

    same_at_all_steps = True

    def __init__(self, n_values: int = 2, *, n_threads: int | None = None, ray: str | None = None) -> None:
        self.n_values = n_values
        self.n_threads = n_threads
        self.ray = ray

    def sizes(self, tau: TrajectoryDataset) -> list[int]:
        if tau.dtype.kind not in "biu":
            raise InvalidDataError(
                f"Coordinates must be integers in 0..{self.n_values - 1}; observations of dtype {tau.dtype} were "
                "given; convert them, use a FiniteOracle with functions that do, or a classifier or network for "
                "features."
            )
        return [int(np.prod(tau.obs_shape, dtype=np.int64))] * tau.H

    def pack(self, part: Part) -> list[Words]:
        return pack_coordinates(part, int(self.n_values), usable_threads(self.n_threads))

    def encoder(self, h: int, index: int, state_of: Ints) -> CoordinateEncoder:
        return CoordinateEncoder(index, state_of)


class FiniteOracle(CountingOracle):
    """Any finite class: a list of functions from observations (n, *obs) to values (n,) in 0..n_values-1.

    Relabellings need not be listed: every encoder is tried with all of them. Each function is called once on every
    block of observations.

    Parameters
    ----------
    encoders
        One list of functions for all steps, or a function from h to the list of that step.
    n_values
        How many values a function may take: the paper's N_s, the most states at any step.
    n_threads, ray
        As for `CoordinateOracle`.

    Notes
    -----
    Paper: Section 2.5 (function approximation), Appendix A
    """

    def __init__(
        self,
        encoders: Sequence[EncoderFunction] | Callable[[int], Sequence[EncoderFunction]],
        n_values: int = 2,
        *,
        n_threads: int | None = None,
        ray: str | None = None,
    ) -> None:
        self.encoders = encoders
        self.n_values = n_values
        self.n_threads = n_threads
        self.ray = ray

    @property
    def same_at_all_steps(self) -> bool:  # type: ignore[override]
        return not _is_function(self.encoders)

    def Phi(self, h: int) -> Sequence[EncoderFunction]:
        """The functions of step h."""
        encoders: Any = self.encoders
        functions: Sequence[EncoderFunction] = encoders(h) if _is_function(encoders) else encoders
        return functions

    def sizes(self, tau: TrajectoryDataset) -> list[int]:
        classes = [self.Phi(h) for h in range(1, tau.H + 1)]
        for h, functions in enumerate(classes, start=1):
            if not isinstance(functions, (list, tuple)) or not functions or not all(map(_is_function, functions)):
                raise InvalidParameterError(
                    "encoders must be a list of functions, one at least, or a function from h to such a list; "
                    f"{quoted(functions)} was given for h = {h}."
                )
        return list(map(len, classes))

    def pack(self, part: Part) -> list[Words]:
        return pack_functions(part, [self.Phi(h) for h in range(1, part.H + 1)], int(self.n_values))

    def encoder(self, h: int, index: int, state_of: Ints) -> FiniteEncoder:
        return FiniteEncoder(self.Phi(h)[index], h, index, state_of)

    def saved(self) -> dict[str, Any]:
        """Without the functions: a model with such an oracle is loaded with it."""
        return {**super().saved(), "encoders": None}


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def check_counting(oracle: Any, whose: str) -> None:
    """Refuse an oracle that cannot count, for learners that do nothing else."""
    if not isinstance(oracle, CountingOracle):
        raise InvalidParameterError(
            f"{whose} needs a finite class, CoordinateOracle(...) or FiniteOracle(...); {quoted(oracle)} was given."
        )


# -- the three questions ----------------------------------------------------------------------------------------------


class PreparedCounting(PreparedOracle):
    """The three questions, answered by counting the values of every encoder on one dataset."""

    N_s: int

    def __init__(self, oracle: CountingOracle, tau: TrajectoryDataset) -> None:
        check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
        check_whole("n_values", oracle.n_values, 2, MAX_VALUES, "it is the most values that an encoder may take")
        usable_threads(oracle.n_threads)
        if oracle.ray is not None and not (isinstance(oracle.ray, str) and RAY.fullmatch(oracle.ray)):
            raise InvalidParameterError(
                f"ray must be HOST:PORT, 'auto', 'local' or None; {quoted(oracle.ray)} was given; None counts here."
            )
        self.oracle, self.tau, self.N_s = oracle, tau, int(oracle.n_values)
        sizes = oracle.sizes(tau)
        values = 0 if oracle.ray else (self.N_s - 1) * sum(sizes) * tau.n / 8
        what = f"What is counted of {max(sizes)} encoders with {self.N_s} values"
        check_room_in_memory(what, values + 8 * tau.K * max(sizes) * self.N_s**2, "lower n_values")
        self.counter = Counter(tau, counted_parts(oracle, tau), [1, *sizes], self.N_s, oracle.n_threads)
        self._one_start = True
        self._chains: dict[bool, MarkovChain] = {}

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """Exact ERM over Phi_h x Phi_{h+1} x (N_s^2 -> Xi) for every h: ties to the first pair of encoders.

        Paper: Lines 9-10
        """
        if why := obstacle(self.counter, coupling, TOO_LONG * len(self.counter.parts.rows), TOO_LARGE):
            other = f"coupling='{nearest[0]}', " if (nearest := self.affordable(coupling)) else ""
            raise InvalidParameterError(
                f"coupling='{coupling}' must be within reach of time and memory; {why}; use {other}fewer encoders, "
                "values, steps or trajectories."
            )
        views = chain_views(self.tau.H, self._one_start)
        if coupling == "independent":
            return self.evaluated(self.counter.best_pairs(list(map(View, range(1, self.tau.H + 1))), grid), grid)
        if coupling == "chain":
            path, _ = shortest_path(self.counter.tiles(views, grid))
        else:
            path = self._markov(self._one_start).shortest(grid)
        # From one start the first encoder is the constant one: it serves x_1, and the pair that x_1 is in.
        return self.evaluated(list(pairwise([CONSTANT, *path[1:]] if self._one_start else path)), grid)

    def evaluated(self, pairs: Sequence[tuple[int, int]], grid: Grid, one_encoder: bool = False) -> LogOdds:
        """The best table for each chosen pair of encoders, and f_h on every pair of observations.

        one_encoder  whether all pairs are of the same one, which was chosen for all steps together
        """
        n, K, V = self.tau.n, self.tau.K, self.N_s
        cells, last = [], CONSTANT
        after: Labels = np.zeros(n, dtype=np.int16)
        for h, (i, j) in enumerate(pairs, start=1):
            before = after if i == last else self.values(h, i)
            last, after = j, self.values(h + 1, j)
            cells.append(paired(before, after, V).astype(np.min_scalar_type(-V * V)))  # a byte, as a rule
        counts = np.stack([crossed(cell, self.tau.agent, sizes=(V * V, K)) for cell in cells])
        tables, fixed = best_bins(counts, grid)
        loss = fixed.sum(axis=1) / FIXED_POINT / np.maximum(counts.sum(axis=(1, 2)), 1)
        bins = np.empty((len(pairs), n, K - 1), dtype=np.int16)
        for own, table, cell in zip(bins, tables, cells):
            own[:] = np.append(table, np.full((1, K - 1), -1), axis=0)[cell]
        # A pair of values that was never seen says no more than the agents' shares.
        shares = np.log(counts.sum(axis=1, keepdims=True).clip(1))
        values = np.where(counts.any(axis=-1, keepdims=True), grid.values[tables], shares[..., :1] - shares[..., 1:])
        shape = len(pairs), V, V, K - 1
        encoders = tuple((self._own(h, i), self._own(h + 1, j)) for h, (i, j) in enumerate(pairs, start=1))
        models = zip(pairs, tables.reshape(shape), loss.tolist())
        return LogOdds(
            bins.transpose(1, 0, 2),
            loss,
            tuple(FinitePairModel(i, j, table, mean) for (i, j), table, mean in models),
            p_value=self._p_values(counts, pairs, one_encoder),
            f=FiniteLogOdds(encoders, values.reshape(shape)),
        )

    def _own(self, h: int, index: int) -> Encoder:
        """Encoder `index` of Phi_h with its own values."""
        return ConstantEncoder() if index == CONSTANT else self.oracle.encoder(h, index, np.arange(self.N_s))

    def _p_values(self, counts: Ints, pairs: Sequence[tuple[int, int]], one_encoder: bool) -> NDArray[np.float64]:
        """Of every step's table, which is the best of all pairs of encoders there, or of all encoders where one serves
        all steps.

        In a chain the first encoder of a pair is the second of the pair before. Where that pair tells the agents apart,
        this one adds one choice, not two. Where it does not, the chain was free to choose both for this pair alone.
        """
        tables = np.ascontiguousarray(counts.transpose(1, 0, 2))
        log_p, _ = dependence(tables, np.zeros(len(tables), dtype=np.int64))
        known = pairs[0][0] == CONSTANT  # whether the first encoder was settled by what comes before
        for h in range(1, len(pairs) + 1):
            log_p[h - 1] += np.log((1 if known or one_encoder else self.n_encoders(h)) * self.n_encoders(h + 1))
            known = pairs[0][0] == CONSTANT and log_p[h - 1] <= np.log(LEVEL)
        return np.exp(np.minimum(log_p, 0.0))

    def separation(self, h: int, cluster: Labels, n_clusters: int) -> Separation:
        counts = self.group_counts(h, cluster, n_clusters)
        return lambda new, state: separation_loss(counts[new], counts[list(state)].sum(axis=0))

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

    # -- what else a finite class can say ------------------------------------------------------------------------------

    def n_encoders(self, h: int) -> int:
        """|Phi_h|."""
        return self.counter.sizes[h]

    def values(self, h: int, index: int) -> Labels:
        """The values of encoder `index` of Phi_h on every trajectory, -1 where one is over: (n,)."""
        return self.counter.parts.values(View(h, slice(index, index + 1)))

    def group_counts(self, h: int, group: Labels, n_groups: int) -> NDArray[np.int64]:
        """How often encoders have each value at h on groups of trajectories, (n,) or -1: (n_groups, |Phi_h|, N_s)."""
        counts: NDArray[np.int64] = self.counter.parts.total(count_groups, h, n_groups, label=group)
        return counts

    def pair_counts(self, h: int, rows: slice = slice(None)) -> NDArray[np.int32]:
        """How often agents show pairs of values of some encoders of h and all of h + 1: (I, J, N_s, N_s, K)."""
        return self.counter.pairs(View(h, rows), View(h + 1)).transpose(3, 4, 1, 2, 0)

    def from_any_start(self) -> PreparedCounting:
        """The same for trajectories that begin in several states: a chain then begins with any encoder of x_1."""
        several = copy(self)
        several._one_start = False
        return several

    def affordable(self, wanted: Coupling) -> tuple[Coupling, str] | None:
        """Another coupling and why, where this one would take minutes, or could not add up so many losses."""
        why = obstacle(self.counter, wanted, LONG, LARGE)
        others: tuple[Coupling, ...] = ("chain", "independent")
        other = next((c for c in others if not obstacle(self.counter, c, LONG, LARGE)), wanted)
        return (other, f'"{wanted}" is out of reach: {why}.') if why and other != wanted else None

    def beyond_losses(self, path: Sequence[int], grid: Grid) -> float:
        """What the Markov coupling charges encoders i_1..i_H for beside their losses, in nats; i_1 may be CONSTANT.

        That is what codes leave out, less what they tell by themselves, and how far they depend on others. States owe
        nothing; states that are fused do.
        """
        first, *others = path
        chain = self._markov(first == CONSTANT)
        return chain.beyond_losses([max(first, 0), *others], grid) / FIXED_POINT

    def chain_costs(self, path: Sequence[int], grid: Grid) -> list[NDArray[np.float64]]:
        """What coupling "markov" charges all pairs of encoders of h and h+1, in nats, for every h; from one start the
        first ones are the constant encoder alone. Exact for those of the path and the most promising others."""
        return self._markov(self._one_start).costs([0 if self._one_start else path[0], *path[1:]], grid)

    def _markov(self, one_start: bool) -> MarkovChain:
        """What does not depend on the grid is counted once."""
        if one_start not in self._chains:
            self._chains[one_start] = MarkovChain(self.counter, one_start)
        return self._chains[one_start]


def counted_parts(oracle: CountingOracle, tau: TrajectoryDataset) -> Parts:
    """Where the trajectories are packed and counted: here, or on a cluster."""
    if oracle.ray is None or tau.frames.in_memory:  # what is in this process's memory is counted here
        return Parts(tau, oracle.pack)
    from craftrl.engine.ray_parts import RayParts

    return RayParts(tau, oracle.pack, oracle.ray)


# -- what was learned --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FiniteEncoder(ValueEncoder, Savable):
    """Function `index` of Phi_h."""

    function: EncoderFunction
    h: int
    index: int
    state_of: Ints

    def values(self, x: NDArray[Any]) -> Any:
        return self.function(x)

    def saved(self) -> dict[str, Any]:
        return {"h": self.h, "index": self.index, "state_of": self.state_of}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> FiniteEncoder:
        """No file holds functions: they come from the oracle that was given."""
        functions = given.Phi(parts["h"]) if isinstance(given, FiniteOracle) else ()
        if not 0 <= parts["index"] < len(functions):
            raise InvalidParameterError(
                "The encoders of this model are functions, which no file holds; give the oracle that it was fitted "
                f"with: craftrl.load(path, oracle=FiniteOracle(...)); number {parts['index']} of h = {parts['h']} is "
                f"wanted of {len(functions)} that were given."
            )
        return cls(functions[parts["index"]], **parts)


@dataclass(frozen=True)
class FiniteLogOdds(Savable):
    """f_h looks up the values of two encoders in a table.

    encoders  (phi_h, phi_{h+1}) for each h
    values    float (H-1, N_s, N_s, K-1): a grid point for each pair of values, which is the log-odds rounded to alpha/4
              and clipped where eta says; for a pair that was never seen, the log-odds of the agents' shares

    Paper: Line 10
    """

    encoders: tuple[tuple[Encoder, Encoder], ...]
    values: NDArray[np.float64]

    def __call__(self, x: NDArray[Any]) -> NDArray[np.float64]:
        both = enumerate(zip(self.encoders, self.values))
        return np.stack([table[phi(x[:, h]), phi_next(x[:, h + 1])] for h, ((phi, phi_next), table) in both], axis=1)
