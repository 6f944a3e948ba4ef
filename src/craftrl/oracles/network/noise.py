"""Noise that is added while training: one generator for each part of a minibatch, whichever thread computes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

__all__ = ["noise_like", "with_own_noise"]


class _Of(threading.local):
    generator: torch.Generator | None = None


_of_this_thread = _Of()


def noise_like(z: Tensor) -> Tensor:
    """Normal noise of the shape of z, from the generator of the part that is computed, else from torch's own."""
    if _of_this_thread.generator is None:
        return torch.randn_like(z)
    return torch.randn(z.shape, generator=_of_this_thread.generator, dtype=z.dtype, device=z.device)


def with_own_noise(parts: Sequence[Callable[[], Tensor]]) -> list[Callable[[], Tensor]]:
    """The same parts, each with a generator of its own, whose seed torch's generator draws here. For a CPU."""

    def noisy(part: Callable[[], Tensor], seed: int) -> Tensor:
        _of_this_thread.generator = torch.Generator().manual_seed(seed)
        try:
            return part()
        finally:
            _of_this_thread.generator = None

    return [partial(noisy, *drawn) for drawn in zip(parts, torch.randint(2**62, (len(parts),)).tolist())]
