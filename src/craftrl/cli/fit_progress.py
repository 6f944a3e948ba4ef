"""How far `craftrl fit` is, on one line: which run of CRAFT, which step, what is learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from craftrl.data.ranks import speaks
from craftrl.progress import shown as shown_here

__all__ = ["shown"]


@contextmanager
def shown(H: int) -> Iterator[None]:
    """A bar over the steps of the present run; where several processes fit together, one of them shows it."""
    if not speaks():
        yield
        return
    with shown_here(H):
        yield
