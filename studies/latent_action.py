"""Latent actions in the manner of LAPO: an inverse model names them, a forward model must predict with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from craftrl.errors import NotFittedError
from craftrl.oracles.network.trunks import Trunk
from studies.objectives import OfFrames, mlp
from studies.trained import Ints, Shapes, TrainedBaseline

__all__ = ["LatentAction"]

LATENTS, CODES, CODE_DIM = 8, 64, 16  # a latent action: so many codes, each one of 64 vectors of this size, as in LAPO
COMMITMENT = 0.05  # weight of the loss that draws a guess to its code


class _LatentActions(OfFrames):
    """An inverse model names a latent action, made of a few discrete codes; with it, the past must predict x_{h+1}.

    As in LAPO both models see x_{h-1} beside x_h, and codes begin small. Other than there, both read frames through one
    trunk, since without a network of single frames there would be no states; and codes are learned by gradients.
    """

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.inverse = mlp(3 * shapes.dim, LATENTS * CODE_DIM)
        self.codes = nn.Parameter((2 * torch.rand(LATENTS, CODES, CODE_DIM) - 1) * 5 / CODES)
        self.decoder = mlp(2 * shapes.dim + LATENTS * CODE_DIM, self.n_pixels)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        past, guess = self.guessed(self.features(x))
        code = self.quantised(guess)
        drawn = functional.mse_loss(code, guess.detach()) + COMMITMENT * functional.mse_loss(guess, code.detach())
        latent = guess + (code - guess).detach()  # straight through
        predicted = self.decoder(torch.cat([past, latent], dim=-1)).float()
        return functional.mse_loss(predicted, self.pixels(x[:, 1:])) + drawn

    def guessed(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Of features (n, H, dim): what both models see of the past, and latent actions before they become codes."""
        now, later = z[:, :-1], z[:, 1:]
        past = torch.cat([torch.cat([z[:, :1], z[:, :-2]], dim=1), now], dim=-1)  # at h = 1 the frame itself
        return past, self.inverse(torch.cat([past, later], dim=-1)).float()

    def quantised(self, guess: Tensor) -> Tensor:
        """Each part of a guess (..., LATENTS * CODE_DIM) replaced by the nearest of its codes."""
        parts = guess.reshape(-1, LATENTS, CODE_DIM).transpose(0, 1)
        nearest = torch.cdist(parts, self.codes.float()).argmin(dim=-1)  # (LATENTS, m)
        chosen = self.codes.float()[torch.arange(LATENTS, device=guess.device)[:, None], nearest]
        return chosen.transpose(0, 1).reshape(guess.shape)


class LatentAction(TrainedBaseline):
    """A latent-action model in the manner of LAPO (Schmidt and Jiang 2024): inverse and forward model together.

    The number and size of its codes are those of the authors' code (github.com/schmidtdominik/LAPO).
    """

    objective = _LatentActions

    @torch.no_grad()
    def latents(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """The codes that the inverse model names for trajectories x (n, H, *obs): (n, H-1, size of a latent action)."""
        network = getattr(self, "network_", None)
        if not isinstance(network, _LatentActions):
            raise NotFittedError("Latent actions need the inverse model, which `fit` trains; fit first.")
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
