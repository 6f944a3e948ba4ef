"""f_1..f_{H-1} of finite classes, for trajectories that were not fitted.

Paper: Line 10
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError

if TYPE_CHECKING:
    from craftrl.oracles.counting import CountingOracle

__all__ = ["FiniteLogOdds"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FiniteLogOdds(Savable):
    """f_h looks up the values of two encoders in a table.

    oracle  the class that the encoders are from
    pairs   the numbers (i, j) of phi_h and phi_{h+1} in it, for each h; i = -1 for the constant encoder
    values  float (H-1, N_s, N_s, K-1): a grid point for each pair of values, which is the log-odds rounded to alpha/4
            and clipped where eta says; for a pair that was never seen, the log-odds of the agents' shares
    """

    oracle: CountingOracle
    pairs: tuple[tuple[int, int], ...]
    values: Floats

    def __call__(self, x: NDArray[Any]) -> Floats:
        found = []
        for h, ((i, j), table) in enumerate(zip(self.pairs, self.values), start=1):
            first = self._read(h, i, x[:, h - 1]) if i >= 0 else np.zeros(len(x), dtype=np.int64)
            found.append(table[first, self._read(h + 1, j, x[:, h])])
        return np.stack(found, axis=1)

    def _read(self, h: int, index: int, x_h: NDArray[Any]) -> Ints:
        return self.oracle.encoder(h, index, np.arange(self.values.shape[1]))(x_h)

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> FiniteLogOdds:
        """With the oracle that was given, for functions that no file holds."""
        from craftrl.oracles.counting import CountingOracle

        oracle = given if isinstance(given, CountingOracle) else parts["oracle"]
        if getattr(oracle, "encoders", ()) is None:
            raise InvalidParameterError(
                "The log-odds of this model read functions, which no file holds; give the oracle that it was fitted "
                "with: craftrl.load(path, oracle=...)."
            )
        return cls(oracle, tuple((int(i), int(j)) for i, j in parts["pairs"]), np.asarray(parts["values"]))
