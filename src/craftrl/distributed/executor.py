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

from craftrl.arguments import check_function, check_kind, check_method, check_whole
from craftrl.errors import InvalidParameterError

__all__ = ["Executor", "Handle", "LocalExecutor", "added", "check_executor", "check_handles", "check_submitted"]

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
    """The sum of arrays of integers of one shape, or of tuples of such arrays, entry by entry.

    Nothing else is taken: sums of floats depend on their order, and other shapes would be repeated until they fit.
    """
    if all(isinstance(value, tuple) and len(value) == len(values[0]) for value in values):
        return tuple(added(*parts) for parts in zip(*values))
    if any(isinstance(value, tuple) for value in values):
        raise InvalidParameterError("What is added must be arrays, or tuples of equally many; these differ.")
    try:
        arrays = [value if isinstance(value, (np.ndarray, np.integer)) else np.asarray(value) for value in values]
    except ValueError as error:
        raise InvalidParameterError(f"What is added must be arrays of integers; these are none ({error}).") from error
    if any(array.dtype.kind not in "iu" or array.shape != arrays[0].shape for array in arrays):
        found = ", ".join(sorted({f"{array.dtype} of shape {array.shape}" for array in arrays}))
        raise InvalidParameterError(
            f"What is added must be arrays of integers of one shape, whose sum is the same in any order; {found} were "
            "given."
        )
    return reduce(np.add, arrays)


def check_executor(executor: Any) -> None:
    """Something that applies functions; whether it does it well is for those who use it to find out."""
    for method in ("submit", "get", "total"):
        check_method("executor", executor, method, "an executor, such as LocalExecutor() or RayExecutor()")


def check_submitted(function: Any) -> None:
    check_function("function", function, "a function of the arguments that follow it")


def check_handles(handles: Any, least: int = 0) -> None:
    check_kind("handles", handles, (list, tuple), "a list of what submit returned")
    if len(handles) < least:
        raise InvalidParameterError("There must be handles to add up; none were given.")


@dataclass(frozen=True)
class LocalExecutor:
    """Everything at once, in this process: the reference that others are compared with."""

    workers: int = 1

    def __post_init__(self) -> None:
        check_whole("workers", self.workers, 1)

    def submit(self, function: Callable[..., Any], *args: Any) -> Handle:
        check_submitted(function)
        return function(*args)

    def get(self, handles: Sequence[Handle]) -> list[Any]:
        check_handles(handles)
        return list(handles)

    def total(self, handles: Sequence[Handle]) -> Any:
        check_handles(handles, 1)
        return added(*handles)

    def close(self) -> None:
        """Nothing is kept."""
