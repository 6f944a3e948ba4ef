"""Where work on shards is done: a seam with two sides.

Whoever learns says which function is applied to which values. Whoever carries it out decides where, and keeps what
comes out where it was made. A *handle* stands for such a value: it may be given to further functions, and only small
values are ever asked for.

Functions must be pure: the same arguments give the same value, in whatever process and however often. Then a worker
that dies costs time and nothing else, since its work can be done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np

__all__ = ["Executor", "Handle", "LocalExecutor", "added"]

Handle = Any  # a value that stays with whoever made it; what it is, only the executor knows


class Executor(Protocol):
    """Applies pure functions to values that stay with the workers."""

    @property
    def workers(self) -> int:
        """How many functions can be at work at once."""
        ...

    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        """The handle of function(*args); handles among the arguments stand for their values, but not within them.

        Arguments must not be changed once they are given, neither here nor by the function.
        """
        ...

    def get(self, handles: Sequence[Handle]) -> list[Any]:
        """The values themselves: for small ones, such as sizes."""
        ...

    def total(self, handles: Sequence[Handle]) -> Any:
        """The sum of arrays of integers, or of tuples of such arrays, reduced in a tree; only the sum comes here."""
        ...

    def close(self) -> None:
        """Let go of everything that was kept."""
        ...


def added(*values: Any) -> Any:
    """The sum of arrays of integers of one shape, or of tuples of such arrays, entry by entry."""
    if isinstance(values[0], tuple):
        return tuple(added(*parts) for parts in zip(*values, strict=True))
    return reduce(np.add, values)


@dataclass(frozen=True)
class LocalExecutor:
    """Everything at once, in this process: the reference that others are compared with."""

    workers: int = 1

    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        return function(*args)

    def get(self, handles: Sequence[Handle]) -> list[Any]:
        return list(handles)

    def total(self, handles: Sequence[Handle]) -> Any:
        return added(*handles)

    def close(self) -> None:
        """Nothing is kept."""
