"""Few threads for small networks: workers of a study keep to one each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

__all__ = ["cpu_threads"]


@contextlib.contextmanager
def cpu_threads(n: int) -> Iterator[None]:
    """Keep torch to n CPU threads in here; work on a GPU is not concerned."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
