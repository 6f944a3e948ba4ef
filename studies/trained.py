"""A rival of CRAFT: a trunk trained with some objective, then k-means on its features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn

from craftrl.arrays import Floats, Ints
from craftrl.data import TrajectoryDataset
from craftrl.oracles.network.encoder import inputs_of
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.settings import Training, seeded
from craftrl.oracles.network.training import minibatch_size, train
from craftrl.oracles.network.trunks import Trunk, new_trunk
from studies.objectives import CLASSES, LatentAction, Objective, Shapes

NOISE = 0.7  # in the inputs of images: more hurts those who must predict them


@torch.no_grad()
def features_of(trunk: Trunk, device: torch.device, x: NDArray[Any]) -> Floats:
    """A trunk's features (n, dim) of observations (n, *obs)."""
    return torch.cat([trunk(part).float().cpu() for part in inputs_of(x, device)]).numpy()


@dataclass(frozen=True, eq=False)
class Rival:
    """An objective that was trained.

    loss    on the trajectories held out for early stopping: by it settings can be chosen
    chance  the loss of knowing nothing
    """

    network: Objective
    device: torch.device
    loss: float
    chance: float

    def features(self, x: NDArray[Any]) -> Floats:
        """The trunk's features (n, dim) of observations (n, *obs), the same for every step."""
        return features_of(self.network.trunk, self.device, x)

    def clustered(self, x: NDArray[Any], k: int, standardise: bool) -> NearestCentre:
        """An encoder with k states, found by k-means on the features of x, which may be scaled to unit variance."""
        z = self.features(x).astype(np.float64)
        scale = 1 / np.maximum(z.std(axis=0), 1e-6) if standardise else np.ones(z.shape[1])
        return NearestCentre(self, scale, KMeans(k, n_init=4, random_state=0).fit(z * scale))

    @torch.no_grad()
    def latent_actions(self, x: NDArray[Any], n_actions: int) -> Ints:
        """One of n_actions numbers for each transition of trajectories x (n, H, *obs), (n, H-1).

        The codes that the inverse model names are far more than there are actions; k-means puts them in as many classes
        as the caller says.
        """
        assert isinstance(self.network, LatentAction)
        z = self.features(x.reshape(-1, *x.shape[2:])).reshape(*x.shape[:2], -1)
        guess = self.network.guessed(torch.from_numpy(z).to(self.network.codes))[1]
        codes = self.network.quantised(guess).double().cpu().numpy()
        flat = codes.reshape(-1, codes.shape[-1])
        return KMeans(n_actions, n_init=4, random_state=0).fit_predict(flat).reshape(codes.shape[:2])


@dataclass(frozen=True, eq=False)
class NearestCentre:
    """An encoder: the nearest of k centres in the space of scaled features."""

    rival: Rival
    scale: Floats
    means: KMeans

    def __call__(self, x: NDArray[Any]) -> Ints:
        if not len(x):
            return np.empty(0, dtype=np.int64)
        return self.means.predict(self.rival.features(x) * self.scale).astype(np.int64)


def squeezed_trunk(obs_shape: tuple[int, ...], dim: int, noise: float | None = None) -> Trunk:
    """CRAFT's own trunk, a map squeezed into `dim` features of each frame, for those who cluster or classify them."""
    trunk = new_trunk(None, obs_shape, dim, noise)
    if trunk.map_shape is not None:
        trunk.layers = nn.Sequential(*trunk.layers.children(), nn.Linear(trunk.dim, dim), nn.SiLU())
        trunk.dim, trunk.map_shape = dim, None
    return trunk


def train_rival(technique: str, tau: TrajectoryDataset, actions: Ints, training: Training, dim: int = 128) -> Rival:
    """A trunk with `dim` features, trained with the objective of `technique`; few look at the actions (n, H-1)."""
    objective, frames = CLASSES[technique], Frames(tau, training)
    name = objective.__name__
    agent, action = (torch.from_numpy(a).to(frames.device) for a in (tau.agent, actions))
    with seeded(training, name):
        noise = NOISE if training.noise is None and len(tau.obs_shape) == 3 else training.noise
        trunk = squeezed_trunk(tau.obs_shape, dim, noise)
        network = objective(trunk, Shapes(trunk.dim, tau.obs_shape, tau.H, tau.K, int(actions.max()) + 1))
    network.fit_input(frames.sample())
    chance = network.chance(tau.agent, actions)

    def loss(network: Objective, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        rows, x = batch
        return network.loss(x, agent[rows], action[rows]) * len(rows), torch.tensor(float(len(rows)))

    rows = tau.hold_out(training.held_out, training.rng(name))
    size = minibatch_size(training, len(rows[0]), tau.H)
    held_out = train(network, loss, frames.batches, rows, size, training, name, chance, tau.digest)
    return Rival(network, frames.device, held_out, chance)
