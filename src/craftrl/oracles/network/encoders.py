"""Encoders that read states, or features, off a network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.core.saved import Savable
from craftrl.oracles.network.frames import to_input
from craftrl.oracles.network.networks import Head
from craftrl.oracles.network.parts import at_once
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.side_by_side import read_each
from craftrl.oracles.network.trunks import Trunk

__all__ = ["NetworkEncoder", "TrunkEncoder", "inputs_of"]

Ints = NDArray[np.integer]


def inputs_of(x: NDArray[Any], device: torch.device) -> Iterator[Tensor]:
    """Network inputs for observations (n, *obs), some at a time."""
    for part in np.array_split(x, max(1, -(-len(x) // at_once(x.shape[1:], device)))):
        yield to_input(torch.from_numpy(np.ascontiguousarray(part)).to(device))


class TrunkEncoder(Savable):
    """An encoder that reads states off the features of a network's trunk."""

    def __init__(self, trunk: Trunk, device: torch.device) -> None:
        self._trunk = trunk.to(device)
        self.device = device

    @property
    def trunk(self) -> Trunk:
        return self._trunk

    def features(self, x: NDArray[Any]) -> NDArray[np.floating]:
        return self.features_of(self.trunk, self.device, x)

    @staticmethod
    @torch.no_grad()
    def features_of(trunk: Trunk, device: torch.device, x: NDArray[Any]) -> NDArray[np.floating]:
        """The trunk's features (n, dim) of observations (n, *obs), some at a time."""
        return torch.cat([trunk(part).float().cpu() for part in inputs_of(x, device)]).numpy()


class NetworkEncoder(TrunkEncoder):
    """phi'_h: the most likely class of a trunk with a head."""

    def __init__(self, trunk: Trunk, head: Head, device: torch.device) -> None:
        super().__init__(trunk, device)
        self.head = head.to(device)

    @torch.no_grad()
    def __call__(self, x: NDArray[Any]) -> Ints:
        """States of observations (n, *obs); their features stay on the device."""
        return self.read(inputs_of(x, self.device)) if len(x) else np.empty(0, dtype=np.int64)

    def read(self, inputs: Iterable[Tensor]) -> Ints:
        """States of observations that come as network inputs, some at a time."""
        return torch.cat(self.states(inputs)).cpu().numpy()

    def states(self, inputs: Iterable[Tensor], cores: int = 1) -> list[Tensor]:
        """The same, part by part, on the device, by so many threads."""
        return read_each(lambda part: self.head(self.trunk(part).float()).argmax(dim=1), inputs, cores)

    def of_features(self, z: NDArray[np.floating]) -> Ints:
        """The states of observations whose features are known, from an encoder with the same trunk."""
        return self.classify(torch.from_numpy(z))

    @torch.no_grad()
    def classify(self, z: Tensor) -> Ints:
        """The states of observations whose features are in a tensor already."""
        return np.concatenate(
            [self.head(part.to(self.device).float()).argmax(dim=1).cpu().numpy() for part in z.split(65536)]
        )

    def saved(self) -> dict[str, Any]:
        return {"trunk": self.trunk, "head": self.head}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> NetworkEncoder:
        """On the GPU, if there is one."""
        return cls(parts["trunk"], parts["head"], Training().to_device())
