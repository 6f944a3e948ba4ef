"""A rival of CRAFT that trains: a trunk trained with some objective, then k-means on its features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.data.dataset import TrajectoryDataset, as_observations
from craftrl.data.inputs import as_dataset
from craftrl.data.ranks import alone
from craftrl.errors import InvalidDataError, InvalidParameterError, NotFittedError
from craftrl.estimators.base import ByStep, Learner
from craftrl.oracles.network.encoder import inputs_of
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.ranks import check_ranks
from craftrl.oracles.network.settings import Training, seeded
from craftrl.oracles.network.training import minibatch_size, train
from craftrl.oracles.network.trunks import Trunk, new_trunk
from studies.objectives import CLASSES, LatentAction, Objective, Shapes

__all__ = ["NearestCentre", "TrainedBaseline", "trunk_features"]

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]
NOISE = 0.7  # in the inputs of images: more hurts those who must predict them
SAMPLE = 10_000  # trajectories that k-means looks at


class TrainedBaseline(Learner):
    """Same `fit` and `encode` as CRAFT; states are k-means clusters of the trunk's features at each step.

    technique              of `CLASSES`
    n_states               the true number of states at each step h = 1..H
    trunk, dim, training   as for `NeuralOracle`
    standardise            whether features are scaled to unit variance before clustering
    network_               the objective, trained
    held_out_loss_         on the trajectories held out for early stopping: by it settings can be chosen
    chance_                the loss of knowing nothing
    """

    def __init__(
        self,
        technique: str,
        n_states: Sequence[int],
        *,
        trunk: nn.Module | None = None,
        dim: int = 128,
        training: Training | None = None,
        standardise: bool = False,
    ) -> None:
        self.technique = technique
        self.n_states = n_states
        self.trunk = trunk
        self.dim = dim
        self.training = training
        self.standardise = standardise

    def fit(self, x: Any, agent: Any = None, actions: Ints | None = None) -> TrainedBaseline:
        """Train the trunk, then cluster each step. `actions` (n, H-1) are for those that need them."""
        data = as_dataset(x, agent)
        taken = None if actions is None else data.as_grouped(np.asarray(actions))
        return self.train(data.tau, taken).cluster(data.tau)

    def train(self, tau: TrajectoryDataset, actions: Ints | None = None) -> TrainedBaseline:
        """The first part of `fit` alone: the trunk, without states."""
        objective = CLASSES[self.technique]
        if objective.needs_actions and actions is None:
            raise InvalidParameterError(f"{self.technique} learns from actions; give fit(x, agent, actions=...).")
        if not tau.all_present:
            raise InvalidDataError(
                "This baseline needs trajectories of equal length; unequal ones were given; cut them to the shortest."
            )
        training = self.training or Training()
        given = np.zeros((tau.n, tau.H - 1), dtype=np.int64) if actions is None else np.asarray(actions)
        with nullcontext() if objective.divisible else alone():
            check_ranks(tau, training)
            self.network_ = self._train(Frames(tau, training), given, training)
        self.obs_shape_ = tau.obs_shape
        return self

    def _train(self, frames: Frames, actions: Ints, training: Training) -> Objective:
        tau, objective = frames.tau, CLASSES[self.technique]
        name = objective.__name__
        agent, action = (torch.from_numpy(a).to(frames.device) for a in (tau.agent, actions))
        with seeded(training, name):
            noise = NOISE if training.noise is None and len(tau.obs_shape) == 3 else training.noise
            trunk = new_trunk(self.trunk, tau.obs_shape, self.dim, noise, maps=False)
            network = objective(trunk, Shapes(trunk.dim, tau.obs_shape, tau.H, tau.K, int(actions.max()) + 1))
        network.fit_input(frames.sample())
        self.chance_ = network.chance(tau.agent, actions)

        def loss(network: Objective, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            rows, x = batch
            count = torch.tensor(float(len(rows)))
            return network.loss(x, agent[rows], action[rows]) * len(rows), count

        def batches(chunks: Sequence[Ints], learned: bool) -> Iterator[tuple[Tensor, Tensor] | None]:
            return (batch if len(batch[0]) else None for batch in frames.batches(chunks, None, learned))

        rows = tau.hold_out(training.held_out, training.rng(name))
        size = minibatch_size(training, len(rows[0]), tau.H)
        self.held_out_loss_ = train(network, loss, batches, rows, size, training, name, self.chance_, tau.digest)
        return network

    def cluster(self, tau: TrajectoryDataset) -> TrainedBaseline:
        """The second part of `fit` alone: k-means at each step."""
        if not hasattr(self, "network_"):
            raise NotFittedError("A rival must be trained first; call train(tau).")
        rows = np.sort(np.random.default_rng(0).permutation(tau.n)[:SAMPLE])
        trunk, device = self.network_.trunk, (self.training or Training()).to_device()
        self.encoders_ = ByStep(
            [
                NearestCentre.fitted(trunk, device, tau.at(h, rows), k, self.standardise)
                for h, k in enumerate(self.n_states, start=1)
            ]
        )
        return self

    def features(self, x: NDArray[Any]) -> Floats:
        """The trunk's features (n, dim) of observations (n, *obs), the same for every step."""
        self._check_fitted()
        first = self.encoders_[1]
        assert isinstance(first, NearestCentre)
        return first.features(self._as_fitted(as_observations(x, "x")))

    @torch.no_grad()
    def latents(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """The codes that the inverse model names for trajectories x (n, H, *obs): (n, H-1, size of a latent action)."""
        network = getattr(self, "network_", None)
        if not isinstance(network, LatentAction):
            raise NotFittedError("Latent actions need the inverse model, which `fit` trains; fit latent-action first.")
        z = self.features(x.reshape(-1, *self.obs_shape_)).reshape(*x.shape[:2], -1)
        guess = network.guessed(torch.from_numpy(z).to(network.codes))[1]
        return network.quantised(guess).double().cpu().numpy()

    def latent_actions(self, x: NDArray[Any], n_actions: int, seed: int = 0) -> Ints:
        """One of n_actions numbers for each transition of trajectories x (n, H, *obs), (n, H-1): k-means on `latents`.

        The codes are far more than there are actions; so they are put in as many classes as the caller says.
        """
        from sklearn.cluster import KMeans  # dear to import

        latents = self.latents(x)
        flat = latents.reshape(-1, latents.shape[-1])
        return KMeans(n_actions, n_init=4, random_state=seed).fit_predict(flat).reshape(latents.shape[:2])


@torch.no_grad()
def trunk_features(trunk: Trunk, device: torch.device, x: NDArray[Any]) -> Floats:
    """A trunk's features (n, dim) of observations (n, *obs)."""
    return torch.cat([trunk(part).float().cpu() for part in inputs_of(x, device)]).numpy()


class NearestCentre:
    """An encoder: the nearest of k centres in feature space."""

    def __init__(self, trunk: Trunk, device: torch.device, scale: Floats, centres: Floats) -> None:
        self.trunk, self.device, self.scale, self.centres = trunk.to(device), device, scale, centres

    def features(self, x: NDArray[Any]) -> Floats:
        return trunk_features(self.trunk, self.device, x)

    @classmethod
    def fitted(cls, trunk: Trunk, device: torch.device, x: NDArray[Any], k: int, standardise: bool) -> NearestCentre:
        """Centres by k-means on the features of x."""
        from sklearn.cluster import KMeans  # dear to import

        z = trunk_features(trunk, device, x).astype(np.float64)
        scale = 1 / np.maximum(z.std(axis=0), 1e-6) if standardise else np.ones(z.shape[1])
        means = KMeans(k, n_init=4, random_state=0).fit(z * scale)
        return cls(trunk, device, scale, means.cluster_centers_)

    def __call__(self, x: NDArray[Any]) -> Ints:
        return self.of_features(self.features(x)) if len(x) else np.empty(0, dtype=np.int64)

    def of_features(self, z: Floats) -> Ints:
        distance = (self.centres**2).sum(axis=1) - 2 * (z * self.scale) @ self.centres.T
        return distance.argmin(axis=1)
