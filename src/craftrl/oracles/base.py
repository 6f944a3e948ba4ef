"""Hypothesis classes with their training oracles.

An oracle is a description, with scikit-learn's parameters (`get_params`, `clone`, equality). `prepare` gives it the
data; what is computed there lives no longer than one fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from craftrl.arguments import check_kind, shown
from craftrl.core.clusters import find_clusters
from craftrl.core.encoders import Encoder
from craftrl.core.grid import Grid
from craftrl.core.saved import Savable
from craftrl.core.seam import COUPLINGS, Coupling, EncoderFit, LogOdds, PreparedOracle, Separation
from craftrl.core.starts import StartTest
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError

__all__ = [
    "COUPLINGS",
    "Choice",
    "Coupling",
    "Encoder",
    "EncoderFit",
    "LogOdds",
    "Mixed",
    "Oracle",
    "PreparedOracle",
    "Separation",
    "check_data",
    "that_encodes",
    "that_tells_agents_apart",
]

Ints = NDArray[np.integer]
RELABEL = "states read off each new encoder keep the trajectories that fall between clusters."


@dataclass(frozen=True)
class Choice(Savable):
    """Something that was left to the library: which parameter, what was taken, and why."""

    parameter: str
    value: Any
    why: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.why}"

    @property
    def setting(self) -> str:
        """The parameter and its value, such as "alpha = 0.5"."""
        value = f"{self.value:.4g}" if isinstance(self.value, float) else getattr(self.value, "__name__", self.value)
        return f"{self.parameter} = {value}"


class Oracle(BaseEstimator, Savable, ABC):
    """A hypothesis class with its training oracles.

    Parameters are stored as given and checked by `prepare`; two oracles of one class with equal parameters are equal.
    """

    @abstractmethod
    def prepare(self, tau: TrajectoryDataset) -> PreparedOracle:
        """Pose the three training problems on this dataset; checks the parameters, and that the class fits the data."""

    def suits(self) -> tuple[Choice, ...]:
        """What to take for `coupling`, `clusterer` and `relabel` where the user says "auto", and why.

        This is the answer of an oracle of which nothing is known: the paper's, but for relabelling.
        """
        return (
            Choice("coupling", "independent", "the paper's, which asks nothing more of an oracle."),
            Choice("clusterer", find_clusters, "the paper's scan over heavy bins."),
            Choice("relabel", True, RELABEL),
        )

    def refits(self) -> int:
        """How many refits on resampled data `diagnose` makes unless told."""
        return 10

    def shows(self) -> bool | None:
        """Whether a fit shows how far it is; None: where a terminal is watching."""
        return False

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(self.same_value(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def same_value(self, a: Any, b: Any) -> bool:
        """Whether two values of one parameter mean the same."""
        if a is b:
            return True
        if type(a) is not type(b):
            return False
        if isinstance(a, np.ndarray):
            return np.array_equal(a, b)
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(map(self.same_value, a, b))
        if isinstance(a, partial):
            return self.same_value((a.func, a.args, a.keywords), (b.func, b.args, b.keywords))
        if isinstance(a, BaseEstimator) and not isinstance(a, Oracle):
            mine, theirs = a.get_params(deep=False), b.get_params(deep=False)
            return mine.keys() == theirs.keys() and all(self.same_value(mine[name], theirs[name]) for name in mine)
        return bool(a == b)

    def saved(self) -> dict[str, Any]:
        return self.get_params(deep=False)


class Mixed(Oracle):
    """Each of the three questions answered by an oracle of its own; equal ones are prepared, and trained, once.

    Parameters
    ----------
    log_odds, separation, encoding
        The oracles that answer Line 10, Line 25 and Line 46.
    """

    def __init__(self, log_odds: Oracle, separation: Oracle, encoding: Oracle) -> None:
        self.log_odds = log_odds
        self.separation = separation
        self.encoding = encoding

    def prepare(self, tau: TrajectoryDataset) -> PreparedOracle:
        given = self.parts()
        prepared: list[PreparedOracle] = []
        for i, oracle in enumerate(given):
            twin = next((j for j in range(i) if given[j] == oracle), None)
            prepared.append(oracle.prepare(tau) if twin is None else prepared[twin])
        return _PreparedMixed(*prepared)

    def parts(self) -> tuple[Oracle, Oracle, Oracle]:
        """The three oracles: log-odds, separation, encoding."""
        for name in ("log_odds", "separation", "encoding"):
            check_kind(name, getattr(self, name), Oracle, "an oracle, such as CoordinateOracle()")
        return self.log_odds, self.separation, self.encoding

    def suits(self) -> tuple[Choice, ...]:
        """What suits the oracle that gives the log-odds: clusters are read off those."""
        return self.parts()[0].suits()

    def refits(self) -> int:
        return min(oracle.refits() for oracle in self.parts())

    def shows(self) -> bool | None:
        return next((wish for oracle in self.parts() if (wish := oracle.shows()) is not False), False)


def check_data(tau: Any) -> None:
    """A dataset, or what stands for one whose trajectories lie elsewhere and has its sizes alone."""
    if isinstance(tau, type) or not hasattr(tau, "obs_shape"):
        raise InvalidParameterError(f"tau must be a TrajectoryDataset; {shown(tau)} was given.")


def that_encodes(oracle: Any) -> Any:
    """The oracle that answers Line 46: the oracle itself, or the last part of a `Mixed` one."""
    while isinstance(oracle, Mixed):
        oracle = oracle.encoding
    return oracle


def that_tells_agents_apart(oracle: Any) -> Any:
    """The oracle that answers Line 10: the oracle itself, or the first part of a `Mixed` one."""
    while isinstance(oracle, Mixed):
        oracle = oracle.log_odds
    return oracle


class _PreparedMixed(PreparedOracle):
    def __init__(self, log_odds: PreparedOracle, separation: PreparedOracle, encoding: PreparedOracle) -> None:
        self._parts = log_odds, separation, encoding
        self.N_s = encoding.N_s
        self.seed = encoding.seed

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        return self._parts[0].log_odds(grid, coupling)

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> Separation:
        return self._parts[1].separation(h, cluster, n_clusters)

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        return self._parts[2].encode(h, label, n_states)

    def keep_for_reuse(self) -> None:
        for i, part in enumerate(self._parts):
            if part not in self._parts[:i]:
                part.keep_for_reuse()

    def instead_of(self, coupling: Coupling) -> tuple[Coupling, str] | None:
        return self._parts[0].instead_of(coupling)

    def read(self, encoder: Encoder, tau: TrajectoryDataset, h: int) -> Ints:
        return self._parts[2].read(encoder, tau, h)

    def expect_several_starts(self) -> None:
        for part in self._parts:
            part.expect_several_starts()

    def find_starts(self) -> Ints:
        return self._parts[0].find_starts()

    def test_start(self) -> StartTest | None:
        return self._parts[0].test_start()

    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        return self._parts[2].share(labels, n_states, name)
