"""Small classifiers on the trunk's features, for separation and encoding.

Paper: Lines 25 and 46
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from craftrl.oracles.network.frames import to_input
from craftrl.oracles.network.training import Training, seeded, train

__all__ = ["NetworkEncoder", "cross_fitted", "fit_head"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
BATCH = 4096  # observations encoded at once


def fit_head(z: Tensor, label: Ints, n_classes: int, training: Training, name: str) -> tuple[nn.Module, Ints]:
    """A classifier of features z (m, dim), and the rows that were held out for its early stopping."""
    with seeded(training, name):
        head = nn.Sequential(nn.LayerNorm(z.shape[1]), nn.Linear(z.shape[1], 128), nn.ReLU(), nn.Linear(128, n_classes))
    target = torch.from_numpy(label.astype(np.int64)).to(z.device)
    rows = training.split(len(z), name)

    def loss(index: Tensor) -> Tensor:
        return functional.cross_entropy(head(z[index]).float(), target[index])

    train(head, loss, rows, training, name)
    return head, rows[1]


@torch.no_grad()
def head_logits(head: nn.Module, z: Tensor) -> Floats:
    return torch.cat([head(part).double().cpu() for part in z.split(65536)]).numpy()


def cross_fitted(z: Tensor, label: Ints, n_classes: int, training: Training, name: str, folds: int = 2) -> Floats:
    """Class logits (m, n_classes) of every row, each from a head that did not see it."""
    fold_of = training.rng("folds", name).permutation(len(z)) % folds
    logits = np.empty((len(z), n_classes))
    for fold in range(folds):
        seen, own = (torch.from_numpy(np.flatnonzero(m)).to(z.device) for m in (fold_of != fold, fold_of == fold))
        head, _ = fit_head(z[seen], label[fold_of != fold], n_classes, training, f"{name}-{fold + 1}-of-{folds}")
        logits[fold_of == fold] = head_logits(head, z[own])
    return logits


class NetworkEncoder:
    """phi'_h: the most likely class of a trunk with a head, on arrays of observations."""

    def __init__(self, trunk: nn.Module, head: nn.Module, device: torch.device) -> None:
        self.trunk = trunk
        self.head = head
        self.device = device

    @torch.no_grad()
    def logits(self, x: NDArray[Any]) -> Floats:
        """Class logits (n, n_classes) of observations (n, *obs)."""
        parts = np.array_split(x, max(1, -(-len(x) // BATCH)))
        return torch.cat([self.head(self.trunk(self._input(part))).double().cpu() for part in parts]).numpy()

    @torch.no_grad()
    def features(self, x: NDArray[Any]) -> Floats:
        """The trunk's features (n, dim) of observations (n, *obs)."""
        parts = np.array_split(x, max(1, -(-len(x) // BATCH)))
        return torch.cat([self.trunk(self._input(part)).float().cpu() for part in parts]).numpy()

    @torch.no_grad()
    def of_features(self, z: Floats) -> Ints:
        """The states of observations whose features are known already."""
        return self.head(torch.from_numpy(z).to(self.device)).argmax(dim=1).cpu().numpy()

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.logits(x).argmax(axis=1) if len(x) else np.empty(0, dtype=np.int64)

    def _input(self, x: NDArray[Any]) -> Tensor:
        return to_input(torch.from_numpy(np.ascontiguousarray(x)).to(self.device))
