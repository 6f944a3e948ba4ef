"""Finite hypothesis classes: the coordinates of an observation, and any list of functions.

Paper: Section 2.5 (function approximation), Section 4, Appendix A
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.counting import TILE_BYTES
from craftrl.engine.engine import Engine
from craftrl.engine.packing import PackedStep, pack_coordinates, pack_functions
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.finite import FiniteClassOracle

Ints = NDArray[np.integer]
EncoderFunction = Callable[[NDArray[Any]], Any]

__all__ = ["CoordinateEncoder", "CoordinateOracle", "FiniteEncoder", "FiniteOracle"]


@dataclass(frozen=True)
class FiniteEncoder:
    """One function of the class with its values relabelled: value v means state `state_of[v]`."""

    function: EncoderFunction
    index: int
    state_of: Ints

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.state_of[_checked_values(self.function(x), len(self.state_of))]


@dataclass(frozen=True)
class CoordinateEncoder:
    """Reads one coordinate of the observation: `feature` is its index."""

    feature: int
    state_of: Ints

    def __call__(self, x: NDArray[Any]) -> Ints:
        flat = np.asarray(x).reshape(len(x), int(np.prod(np.shape(x)[1:])))
        return self.state_of[_checked_values(flat[:, self.feature], len(self.state_of))]


class CoordinateOracle(FiniteClassOracle):
    """Phi_h = {x -> x_i | i in [M]}, each coordinate with both labellings: the paper's class.

    Observations must be 0/1, or integers in 0..N_s-1; arrays of any shape are read as flat. `device`, `n_threads`
    and `tile_bytes` say where to count and with how much (`craftrl.engine.Engine`).

    Paper: Section 4
    """

    threadsafe = True

    def __init__(
        self,
        N_s: int = 2,
        *,
        device: str = "cpu",
        n_threads: int | None = None,
        tile_bytes: int = TILE_BYTES,
    ) -> None:
        self.N_s = _checked_N_s(N_s)
        self.engine = Engine(device, n_threads, tile_bytes)

    def check(self, tau: TrajectoryDataset) -> None:
        if tau.dtype.kind not in "biu":
            raise InvalidDataError(
                f"Coordinates must be integers in 0..{self.N_s - 1}; observations of dtype {tau.dtype} were given; "
                "convert them, or use a FiniteOracle with functions that do."
            )

    def evaluate(self, tau: TrajectoryDataset, h: int) -> PackedStep:
        return pack_coordinates(tau, h, self.N_s)

    def encoder(self, h: int, index: int, state_of: Ints) -> CoordinateEncoder:
        return CoordinateEncoder(index, state_of)


class FiniteOracle(FiniteClassOracle):
    """Any finite class: a list of functions from observations (n, *obs) to values (n,) in 0..N_s-1.

    `encoders` is one list for all steps, or a function from h to the list of that step. Relabellings need not be
    listed: every encoder is tried with all of them. Each function is called once on every block of observations.
    `device`, `n_threads` and `tile_bytes` say where to count and with how much (`craftrl.engine.Engine`).

    Paper: Section 2.5 (function approximation), Appendix A
    """

    threadsafe = False  # the functions are the user's

    def __init__(
        self,
        encoders: Sequence[EncoderFunction] | Callable[[int], Sequence[EncoderFunction]],
        N_s: int = 2,
        *,
        device: str = "cpu",
        n_threads: int | None = None,
        tile_bytes: int = TILE_BYTES,
    ) -> None:
        self.N_s = _checked_N_s(N_s)
        self.engine = Engine(device, n_threads, tile_bytes)
        self.encoders = encoders

    def Phi(self, h: int) -> Sequence[EncoderFunction]:
        """The functions of step h."""
        return self.encoders(h) if callable(self.encoders) else self.encoders

    def check(self, tau: TrajectoryDataset) -> None:
        for h in range(1, tau.H + 1):
            if len(self.Phi(h)) == 0:
                raise InvalidParameterError(f"Every step needs at least one encoder; none was given for h = {h}.")

    def evaluate(self, tau: TrajectoryDataset, h: int) -> PackedStep:
        return pack_functions(tau, h, self.Phi(h), self.N_s)

    def encoder(self, h: int, index: int, state_of: Ints) -> FiniteEncoder:
        return FiniteEncoder(self.Phi(h)[index], index, state_of)


def _checked_N_s(N_s: int) -> int:
    if not (isinstance(N_s, (int, np.integer)) and N_s >= 2):
        raise InvalidParameterError(
            f"N_s must be an integer of at least 2; N_s = {N_s} was given; it is the most states at any step."
        )
    return int(N_s)


def _checked_values(values: Any, N_s: int) -> Ints:
    """What an encoder read, if it is among the values that it was trained on."""
    array = np.asarray(values)
    whole = array.dtype.kind in "biu" or np.array_equal(array, np.rint(array))
    if not whole or (array.size and not 0 <= array.min() <= array.max() < N_s):
        given = f"{array.min()}..{array.max()} of dtype {array.dtype}" if array.size else f"dtype {array.dtype}"
        raise InvalidDataError(
            f"An encoder's values must be integers in 0..{N_s - 1}; {given} were given; prepare observations as those "
            "that were fitted."
        )
    return array.astype(np.int64)
