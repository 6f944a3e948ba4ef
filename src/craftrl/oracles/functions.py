"""Any list of functions as a hypothesis class.

Paper: Section 2.5 (function approximation), Appendix A
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import shown
from craftrl.core.encoders import ValueEncoder
from craftrl.core.saved import Savable
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.counting import TILE_BYTES
from craftrl.engine.packing import PackedStep, pack_functions
from craftrl.errors import InvalidParameterError
from craftrl.oracles.counting import CountingOracle

Ints = NDArray[np.integer]
EncoderFunction = Callable[[NDArray[Any]], Any]

__all__ = ["FiniteEncoder", "FiniteOracle"]


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


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


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
    device, n_threads, tile_bytes
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
        device: str = "cpu",
        n_threads: int | None = None,
        tile_bytes: int = TILE_BYTES,
    ) -> None:
        self.encoders = encoders
        self.n_values = n_values
        self.device = device
        self.n_threads = n_threads
        self.tile_bytes = tile_bytes

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
            self.check_memory(tau, len(functions))

    def evaluate(self, tau: TrajectoryDataset, h: int) -> PackedStep:
        return pack_functions(tau, h, self.Phi(h), self.n_values)

    def encoder(self, h: int, index: int, state_of: Ints) -> FiniteEncoder:
        return FiniteEncoder(self.Phi(h)[index], h, index, state_of)

    def saved(self) -> dict[str, Any]:
        """Without the functions: a model with such an oracle is loaded with it."""
        return {**super().saved(), "encoders": None}
