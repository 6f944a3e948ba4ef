"""How many observations a network takes at once on a CPU, and losses that are computed in parts.

A C library gets large blocks of memory from the system, and gives them back as soon as they are freed. The system hands
memory out page by page, each filled with zeros: with minibatches of 1,000 frames of 54 x 54 pixels that took as long as
all arithmetic. Smaller blocks are kept and used again. And parts of a minibatch are computed side by side where there
are cores for it (`side_by_side`). So on a CPU a minibatch of images is computed in parts, whose gradients are added up;
up to rounding that is the gradient of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["IGNORE", "PARTS", "Part", "at_once", "cross_entropy_parts", "keep_freed_memory", "parts_of"]

Part = Callable[[], Tensor]
IGNORE = -100  # the target of what is not there, left out by torch's cross entropy
ON_GPU = 4096  # observations
PIXELS, LEAST = 600_000, 16  # on a CPU: with 32 features for every four pixels, blocks of 19 MB; and observations
PARTS = 2  # of a minibatch of images on a CPU, at least: with four, one core takes a fifth longer
KEPT = 31 * 2**20  # bytes


def at_once(obs_shape: tuple[int, ...], device: torch.device) -> int:
    """How many observations are encoded at once, where that makes no difference but to the time it takes."""
    if device.type != "cpu" or len(obs_shape) == 1:
        return ON_GPU
    return int(np.clip(PIXELS // (obs_shape[0] * obs_shape[1]), LEAST, ON_GPU))


def parts_of(n_rows: int, H: int, obs_shape: tuple[int, ...], device: torch.device, least: int = 1) -> int:
    """In how many parts a minibatch of so many trajectories is computed: one elsewhere than on a CPU."""
    if device.type != "cpu":
        return 1
    at_most = max(1, at_once(obs_shape, device) // H)
    return min(n_rows, max(least, -(-n_rows // at_most)))


@cache
def keep_freed_memory() -> None:
    """Have blocks of up to 31 MiB kept when they are freed, where the C library is glibc; elsewhere it does nothing.

    The size from which on glibc gives blocks back grows with the blocks that were freed, up to 32 MiB (mallopt(3),
    M_MMAP_THRESHOLD): one such block is freed here.
    """
    torch.empty(KEPT, dtype=torch.uint8)


def cross_entropy_parts(
    logits: Callable[[Tensor], Tensor], x: Tensor, target: Tensor, n_parts: int = 1, among: Tensor | None = None
) -> Sequence[Part]:
    """The mean cross entropy of `logits(x)` (n, ..., classes) and target (n, ...), in so many parts.

    The parts add up to the mean over all targets but IGNORE; each is computed when it is called. Where x is a part of a
    minibatch, `among` are the targets of all of it, over which the mean is taken.
    """
    n_targets = ((target if among is None else among) != IGNORE).sum().clamp_min(1)

    def part(x: Tensor, target: Tensor) -> Tensor:
        found = logits(x).flatten(0, -2).float()
        return functional.cross_entropy(found, target.flatten(), reduction="sum") / n_targets

    return [partial(part, *rows) for rows in zip(x.tensor_split(n_parts), target.tensor_split(n_parts))]
