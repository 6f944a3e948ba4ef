"""NeuralOracle: the three training problems answered by networks, for images and for feature vectors.

Paper: Lines 10, 25 and 46, with networks in place of finite classes
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.core.grid import Grid
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Coupling, EncoderFit, LogOdds, Oracle, PreparedOracle
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.heads import NetworkEncoder, cross_fitted, fit_head, head_logits
from craftrl.oracles.network.pairs import PairFit, fit_pairs
from craftrl.oracles.network.training import Training
from craftrl.oracles.probabilities import ClassifierSeparation, check_independent, to_bins

__all__ = ["NeuralOracle"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NeuralOracle(Oracle):
    """Networks as the hypothesis class: one trunk for all steps, and small heads on its features.

    trunk      any `nn.Module` from (n, C, rows, columns), or (n, features), to (n, dim); None for the default
    dim        number of features of the default trunk
    folds      1: one network, early-stopped on held-out trajectories; 2 or more: cross-fitting, so that each
               trajectory's log-odds come from a network that never saw it
    training   epochs, device, seed, checkpoints and so on
    heads      the same for the small classifiers; None takes `training` with a schedule of their own
    """

    trunk: nn.Module | None = None
    dim: int = 128
    folds: int = 1
    training: Training = field(default_factory=Training)
    heads: Training | None = None

    def __post_init__(self) -> None:
        if self.folds < 1 or self.dim < 1:
            raise InvalidParameterError(
                f"folds and dim must be at least 1; folds = {self.folds}, dim = {self.dim} were given."
            )

    def prepare(self, tau: TrajectoryDataset) -> PreparedNetwork:
        return PreparedNetwork(self, tau)


class PreparedNetwork(PreparedOracle):
    """The networks of one fit. They are trained when first needed, and at most once."""

    def __init__(self, oracle: NeuralOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.training = oracle.training
        self.heads = oracle.heads or oracle.training.but(
            epochs=40, patience=8, lr=3e-3, batch=int(np.clip(tau.n // 40, 256, 4096)), checkpoints=None
        )
        self.frames = Frames(tau, self.training.to_device())
        self._pairs: PairFit | None = None
        self._features: dict[int, Tensor] = {}

    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """One network for all steps."""
        check_independent(coupling, "NeuralOracle", "a trunk shared over time couples all steps already")
        pairs = self.pairs()
        bins = to_bins(pairs.logits[..., :1] - pairs.logits[..., 1:], grid)
        bins[self.tau.lengths[:, None] <= np.arange(1, self.tau.H)] = -1
        return LogOdds(bins, pairs.loss, (pairs.network,) * (self.tau.H - 1))

    def separation(self, h: int, cluster: Ints, n_clusters: int) -> ClassifierSeparation:
        chosen = (cluster >= 0) & self.tau.present(h)
        label = cluster[chosen]
        if n_clusters < 2:
            return ClassifierSeparation(np.zeros((len(label), n_clusters)), label, n_clusters)
        logits = cross_fitted(self.features(h)[chosen], label, n_clusters, self.heads, f"separation-h{h}")
        return ClassifierSeparation(logits, label, n_clusters)

    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        chosen = (label >= 0) & self.tau.present(h)
        z, target = self.features(h)[chosen], label[chosen]
        if n_states == 0 or not len(target):
            head: nn.Module = nn.Linear(self.features(h).shape[1], 1).to(self.frames.device)
            return EncoderFit(self._encoder(head), 0.0)
        head, held = fit_head(z, target, n_states, self.heads, f"encoder-h{h}")
        wrong = head_logits(head, z[torch.from_numpy(held).to(z.device)]).argmax(axis=1) != target[held]
        rates = [wrong[target[held] == s].mean() for s in range(n_states) if (target[held] == s).any()]
        return EncoderFit(self._encoder(head), float(np.sum(rates)))

    def pairs(self) -> PairFit:
        """The network of Line 10, trained once."""
        if self._pairs is None:
            o = self.oracle
            self._pairs = fit_pairs(self.frames, o.trunk, o.dim, o.folds, self.training)
        return self._pairs

    def features(self, h: int) -> Tensor:
        """The trunk's features of all observations at h, shape (n, dim)."""
        if h not in self._features:
            trunk = self.pairs().network.trunk
            rows = torch.arange(self.tau.n).split(4096)
            with torch.no_grad():
                parts = [trunk(self.frames.batch(torch.full_like(r, h - 1), r)).float() for r in rows]
            self._features = {h: torch.cat(parts)}
        return self._features[h]

    def _encoder(self, head: nn.Module) -> NetworkEncoder:
        return NetworkEncoder(self.pairs().network.trunk, head, self.frames.device)
