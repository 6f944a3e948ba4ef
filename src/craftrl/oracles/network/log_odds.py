"""f_1..f_{H-1} of a pair network with its calibration, for trajectories that were not fitted.

Paper: Line 10
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.core.saved import Savable
from craftrl.oracles.network.frames import to_input
from craftrl.oracles.network.networks import PairNetwork
from craftrl.oracles.network.parts import at_once
from craftrl.oracles.network.settings import Training

__all__ = ["NetworkLogOdds"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
PAIRS = 1024  # pairs joined at once


class NetworkLogOdds(Savable):
    """Agent logits of networks (`PairNetwork.along`), averaged, then scaled and shifted step by step.

    scale, shift  float (H-1,) and (H-1, K): one temperature and K offsets for each step
    not_learned   for each network the trajectories of the data fitted that it did not learn from; () where that is not
                  known, as in models of older versions
    """

    def __init__(
        self,
        networks: Sequence[PairNetwork],
        scale: Floats,
        shift: Floats,
        device: torch.device,
        not_learned: Sequence[Ints] = (),
    ) -> None:
        self.networks = tuple(network.to(device) for network in networks)
        self.scale, self.shift = scale, shift
        self.device = device
        self.not_learned = tuple(np.sort(rows) for rows in not_learned)

    def __call__(self, x: NDArray[Any]) -> Floats:
        return self._calibrated(np.mean([self._logits(network, x) for network in self.networks], axis=0))

    @property
    def unseen(self) -> Ints:
        """The trajectories of the data fitted that at least one network did not learn from."""
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *self.not_learned]))

    def of_unseen(self, x: NDArray[Any], rows: Ints) -> Floats:
        """Log-odds (m, H-1, K-1) of trajectories `rows` of the data fitted, x being what they saw.

        Each value comes from the networks that did not learn from the trajectory; NaN where all did.
        """
        total, answers = np.zeros((len(rows), *self.shift.shape)), np.zeros(len(rows))
        for network, own in zip(self.networks, self.not_learned):
            new = np.isin(rows, own)
            total[new] += self._logits(network, x[new])
            answers += new
        with np.errstate(invalid="ignore"):
            return self._calibrated(total / answers[:, None, None])

    @torch.no_grad()
    def beside(self, x: NDArray[Any], references: NDArray[Any]) -> Floats:
        """Log-odds of every observation beside those of other trajectories, by the best network: (n, H, 2 R (K-1))."""
        network = self.networks[0]
        (n, H), R = x.shape[:2], len(references)
        found = np.zeros((n, H, 2, R, network.n_agents - 1))
        z, z_ref = self._features(network, x[:, 0]), self._features(network, references[:, 0])
        for h in range(H - 1):  # counted from 0; the features of two steps are in memory at a time
            after, after_ref = (self._features(network, part[:, h + 1]) for part in (x, references))
            for r in range(R):
                found[:, h, 0, r] = self._joined(network, z, after_ref[r].expand(n, -1), h)
                found[:, h + 1, 1, r] = self._joined(network, z_ref[r].expand(n, -1), after, h)
            z, z_ref = after, after_ref
        return found.reshape(n, H, -1)

    def _joined(self, network: PairNetwork, z_h: Tensor, z_next: Tensor, step: int) -> Floats:
        """Scaled log-odds (n, K-1) of pairs of features."""
        parts = zip(z_h.split(PAIRS), z_next.split(PAIRS))
        at = torch.full((PAIRS,), step, device=self.device)
        logits = torch.cat([network(a, b, at[: len(a)]).double().cpu() for a, b in parts]).numpy()
        return np.asarray((logits[:, :1] - logits[:, 1:]) * self.scale[step])

    def _features(self, network: PairNetwork, x_h: NDArray[Any]) -> Tensor:
        """The trunk's features (n, dim) of observations (n, *obs)."""
        return torch.cat([network.trunk(part) for part in self._inputs(x_h, at_once(x_h.shape[1:], self.device))])

    @torch.no_grad()
    def _logits(self, network: PairNetwork, x: NDArray[Any]) -> Floats:
        """Agent logits (n, H-1, K) of whole trajectories, not calibrated."""
        size = max(1, at_once(x.shape[2:], self.device) // x.shape[1])
        parts = [network.along(part).double().cpu() for part in self._inputs(x, size)]
        return torch.cat(parts).numpy() if parts else np.empty((0, *self.shift.shape))

    def _inputs(self, x: NDArray[Any], size: int) -> Iterator[Tensor]:
        for i in range(0, len(x), size):
            yield to_input(torch.from_numpy(np.ascontiguousarray(x[i : i + size])).to(self.device))

    def _calibrated(self, logits: Floats) -> Floats:
        logits = logits * self.scale[:, None] + self.shift
        return np.asarray(logits[..., :1] - logits[..., 1:])

    def saved(self) -> dict[str, Any]:
        parts = {"networks": self.networks, "scale": self.scale, "shift": self.shift}
        return {**parts, "not_learned": self.not_learned}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> NetworkLogOdds:
        """On the GPU, if there is one."""
        not_learned = parts.get("not_learned", ())
        return cls(parts["networks"], parts["scale"], parts["shift"], Training().to_device(), not_learned)
