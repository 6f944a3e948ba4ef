"""Sizes and seeds of worlds, checked where they enter."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from craftrl.arguments import check_number, check_room_in_memory, check_whole, shown
from craftrl.core.grid import check_bound
from craftrl.errors import InvalidParameterError

__all__ = ["check_contrast", "check_recording", "check_seed", "check_sizes"]

MOST = 2**31 - 1
MOST_APART = 100


def check_sizes(least: dict[str, int], **given: Any) -> None:
    """Whole numbers, each of at least what `least` says of it."""
    for name, value in given.items():
        check_whole(name, value, least[name], MOST)


def check_seed(seed: Any) -> None:
    """What NumPy's generators begin with: a whole number, a generator, or None for another result every time."""
    if seed is not None and not isinstance(seed, (np.random.Generator, np.random.SeedSequence)):
        try:
            check_whole("seed", seed)
        except InvalidParameterError as error:
            raise InvalidParameterError(
                f"seed must be an integer of at least 0, a numpy Generator or None; {shown(seed)} was given."
            ) from error


def check_contrast(alpha: Any) -> None:
    """How far apart agents are in log-odds: with 100, one of them never does what the other does."""
    check_bound("alpha", alpha)
    check_number("alpha", alpha, f"a number of at most {MOST_APART}", lambda a: a <= MOST_APART)


def check_recording(n: int, H: int, obs_shape: tuple[int, ...], dtype: Any) -> None:
    """Raise where so many trajectories would not fit into memory."""
    needed = n * H * prod(obs_shape) * np.dtype(dtype).itemsize
    check_room_in_memory(f"{n} trajectories", needed, "collect fewer, or shorter ones")
