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

from craftrl.core.encoders import FeatureEncoder
from craftrl.core.saved import Savable
from craftrl.oracles.network.frames import to_input
from craftrl.oracles.network.networks import Head, SavableModule
from craftrl.oracles.network.training import Training, seeded, train

__all__ = ["NetworkEncoder", "TrunkEncoder", "cross_fitted", "fit_head"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
BATCH = 4096  # observations encoded at once


def fit_head(z: Tensor, label: Ints, n_classes: int, training: Training, name: str) -> tuple[Head, Ints]:
    """A classifier of features z (m, dim), and the rows that were held out for its early stopping."""
    with seeded(training, name):
        head = Head(z.shape[1], n_classes, normalise=True)
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


class TrunkEncoder(FeatureEncoder, Savable):
    """An encoder that reads states off the features of a network's trunk."""

    def __init__(self, trunk: SavableModule, device: torch.device) -> None:
        self._trunk = trunk.to(device)
        self.device = device

    @property
    def trunk(self) -> SavableModule:
        return self._trunk

    def features(self, x: NDArray[Any]) -> NDArray[np.floating]:
        return self.features_of(self.trunk, self.device, x)

    @staticmethod
    @torch.no_grad()
    def features_of(trunk: SavableModule, device: torch.device, x: NDArray[Any]) -> NDArray[np.floating]:
        """The trunk's features (n, dim) of observations (n, *obs), some thousands at a time."""
        parts = np.array_split(x, max(1, -(-len(x) // BATCH)))
        inputs = (to_input(torch.from_numpy(np.ascontiguousarray(part)).to(device)) for part in parts)
        return torch.cat([trunk(part).float().cpu() for part in inputs]).numpy()


class NetworkEncoder(TrunkEncoder):
    """phi'_h: the most likely class of a trunk with a head."""

    def __init__(self, trunk: SavableModule, head: Head, device: torch.device) -> None:
        super().__init__(trunk, device)
        self.head = head.to(device)

    def of_features(self, z: NDArray[np.floating]) -> Ints:
        return self.classify(torch.from_numpy(z))

    @torch.no_grad()
    def classify(self, z: Tensor) -> Ints:
        """The states of observations whose features are in a tensor already."""
        return np.concatenate([self.head(part.to(self.device)).argmax(dim=1).cpu().numpy() for part in z.split(65536)])

    def saved(self) -> dict[str, Any]:
        return {"trunk": self.trunk, "head": self.head}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> NetworkEncoder:
        """On the GPU, if there is one."""
        return cls(parts["trunk"], parts["head"], Training().to_device())
