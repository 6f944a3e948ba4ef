"""The parts of a minibatch side by side on the cores of a CPU, with one result whatever their number.

torch divides single operations between threads, which wait for one another at the end of each: with small networks two
are slower than one. A part of a minibatch is one thread's, forward and backward, and they wait once a minibatch.

The parts are the same on one core and on many, each draws its noise from a generator of its own (`noise`), and what
comes of them is added up in their order. So the weights are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from craftrl.engine.threads import ordered_map, usable_threads
from craftrl.oracles.network.process_group import ranks_here
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.trunks import MapTrunk

__all__ = ["Map", "cores_for", "gradients", "may_be_apart", "read_each", "side_by_side"]

Map = Callable[..., Iterable[Any]]  # as `map` is: results in the order of what they are made of
MOST = 8  # threads: each takes some 200 MB, and a minibatch has few parts


def may_be_apart(trunk: nn.Module) -> bool:
    """Whether threads may compute parts of what a trunk does.

    That is known of the library's trunk for images. One of the user's may draw noise of its own, or keep something from
    one call to the next; that for feature vectors is too small for it.
    """
    return type(trunk) is MapTrunk


def cores_for(training: Training, device: torch.device, trunk: nn.Module | None = None) -> int:
    """How many threads there are for parts, of a trunk's work if one is given.

    One on a GPU, where torch has threads of its own (`threads`), and for a trunk that must not be shared.
    """
    if device.type != "cpu" or training.threads != 1 or not (trunk is None or may_be_apart(trunk)):
        return 1
    return min(max(1, usable_threads() // ranks_here()), MOST)


@contextmanager
def side_by_side(n_threads: int) -> Iterator[Map]:
    """A `map` on so many threads."""
    if n_threads == 1:
        yield map
        return
    with ThreadPoolExecutor(n_threads, initializer=_keep_to_torchs_threads) as pool:
        yield pool.map


def gradients(parts: Sequence[Callable[[], Tensor]], parameters: Sequence[nn.Parameter], map_: Map) -> None:
    """Add the gradients of all parts to those of the parameters."""

    def of_one(part: Callable[[], Tensor]) -> Sequence[Tensor | None]:
        return torch.autograd.grad(part(), parameters, allow_unused=True)

    for found in map_(of_one, parts):
        for parameter, gradient in zip(parameters, found):
            if gradient is None:
                continue
            if parameter.grad is None:  # in memory as the parameter is, and its own: torch may give one to two of them
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad += gradient


def read_each(function: Callable[[Tensor], Tensor], inputs: Iterable[Tensor], n_threads: int = 1) -> list[Tensor]:
    """What a function makes of each input, without gradients, few of them in memory at a time."""

    @torch.no_grad()
    def read(x: Tensor) -> Tensor:
        _keep_to_torchs_threads()
        return function(x)

    return list(ordered_map(read, inputs, n_threads))


def _keep_to_torchs_threads() -> None:
    """In a new thread OpenMP knows nothing yet of the number that torch was told; asking for it tells OpenMP."""
    torch.get_num_threads()
