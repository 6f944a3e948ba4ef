"""NeuralOracle: the three training problems answered by networks, for images and for feature vectors.

Paper: Lines 10, 25 and 46, with networks in place of finite classes
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.core.grid import Grid
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidParameterError
from craftrl.oracles.base import Choice, Coupling, Encoder, EncoderFit, LogOdds, Oracle, PreparedOracle
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.heads import NetworkEncoder, cross_fitted, fit_head, head_logits
from craftrl.oracles.network.log_odds import NetworkLogOdds
from craftrl.oracles.network.networks import Head
from craftrl.oracles.network.pairs import PairFit, fit_pairs
from craftrl.oracles.network.shared import fit_shared
from craftrl.oracles.network.threads import with_own_threads
from craftrl.oracles.network.training import Training
from craftrl.oracles.probabilities import SCATTERED, ClassifierSeparation, check_independent, to_bins

__all__ = ["NeuralOracle"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
FEATURE_BYTES = 2**30  # features of all steps are kept in memory up to this size


class NeuralOracle(Oracle):
    """Networks as the hypothesis class: one trunk for all steps, and small heads on its features.

    Parameters
    ----------
    trunk
        Any `nn.Module` from (n, C, rows, columns), or (n, features), to (n, dim); None for the default. It is copied,
        never trained in place.
    dim
        Number of features of the default trunk.
    folds
        1: one network, early-stopped on held-out trajectories. 2 or more: cross-fitting, so that each trajectory's
        log-odds come from a network that never saw it; takes as many times longer, and helps where data is short.
    training
        Epochs, device, seed, checkpoints and so on; None for `Training()`.
    heads
        The same for the small classifiers; None takes `training` with a schedule of their own.
    shared
        The same for the one encoder of all steps (`CRAFT(stationary=True)`); None takes `training`.
    agent_weight
        Weight of the agents' log-likelihood given the states in the training of that one encoder, beside the
        classification loss.
    """

    def __init__(
        self,
        trunk: nn.Module | None = None,
        dim: int = 128,
        folds: int = 1,
        training: Training | None = None,
        heads: Training | None = None,
        shared: Training | None = None,
        agent_weight: float = 0.0,
    ) -> None:
        self.trunk = trunk
        self.dim = dim
        self.folds = folds
        self.training = training
        self.heads = heads
        self.shared = shared
        self.agent_weight = agent_weight

    def prepare(self, tau: TrajectoryDataset) -> PreparedNetwork:
        self.check()
        return PreparedNetwork(self, tau)

    def suits(self) -> tuple[Choice, ...]:
        return SCATTERED

    def refits(self) -> int:
        return 0  # each would train all networks again

    def check(self) -> None:
        """Raise where a parameter means nothing."""
        for name in ("folds", "dim"):
            value = getattr(self, name)
            if isinstance(value, bool) or not (isinstance(value, (int, np.integer)) and value >= 1):
                raise InvalidParameterError(f"{name} must be an integer of at least 1; {value!r} was given.")
        for name in ("training", "heads", "shared"):
            if not isinstance(getattr(self, name), (Training, type(None))):
                raise InvalidParameterError(f"{name} must be a Training or None; {getattr(self, name)!r} was given.")
        if self.trunk is not None and not isinstance(self.trunk, nn.Module):
            raise InvalidParameterError(f"trunk must be an nn.Module or None; {self.trunk!r} was given.")

    def same_value(self, a: Any, b: Any) -> bool:
        """Modules are equal if they have the same layers and weights."""
        if isinstance(a, nn.Module) and isinstance(b, nn.Module) and a is not b:
            mine, theirs = a.state_dict(), b.state_dict()
            same_layers = repr(a) == repr(b) and mine.keys() == theirs.keys()
            return same_layers and all(torch.equal(mine[name].cpu(), theirs[name].cpu()) for name in mine)
        return super().same_value(a, b)

    def saved(self) -> dict[str, Any]:
        """Without a trunk of the user's own, which no file holds."""
        return {**super().saved(), "trunk": None}


class PreparedNetwork(PreparedOracle):
    """The networks of one fit. They are trained when first needed, and at most once."""

    def __init__(self, oracle: NeuralOracle, tau: TrajectoryDataset) -> None:
        self.oracle = oracle
        self.tau = tau
        self.training = oracle.training or Training()
        self.seed = self.training.seed
        self.heads = oracle.heads or self.training.but(
            epochs=40, patience=8, lr=3e-3, batch=int(np.clip(tau.n // 40, 256, 4096)), checkpoints=None
        )
        self.frames = Frames(tau, self.training.to_device())
        self._pairs: PairFit | None = None
        self._features: dict[int, Tensor] = {}

    @with_own_threads
    def log_odds(self, grid: Grid, coupling: Coupling) -> LogOdds:
        """One network for all steps."""
        check_independent(coupling, "NeuralOracle", "a trunk shared over time couples all steps already")
        pairs = self.pairs()
        bins = to_bins(pairs.logits[..., :1] - pairs.logits[..., 1:], grid)
        bins[self.tau.lengths[:, None] <= np.arange(1, self.tau.H)] = -1
        f = NetworkLogOdds(pairs.network, pairs.scale, pairs.shift, self.frames.device)
        return LogOdds(bins, pairs.loss, chance=pairs.chance, p_value=pairs.p_value, f=f)

    @with_own_threads
    def separation(self, h: int, cluster: Ints, n_clusters: int) -> ClassifierSeparation:
        chosen = (cluster >= 0) & self.tau.present(h)
        label = cluster[chosen]
        if n_clusters < 2:
            return ClassifierSeparation(np.zeros((len(label), n_clusters)), label, n_clusters)
        logits = cross_fitted(self.features(h)[chosen], label, n_clusters, self.heads, f"separation-h{h}")
        return ClassifierSeparation(logits, label, n_clusters)

    @with_own_threads
    def encode(self, h: int, label: Ints, n_states: int) -> EncoderFit:
        chosen = (label >= 0) & self.tau.present(h)
        z, target = self.features(h)[chosen], label[chosen]
        if n_states == 0 or not len(target):
            return EncoderFit(self._encoder(Head(self.features(h).shape[1], 1)), 0.0)
        head, held = fit_head(z, target, n_states, self.heads, f"encoder-h{h}")
        wrong = head_logits(head, z[torch.from_numpy(held).to(z.device)]).argmax(axis=1) != target[held]
        rates = [wrong[target[held] == s].mean() for s in range(n_states) if (target[held] == s).any()]
        return EncoderFit(self._encoder(head), float(np.sum(rates)))

    @with_own_threads
    def pairs(self) -> PairFit:
        """The network of Line 10, trained once."""
        if self._pairs is None:
            o = self.oracle
            self._pairs = fit_pairs(self.frames, o.trunk, o.dim, o.folds, self.training)
        return self._pairs

    @with_own_threads
    def features(self, h: int) -> Tensor:
        """The trunk's features of all observations at h, shape (n, dim); kept for all steps where there is room."""
        if h not in self._features:
            trunk = self.pairs().network.trunk
            rows = torch.arange(self.tau.n).split(4096)
            with torch.no_grad():
                z = torch.cat([trunk(self.frames.batch(torch.full_like(r, h - 1), r)).float() for r in rows])
            if z.nbytes * self.tau.H > FEATURE_BYTES:
                self._features.clear()
            self._features[h] = z
        return self._features[h]

    @with_own_threads
    def read(self, encoder: Encoder, tau: TrajectoryDataset, h: int) -> Ints:
        """From the features in memory, for encoders on this very trunk."""
        if not (isinstance(encoder, NetworkEncoder) and encoder.trunk is self.pairs().network.trunk):
            return super().read(encoder, tau, h)
        return np.where(tau.present(h), encoder.classify(self.features(h)), -1)

    @with_own_threads
    def share(self, labels: Ints, n_states: int, name: str) -> EncoderFit:
        """One network for all steps, begun from the trunk of the log-odds."""
        o = self.oracle
        return fit_shared(
            self.frames,
            labels,
            n_states,
            self.pairs().network.trunk,
            o.shared or self.training,
            agent_weight=o.agent_weight,
            name=name,
        )

    def _encoder(self, head: Head) -> NetworkEncoder:
        return NetworkEncoder(self.pairs().network.trunk, head, self.frames.device)
