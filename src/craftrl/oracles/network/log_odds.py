"""f_1..f_{H-1} of a pair network with its calibration, for trajectories that were not fitted.

Paper: Line 10
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.core.saved import Savable
from craftrl.oracles.network.frames import to_input
from craftrl.oracles.network.networks import PairNetwork
from craftrl.oracles.network.parts import at_once
from craftrl.oracles.network.training import Training

__all__ = ["NetworkLogOdds"]

Floats = NDArray[np.float64]


class NetworkLogOdds(Savable):
    """Agent logits of networks (`PairNetwork.along`), averaged, then scaled and shifted step by step.

    scale, shift  float (H-1,) and (H-1, K): one temperature and K offsets for each step
    """

    def __init__(self, networks: Sequence[PairNetwork], scale: Floats, shift: Floats, device: torch.device) -> None:
        self.networks = tuple(network.to(device) for network in networks)
        self.scale, self.shift = scale, shift
        self.device = device

    @torch.no_grad()
    def __call__(self, x: NDArray[Any]) -> Floats:
        parts = np.array_split(x, max(1, -(-len(x) * x.shape[1] // at_once(x.shape[2:], self.device))))
        inputs = (to_input(torch.from_numpy(np.ascontiguousarray(part)).to(self.device)) for part in parts)
        logits = torch.cat([self._mean(part) for part in inputs]).numpy()
        logits = logits * self.scale[:, None] + self.shift
        return np.asarray(logits[..., :1] - logits[..., 1:])

    def _mean(self, x: Tensor) -> Tensor:
        return torch.stack([network.along(x).double().cpu() for network in self.networks]).mean(dim=0)

    def saved(self) -> dict[str, Any]:
        return {"networks": self.networks, "scale": self.scale, "shift": self.shift}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> NetworkLogOdds:
        """On the GPU, if there is one."""
        return cls(parts["networks"], parts["scale"], parts["shift"], Training().to_device())
