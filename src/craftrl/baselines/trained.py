"""A rival: a trunk trained with some objective, then k-means on its features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.estimators.base import ByStep, Learner, check_dataset
from craftrl.oracles.network.frames import Frames, to_input
from craftrl.oracles.network.networks import new_trunk
from craftrl.oracles.network.pairs import trajectories
from craftrl.oracles.network.training import Training, seeded, train

__all__ = ["Objective", "Shapes", "TrainedBaseline"]

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]
BATCH = 4096  # observations encoded at once
SAMPLE = 10_000  # trajectories that k-means looks at


@dataclass(frozen=True)
class Shapes:
    """What an objective must know of the data and the trunk."""

    dim: int
    obs_shape: tuple[int, ...]
    H: int
    n_agents: int
    n_actions: int


class Objective(nn.Module, ABC):
    """A training loss on whole trajectories, and whatever heads it needs beside the trunk."""

    def __init__(self, trunk: nn.Module, shapes: Shapes) -> None:
        super().__init__()
        self.trunk = trunk
        self.shapes = shapes

    def features(self, x: Tensor) -> Tensor:
        """The trunk's features (n, H, dim) of trajectories x (n, H, *input)."""
        return self.trunk(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    @abstractmethod
    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        """Mean loss of trajectories x (n, H, *input) by agents (n,) with actions (n, H-1), 0 if not given."""


class TrainedBaseline(Learner):
    """Same `fit` and `encode` as CRAFT; states are k-means clusters of the trunk's features at each step.

    Parameters
    ----------
    n_states
        The true number of states at each step h = 1..H.
    trunk, dim, training
        As for `NeuralOracle`.
    standardise
        Whether features are scaled to unit variance before clustering.
    """

    objective: type[Objective]
    needs_actions = False

    def __init__(
        self,
        n_states: Sequence[int],
        *,
        trunk: nn.Module | None = None,
        dim: int = 128,
        training: Training | None = None,
        standardise: bool = False,
    ) -> None:
        self.n_states = n_states
        self.trunk = trunk
        self.dim = dim
        self.training = training
        self.standardise = standardise

    def fit(self, tau: TrajectoryDataset, actions: Ints | None = None) -> TrainedBaseline:
        """Train the trunk, then cluster each step. `actions` (n, H-1) are for rivals that need them."""
        check_dataset(tau)
        if len(self.n_states) != tau.H:
            raise InvalidParameterError(
                f"n_states must give one number per step; {len(self.n_states)} were given for {tau.H} steps."
            )
        if not tau.all_present:
            raise InvalidDataError("The rivals need trajectories of equal length; cut them to the shortest.")
        if self.needs_actions and actions is None:
            raise InvalidParameterError(f"{type(self).__name__} learns from actions; give fit(tau, actions).")
        training = self.training or Training()
        frames = Frames(tau, training.to_device())
        self.network_ = self._train(frames, actions, training)
        self.obs_shape_ = tau.obs_shape
        self.device_ = frames.device
        return self.cluster(tau)

    def cluster(self, tau: TrajectoryDataset) -> TrainedBaseline:
        """The second part of `fit` alone: k-means at each step."""
        rows = np.sort(np.random.default_rng(0).permutation(tau.n)[:SAMPLE])
        encoders = [
            _Centres.fit(self.features, tau.at(h)[rows], k, self.standardise) for h, k in enumerate(self.n_states, 1)
        ]
        self.encoders_ = ByStep(encoders)
        return self

    @torch.no_grad()
    def features(self, x: NDArray[Any]) -> Floats:
        """The trunk's features (n, dim) of observations (n, *obs)."""
        parts = np.array_split(x, max(1, -(-len(x) // BATCH)))
        inputs = (to_input(torch.from_numpy(np.ascontiguousarray(part)).to(self.device_)) for part in parts)
        return torch.cat([self.network_.trunk(part).float().cpu() for part in inputs]).numpy()

    def _train(self, frames: Frames, actions: Ints | None, training: Training) -> Objective:
        tau, name = frames.tau, type(self).__name__
        given = np.zeros((tau.n, tau.H - 1), dtype=np.int64) if actions is None else np.asarray(actions)
        agent, action = (torch.from_numpy(a).to(frames.device) for a in (tau.agent, given))
        with seeded(training, name):
            trunk, dim = new_trunk(self.trunk, tau.obs_shape, self.dim)
            network = self.objective(trunk, Shapes(dim, tau.obs_shape, tau.H, tau.K, int(given.max()) + 1))

        def loss(rows: Tensor) -> Tensor:
            return network.loss(trajectories(frames, rows), agent[rows], action[rows])

        train(network, loss, training.split(tau.n, name), training, name, per_row=tau.H)
        return network


class _Centres:
    """An encoder: the nearest of k centres in feature space."""

    def __init__(self, features: Any, scale: Floats, centres: Floats) -> None:
        self.features = features
        self.scale = scale
        self.centres = centres

    @classmethod
    def fit(cls, features: Any, x: NDArray[Any], k: int, standardise: bool) -> _Centres:
        cluster = require("sklearn.cluster", "sklearn")
        z = features(x).astype(np.float64)
        scale = 1 / np.maximum(z.std(axis=0), 1e-6) if standardise else np.ones(z.shape[1])
        means = cluster.KMeans(k, n_init=4, random_state=0).fit(z * scale)
        return cls(features, scale, means.cluster_centers_)

    def __call__(self, x: NDArray[Any]) -> Ints:
        z = self.features(x) * self.scale
        distance = (self.centres**2).sum(axis=1) - 2 * z @ self.centres.T
        return distance.argmin(axis=1)
