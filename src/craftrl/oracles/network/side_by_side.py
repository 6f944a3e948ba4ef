"""The parts of a minibatch side by side on the cores of a CPU, with one result whatever their number.

torch divides single operations between threads, which wait for one another at the end of each: with small networks two
are slower than one. A part of a minibatch is one thread's, forward and backward, and they wait once a minibatch.

The parts are the same on one core and on many, each draws its noise from a generator of its own, and what comes of them
is added up in their order. So the weights are the same to the last bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from craftrl.engine.threads import ordered_map, usable_threads

__all__ = ["Map", "cores_for", "gradients", "noise_like", "read_each", "side_by_side", "with_own_noise"]

Map = Callable[..., Iterable[Any]]  # as `map` is: results in the order of what they are made of
MOST = 8  # threads: each takes some 150 MB, and a minibatch has few parts


class _Noise(threading.local):
    generator: torch.Generator | None = None


_noise = _Noise()


def cores_for(training: Any, device: torch.device, *modules: nn.Module) -> int:
    """How many threads compute parts of what these modules do.

    One on a GPU; one where torch has threads of its own (`Training(threads=...)`); and one with a trunk of the user's,
    which may draw noise, or keep something from one call to the next.
    """
    ours = not any(getattr(layer, "users_own", False) for module in modules for layer in module.modules())
    return min(usable_threads(), MOST) if device.type == "cpu" and training.threads == 1 and ours else 1


@contextmanager
def side_by_side(n_threads: int) -> Iterator[Map]:
    """A `map` on so many threads."""
    if n_threads == 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


def gradients(parts: Sequence[Callable[[], Tensor]], parameters: Sequence[nn.Parameter], map_: Map) -> None:
    """Add the gradients of all parts to those of the parameters."""

    def of_one(part: Callable[[], Tensor]) -> Sequence[Tensor | None]:
        return torch.autograd.grad(part(), parameters, allow_unused=True)

    for found in map_(of_one, parts):
        for parameter, gradient in zip(parameters, found):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


def read_each(function: Callable[[Tensor], Tensor], inputs: Iterable[Tensor], n_threads: int) -> list[Tensor]:
    """What a function without gradients makes of each input, few of them in memory at a time."""
    return list(ordered_map(torch.no_grad()(function), inputs, n_threads))


def with_own_noise(parts: Sequence[Callable[[], Tensor]]) -> list[Callable[[], Tensor]]:
    """The same parts, each with a generator of its own for noise, whose seed torch's generator draws here."""

    def noisy(part: Callable[[], Tensor], seed: int) -> Tensor:
        _noise.generator = torch.Generator().manual_seed(seed)
        try:
            return part()
        finally:
            _noise.generator = None

    return [partial(noisy, *drawn) for drawn in zip(parts, torch.randint(2**62, (len(parts),)).tolist())]


def noise_like(z: Tensor) -> Tensor:
    """Normal noise of the shape of z, from the generator of this thread's part where there is one."""
    if _noise.generator is None:
        return torch.randn_like(z)
    return torch.randn(z.shape, generator=_noise.generator, dtype=z.dtype, device=z.device)
