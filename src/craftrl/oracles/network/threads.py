"""Few threads for small networks: two that wait for each other on every small matrix are slower than one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import torch

__all__ = ["cpu_threads", "with_own_threads"]


@contextlib.contextmanager
def cpu_threads(n: int | None) -> Iterator[None]:
    """Keep torch to n CPU threads in here, None for as many as it likes; work on a GPU is not concerned."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if n is None else n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def with_own_threads(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that keeps to the threads of `self.training`."""

    @wraps(method)
    def limited(self: Any, *args: Any, **kwargs: Any) -> Any:
        with cpu_threads(self.training.threads):
            return method(self, *args, **kwargs)

    return limited
