"""A running average of a network's weights: steadier than the last ones, at any moment of training."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

__all__ = ["WeightAverage"]

BEGINNING = 10  # at minibatch t the average looks back no further than t / BEGINNING of them or so


class WeightAverage:
    """An exponential average of a module's parameters over its last minibatches."""

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        self.average = [p.detach().clone() for p in self.parameters]
        self.n_updates = 0

    @torch.no_grad()
    def update(self, window: float) -> None:
        """After a minibatch; the average reaches back over about `window` of them, fewer in the beginning."""
        self.n_updates += 1
        decay = min(1 - 1 / max(window, 1), (1 + self.n_updates) / (BEGINNING + self.n_updates))
        get_ema_multi_avg_fn(decay)(self.average, self.parameters, self.n_updates)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """In here the module has the averaged weights."""
        own = [p.detach().clone() for p in self.parameters]
        self._put(self.average)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, values: list[torch.Tensor]) -> None:
        for parameter, value in zip(self.parameters, values):
            parameter.copy_(value)

    def state_dict(self) -> dict[str, Any]:
        return {"average": self.average, "n_updates": self.n_updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.average = [value.clone() for value in state["average"]]
        self.n_updates = state["n_updates"]
