"""Several processes that run one program on one fit: which of them prints and writes, and how they stay equal.

Such a process is a *rank* of torch's process group (`craftrl.oracles.network.ranks` joins it). All ranks are given the
same data and settings; the first one (rank 0) prints, warns and writes for all. Without torch there is one process, and
nothing here costs it anything.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from craftrl.errors import CraftError

Value = TypeVar("Value")
LOST = "Another rank has ended or no longer answers"


class RankError(CraftError, RuntimeError):
    """Ranks that should do the same have come apart."""


def here() -> tuple[int, int]:
    """Which rank this process is, from 0, and how many there are; (0, 1) for one process alone."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def is_first_rank() -> bool:
    """Whether this process prints, warns and writes."""
    return here()[0] == 0


@contextmanager
def exchange_errors() -> Iterator[None]:
    """Errors of an exchange between ranks, in one sentence."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, RankError):
            raise
        raise RankError(
            f"{LOST} (this is rank {here()[0]}); look for its message, and start all of them again: "
            "they go on from their checkpoints."
        ) from error


def every(value: Value) -> list[Value]:
    """The value that each rank has, in their order, on all of them; for small values."""
    _, world = here()
    if world == 1:
        return [value]
    found: list[Any] = [None] * world
    with exchange_errors():
        sys.modules["torch.distributed"].all_gather_object(found, value)
    return found


def from_first(function: Callable[[], Value]) -> Value:
    """What the function gives on rank 0, on all ranks; it is called there alone. Its error is raised on all."""
    rank, world = here()
    if world == 1:
        return function()
    found: list[Any] = [None, None]
    failed: Exception | None = None
    if rank == 0:
        try:
            found[0] = function()
        except Exception as error:
            failed = error
            found[1] = error if isinstance(error, CraftError) else RankError(f"Rank 0 failed: {error}")
    with exchange_errors():
        sys.modules["torch.distributed"].broadcast_object_list(found, 0)
    if failed is not None or found[1] is not None:
        raise failed or found[1]
    value: Value = found[0]
    return value


def agree(what: str, *values: Any) -> None:
    """Raise on all ranks unless all of them have the same values: arrays and whatever has a plain text."""
    found = every((what, digest(*values))) if here()[1] > 1 else []
    if differ := [rank for rank, other in enumerate(found) if other != found[0]]:
        raise RankError(
            f"All ranks must have the same {found[0][0]}; rank {differ[0]} differs from rank 0; give all of them the "
            "same data, program and settings, on machines of one kind."
        )


def digest(*values: Any) -> str:
    """A few letters that differ where values do: arrays by their content, all else by its text."""
    found = hashlib.blake2b(digest_size=16)
    for value in values:
        if isinstance(value, np.ndarray):
            found.update(repr((value.shape, value.dtype.str)).encode())
            found.update(np.ascontiguousarray(value).tobytes())
        else:
            found.update(repr(value).encode())
    return found.hexdigest()
