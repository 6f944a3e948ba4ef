"""phi'_h: what an encoder is, and what some of them can do beside encoding.

Any callable from observations to states is an encoder. One that is a `Savable` can be written to a file.

Paper: Lines 6 and 46
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from craftrl.arrays import Ints, Observations
from craftrl.core.labels import n_labels, renamed, tally
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError


class Encoder(Protocol):
    """phi'_h: observations (n, *obs) to states (n,)."""

    def __call__(self, x: Observations) -> Ints: ...


@dataclass(frozen=True)
class ConstantEncoder(Savable):
    """Calls everything one state: phi'_1, since every episode starts in the one state 0.

    Paper: Line 6
    """

    state: int = 0

    def __call__(self, x: Observations) -> Ints:
        return np.full(len(x), self.state, dtype=np.int64)


@dataclass(frozen=True)
class MergedEncoder(Savable):
    """An encoder some of whose states are one: its state s is `state_of[s]`."""

    encoder: Encoder
    state_of: Ints

    def __call__(self, x: Observations) -> Ints:
        return self.state_of[self.encoder(x)]

    def __getattr__(self, name: str) -> Any:
        """What else the encoder can do, or has, such as `embed`."""
        if name.startswith("_") or name == "encoder":  # as copies and pickles ask for
            raise AttributeError(name)
        return getattr(self.encoder, name)


class ValueEncoder(ABC):
    """An encoder of a finite class, its values relabelled: value v means state `state_of[v]`."""

    index: int  # its number within Phi_h
    h: int | None  # the step whose class it is from; None where that makes no difference
    state_of: Ints

    @abstractmethod
    def values(self, x: Observations) -> ArrayLike:
        """Its values (n,) on observations (n, *obs), before they are relabelled."""

    def __call__(self, x: Observations) -> Ints:
        values, n_values = np.asarray(self.values(x)), len(self.state_of)
        whole = values.dtype.kind in "biu" or np.array_equal(values, np.rint(values))
        if not whole or (values.size and not 0 <= values.min() <= values.max() < n_values):
            given = f"{values.min()}..{values.max()} of " if values.size else ""
            raise InvalidDataError(
                f"An encoder's values must be integers in 0..{n_values - 1}; {given}dtype {values.dtype} were given; "
                "prepare observations as those that were fitted."
            )
        return self.state_of[values.astype(np.int64)]


@dataclass(frozen=True)
class CoordinateEncoder(ValueEncoder, Savable):
    """Reads coordinate `feature` of the observation."""

    feature: int
    state_of: Ints
    h = None

    @property
    def index(self) -> int:  # type: ignore[override]
        return self.feature

    def values(self, x: Observations) -> Observations:
        return x.reshape(len(x), int(np.prod(x.shape[1:])))[:, self.feature]


def encode_dataset(encoders: Collection[Callable[[Observations], Ints]], tau: TrajectoryDataset) -> Ints:
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


def named_states(codes: Ints, n_states: Iterable[int]) -> Ints:
    """Codes (n, H), those that stand for none of the `n_states` found at their step read as the state of most.

    An encoder of a finite class has a value for every observation, also where CRAFT found fewer states than it has
    values. What it reads there was never found: who takes the states at their word takes it for the commonest one.
    """
    named = []
    for code, n in zip(codes.T, n_states):
        visits, own = tally(code), np.arange(n_labels(code))
        commonest = int(visits[:n].argmax()) if n and len(visits) else 0
        named.append(code if len(visits) <= n else renamed(code, np.where(own < n, own, commonest)))
    return np.stack(named).T
