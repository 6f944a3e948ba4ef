"""The two finite classes: the coordinates of an observation, which is the paper's, and any list of functions.

Paper: Section 4, Section 2.5 (function approximation), Appendix A
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import shown
from craftrl.core.encoders import CoordinateEncoder, ValueEncoder
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.packing import Share, Words, pack_coordinates, pack_functions
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.counting import CountingOracle

__all__ = ["CoordinateOracle", "FiniteEncoder", "FiniteOracle"]

Ints = NDArray[np.integer]
EncoderFunction = Callable[[NDArray[Any]], Any]


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

    threadsafe = True
    same_at_all_steps = True

    def __init__(self, n_values: int = 2, *, n_threads: int | None = None, ray: str | None = None) -> None:
        self.n_values = n_values
        self.n_threads = n_threads
        self.ray = ray

    def check(self, tau: TrajectoryDataset) -> None:
        super().check(tau)
        if tau.dtype.kind not in "biu":
            raise InvalidDataError(
                f"Coordinates must be integers in 0..{self.n_values - 1}; observations of dtype {tau.dtype} were "
                "given; convert them, use a FiniteOracle with functions that do, or a classifier or network for "
                "features."
            )
        self.check_memory(tau)

    def n_encoders(self, tau: TrajectoryDataset, h: int) -> int:
        return int(np.prod(tau.obs_shape, dtype=np.int64))

    def pack(self, share: Share, h: int) -> Words:
        return pack_coordinates(share, h, int(self.n_values))

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

    threadsafe = False  # the functions are the user's

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

    def check(self, tau: TrajectoryDataset) -> None:
        super().check(tau)
        for h in range(1, tau.H + 1):
            functions = self.Phi(h)
            if not isinstance(functions, (list, tuple)) or not all(map(_is_function, functions)):
                raise InvalidParameterError(
                    f"encoders must be a list of functions, or a function from h to such a list; {shown(functions)} "
                    f"was given for h = {h}."
                )
            if len(functions) == 0:
                raise InvalidParameterError(f"Every step needs at least one encoder; none was given for h = {h}.")
        self.check_memory(tau)

    def n_encoders(self, tau: TrajectoryDataset, h: int) -> int:
        return len(self.Phi(h))

    def pack(self, share: Share, h: int) -> Words:
        return pack_functions(share, h, self.Phi(h), int(self.n_values))

    def encoder(self, h: int, index: int, state_of: Ints) -> FiniteEncoder:
        return FiniteEncoder(self.Phi(h)[index], h, index, state_of)

    def saved(self) -> dict[str, Any]:
        """Without the functions: a model with such an oracle is loaded with it."""
        return {**super().saved(), "encoders": None}


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


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
        if not isinstance(given, FiniteOracle):
            raise InvalidParameterError(
                "The encoders of this model are functions, which no file holds; give the oracle that it was fitted "
                "with: craftrl.load(path, oracle=FiniteOracle(...))."
            )
        functions = given.Phi(parts["h"])
        if not 0 <= parts["index"] < len(functions):
            raise InvalidParameterError(
                f"The oracle given must be the one that was fitted; it has {len(functions)} functions at h = "
                f"{parts['h']}, and the model needs number {parts['index']}."
            )
        return cls(functions[parts["index"]], **parts)
