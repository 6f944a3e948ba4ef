"""What methods of a world are given: each world has states, noise and observations of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["OF_WORLD"]

N, STEP = 5, 2


def rng(world: Any) -> np.random.Generator:
    return np.random.default_rng(0)


def noise(world: Any) -> Any:
    return world.step_noise(world.sample_noise(N, rng(world)), 1, rng(world))


def seen(world: Any) -> Any:
    """Observations of states 0 at the second step."""
    return world.emit(np.zeros(N, dtype=np.int64), noise(world), STEP, rng(world))


# By parameter, or by method and parameter where the same name means another thing there.
OF_WORLD: dict[str | tuple[str, str], Callable[[Any], Any]] = {
    "h": lambda world: STEP,
    "n": lambda world: N,
    "rng": rng,
    "s_h": lambda world: np.zeros(N, dtype=np.int64),
    "a_h": lambda world: np.zeros(N, dtype=np.int64),
    "e_h": noise,
    "x_h": seen,
    ("render", "x_h"): lambda world: seen(world)[0],
    "figure": lambda world: 0,
    "stay": lambda world: 0.7,
}
