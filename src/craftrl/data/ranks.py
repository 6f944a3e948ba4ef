"""Several processes that run one program on one fit: which of them speaks and writes, and how they stay of one mind.

Such a process is a *rank*. All ranks are given the same data and settings and take the same decisions; the first one
(rank 0) prints, warns and writes for all. One process alone is the first of one, and nothing here costs it anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from craftrl.arguments import check_function, check_kind
from craftrl.errors import CraftError

__all__ = ["ALONE", "RankError", "Ranks", "alone", "digest", "join", "present", "speaks"]

Value = TypeVar("Value")


class RankError(CraftError, RuntimeError):
    """Ranks that should do the same have come apart."""


class Ranks:
    """The ranks of one fit, as seen by one of them. This class is one process alone; others exchange values.

    rank   which one this process is, from 0
    world  how many there are
    """

    rank = 0
    world = 1

    def every(self, value: Value) -> list[Value]:
        """The value that each rank has, in their order, on all of them; for small values."""
        return [value]

    def of_first(self, value: Value) -> Value:
        """The value that rank 0 has, on all ranks."""
        return value

    def from_first(self, function: Callable[[], Value]) -> Value:
        """What the function gives on rank 0, on all ranks; it is called there alone. Its error is raised on all."""
        check_function("function", function, "a function without arguments")
        if self.world == 1:
            return function()
        value: Any = None
        failed: Exception | None = None
        if self.rank == 0:
            try:
                value = function()
            except Exception as error:
                failed = error
        told = failed if failed is None or isinstance(failed, CraftError) else RankError(f"Rank 0 failed: {failed}")
        value, told = self.of_first((value, told))
        if failed is not None or told is not None:
            raise failed or told  # type: ignore[misc]
        return value

    def agree(self, what: str, *values: Any) -> None:
        """Raise on all ranks unless all of them have the same values: arrays and whatever has a plain text."""
        if self.world == 1:
            return
        found = self.every((what, digest(*values)))
        if differ := [rank for rank, other in enumerate(found) if other != found[0]]:
            raise RankError(
                f"All ranks must have the same {found[0][0]}; rank {differ[0]} differs from rank 0; give all of them "
                "the same data, program and settings, on machines of one kind."
            )


ALONE = Ranks()
_present: Ranks = ALONE


def present() -> Ranks:
    """The ranks that this process works with now."""
    return _present


def speaks() -> bool:
    """Whether this process prints, warns and writes."""
    return _present.rank == 0


def join(ranks: Ranks) -> None:
    """From now on this process is one of these."""
    check_kind("ranks", ranks, Ranks, "the ranks of a fit")
    global _present
    _present = ranks


@contextmanager
def alone() -> Iterator[None]:
    """Within the block this process works for itself, whichever rank it is: ranks may fit different data here."""
    before = _present
    join(_Apart())
    try:
        yield
    finally:
        join(before)


class _Apart(Ranks):
    """One process that does not want to be of several."""


def wants_to_be_alone() -> bool:
    """Whether we are in a block of `alone`."""
    return isinstance(_present, _Apart)


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
