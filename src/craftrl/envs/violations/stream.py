"""Where what is random about a violation comes from."""

from __future__ import annotations

import numpy as np

from craftrl.errors import InvalidParameterError

__all__ = ["STREAM", "Seed", "stream"]

Seed = int | np.random.SeedSequence

STREAM = 1_000_003  # the violation's child of the seed, far from those that `collect` spawns


def stream(size: float, seed: Seed) -> np.random.Generator:
    """The violation's own random numbers, apart from those of the collection with the same seed."""
    if not 0 <= size <= 1:
        raise InvalidParameterError(f"The size of a violation must lie in [0, 1]; size = {size} was given.")
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, STREAM)))
