"""The coordinates of an observation as a hypothesis class: the paper's.

Paper: Section 4
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from craftrl.core.encoders import CoordinateEncoder
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.counting import TILE_BYTES
from craftrl.engine.packing import PackedStep, pack_coordinates
from craftrl.errors import InvalidDataError
from craftrl.oracles.counting import CountingOracle

Ints = NDArray[np.integer]

__all__ = ["CoordinateOracle"]


class CoordinateOracle(CountingOracle):
    """Phi_h = {x -> x_i | i in [M]}, each coordinate with all labellings: the paper's class.

    Observations must be 0/1, or integers in 0..n_values-1; arrays of any shape are read as flat.

    Parameters
    ----------
    n_values
        How many values a coordinate may take: the paper's N_s, the most states at any step. 2 for bits.
    device, n_threads, tile_bytes
        Where to count and with how much: "cpu" or "cuda", at most so many threads (None: all cores), and how much
        memory the counts of a tile of encoders may take. See `craftrl.engine.Engine`.

    Notes
    -----
    Paper: Section 4
    """

    threadsafe = True
    same_at_all_steps = True

    def __init__(
        self,
        n_values: int = 2,
        *,
        device: str = "cpu",
        n_threads: int | None = None,
        tile_bytes: int = TILE_BYTES,
    ) -> None:
        self.n_values = n_values
        self.device = device
        self.n_threads = n_threads
        self.tile_bytes = tile_bytes

    def check(self, tau: TrajectoryDataset) -> None:
        super().check(tau)
        if tau.dtype.kind not in "biu":
            raise InvalidDataError(
                f"Coordinates must be integers in 0..{self.n_values - 1}; observations of dtype {tau.dtype} were "
                "given; convert them, use a FiniteOracle with functions that do, or a classifier or network for "
                "features."
            )
        self.check_memory(tau, int(np.prod(tau.obs_shape, dtype=np.int64)))

    def evaluate(self, tau: TrajectoryDataset, h: int) -> PackedStep:
        return pack_coordinates(tau, h, self.n_values)

    def encoder(self, h: int, index: int, state_of: Ints) -> CoordinateEncoder:
        return CoordinateEncoder(index, state_of)
