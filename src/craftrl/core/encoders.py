"""phi'_h: what an encoder is, and what some of them can do beside encoding.

Any callable from observations to states is an encoder. What more it can do is declared by its class: a
`FeatureEncoder` works in two parts and shares the first one with others, a `Savable` (`craftrl.core.saved`) can be
written to a file.

Paper: Lines 6 and 46
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from craftrl.core.labels import Labels, renamed, tally
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError

__all__ = [
    "ConstantEncoder",
    "CoordinateEncoder",
    "Encoder",
    "FeatureEncoder",
    "ValueEncoder",
    "encode_dataset",
    "named_by_step",
    "named_states",
    "read_states",
]

Ints = NDArray[np.integer]


class Encoder(Protocol):
    """phi'_h: observations (n, *obs) to states (n,)."""

    def __call__(self, x: NDArray[Any]) -> Ints: ...


class FeatureEncoder(ABC):
    """An encoder in two parts: features of the observations, and states read off the features.

    Several encoders may share the first part; whoever has the features of an observation already, from one of them,
    need not compute them again for the others.
    """

    @property
    @abstractmethod
    def trunk(self) -> object:
        """The first part; two encoders with the very same trunk have the same features."""

    @abstractmethod
    def features(self, x: NDArray[Any]) -> NDArray[np.floating]:
        """Features (n, dim) of observations (n, *obs)."""

    @abstractmethod
    def of_features(self, z: NDArray[np.floating]) -> Ints:
        """The states (n,) of observations whose features are known."""

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.of_features(self.features(x)) if len(x) else np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class ConstantEncoder(Savable):
    """Calls everything one state: phi'_1, since every episode starts in the one state 0.

    Paper: Line 6
    """

    state: int = 0

    def __call__(self, x: NDArray[Any]) -> Ints:
        return np.full(len(x), self.state, dtype=np.int64)


class ValueEncoder(ABC):
    """An encoder of a finite class, its values relabelled: value v means state `state_of[v]`."""

    index: int  # its number within Phi_h
    h: int | None  # the step whose class it is from; None where that makes no difference
    state_of: Ints

    @abstractmethod
    def values(self, x: NDArray[Any]) -> Any:
        """Its values (n,) on observations (n, *obs), before they are relabelled."""

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.state_of[_checked_values(self.values(x), len(self.state_of))]


@dataclass(frozen=True)
class CoordinateEncoder(ValueEncoder, Savable):
    """Reads coordinate `feature` of the observation."""

    feature: int
    state_of: Ints

    @property
    def index(self) -> int:  # type: ignore[override]
        return self.feature

    @property
    def h(self) -> None:  # type: ignore[override]
        return None

    def values(self, x: NDArray[Any]) -> Any:
        return np.asarray(x).reshape(len(x), int(np.prod(np.shape(x)[1:])))[:, self.feature]


def _checked_values(values: Any, n_values: int) -> Ints:
    """What an encoder read, if it is among the values that it was trained on."""
    array = np.asarray(values)
    whole = array.dtype.kind in "biu" or np.array_equal(array, np.rint(array))
    if not whole or (array.size and not 0 <= array.min() <= array.max() < n_values):
        given = f"{array.min()}..{array.max()} of dtype {array.dtype}" if array.size else f"dtype {array.dtype}"
        raise InvalidDataError(
            f"An encoder's values must be integers in 0..{n_values - 1}; {given} were given; prepare observations as "
            "those that were fitted."
        )
    return array.astype(np.int64)


def read_states(encoder: Callable[[NDArray[Any]], Ints], tau: TrajectoryDataset, h: int) -> Ints:
    """What an encoder says of every trajectory at step h, block by block; -1 where a trajectory is over."""
    states = np.concatenate([encoder(x) for _, x in tau.blocks(h=h)])
    return np.where(tau.present(h), states, -1)


def encode_dataset(encoders: Collection[Callable[[NDArray[Any]], Ints]], tau: TrajectoryDataset) -> NDArray[np.int64]:
    """The states (n, H) that phi'_1..phi'_H, one per step, read off a dataset; -1 where a trajectory is over."""
    if len(encoders) != tau.H:
        raise InvalidDataError(
            f"Model and data must have the same number of steps; {len(encoders)} and {tau.H} were given."
        )
    states = np.full((tau.n, tau.H), -1)
    for rows, x in tau.blocks():
        for h, phi_h in enumerate(encoders):
            states[rows, h] = phi_h(np.ascontiguousarray(x[:, h]))
    states[np.arange(tau.H) >= tau.lengths[:, None]] = -1
    return states


def named_states(codes: Ints, n_states: Iterable[int]) -> NDArray[np.int64]:
    """Codes (n, H), those that stand for none of the `n_states` found at their step read as the state of most.

    An encoder of a finite class has a value for every observation, also where CRAFT found fewer states than it has
    values. What it reads there was never found: who takes the states at their word takes it for the commonest one.
    """
    return np.stack(named_by_step(list(codes.T), n_states), axis=1)


def named_by_step(codes: Sequence[Labels], n_states: Iterable[int]) -> list[Labels]:
    """The same for the codes of each step by themselves."""
    named: list[Labels] = []
    for code, visits, n in zip(codes, map(tally, codes), n_states):
        commonest = int(visits[:n].argmax()) if n and len(visits) else 0
        own = np.arange(len(visits))
        named.append(code if len(visits) <= n else renamed(code, np.where(own < n, own, commonest)))
    return named
