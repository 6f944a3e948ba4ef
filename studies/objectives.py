"""The objectives of CRAFT's rivals, each in its plainest form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from craftrl.core.evidence import chance_loss
from craftrl.errors import NotFittedError
from craftrl.oracles.network.log_odds import PairNetwork
from craftrl.oracles.network.trunks import Trunk
from studies.trained import Ints, Objective, Shapes, TrainedBaseline

__all__ = ["CLASSES", "ACState", "Autoencoder", "ForwardPrediction", "LatentAction", "PairedFrames", "SingleFrame"]
__all__ += ["TemporalContrastive"]

TEMPERATURE = 0.1  # of the contrastive loss
MAX_GAP = 5  # furthest step that the multi-step inverse looks ahead
LATENTS, CODES, CODE_DIM = 8, 64, 16  # a latent action: so many codes, each one of 64 vectors of this size, as in LAPO
COMMITMENT = 0.05  # weight of the loss that draws a guess to its code


def mlp(n_in: int, n_out: int, hidden: int = 256) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class Reconstruction(Objective):
    """x_h from z_h, by a decoder with one hidden layer."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.decoder = mlp(shapes.dim, self.n_pixels)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.features(x)).float(), self.pixels(x))


class NextFrame(Reconstruction):
    """x_{h+1} from z_h."""

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.features(x)[:, :-1]).float(), self.pixels(x[:, 1:]))


class Contrastive(Objective):
    """Of all trajectories in the minibatch, which one's x_{h+1} follows this x_h? (InfoNCE)

    The loss is less the logarithm of how many there are to choose from: so it does not depend on the minibatch's size,
    guessing has 0, and what is below is information about the future, in nats.
    """

    divisible = False

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.before, self.after = mlp(shapes.dim, 64), mlp(shapes.dim, 64)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x).transpose(0, 1)
        before = functional.normalize(self.before(z[:-1]).float(), dim=-1)
        after = functional.normalize(self.after(z[1:]).float(), dim=-1)
        logits = before @ after.transpose(1, 2) / TEMPERATURE
        target = torch.arange(logits.shape[1], device=logits.device).expand(logits.shape[:2])
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten()) - math.log(logits.shape[1])

    def chance(self, agent: Ints, action: Ints) -> float:
        return 0.0


class AgentOfFrame(Objective):
    """Which agent is this a frame of? The step is given as well."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.step = nn.Embedding(shapes.H, 16)
        self.head = mlp(shapes.dim + 16, shapes.n_agents)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)
        step = self.step(torch.arange(z.shape[1], device=z.device)).expand(*z.shape[:2], -1)
        logits = self.head(torch.cat([z, step], dim=-1)).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(z.shape[1]))

    def chance(self, agent: Ints, action: Ints) -> float:
        return chance_loss(agent)


class AgentOfPair(Objective):
    """Which agent is this a pair of frames of? CRAFT's own first part, without the rest."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.pairs = PairNetwork(trunk, shapes.H - 1, shapes.n_agents, (1,), 8)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        logits = self.pairs.along(self.features(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(logits.shape[1]))

    def chance(self, agent: Ints, action: Ints) -> float:
        return chance_loss(agent)


class MultiStepInverse(Objective):
    """The action taken at h, from x_h and x_{h+k}, for all gaps k up to MAX_GAP."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.gap = nn.Embedding(MAX_GAP + 1, 16)
        self.head = mlp(3 * shapes.dim + 16, shapes.n_actions)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)
        losses = []
        for gap in range(1, min(MAX_GAP, x.shape[1] - 1) + 1):
            now, later = z[:, :-gap], z[:, gap:]
            k = self.gap(torch.full(now.shape[:2], gap, device=z.device))
            logits = self.head(torch.cat([now, later, now * later, k], dim=-1)).float()
            losses.append(functional.cross_entropy(logits.flatten(0, 1), action[:, : now.shape[1]].flatten()))
        return torch.stack(losses).mean()

    def chance(self, agent: Ints, action: Ints) -> float:
        return chance_loss(action.ravel())


class LatentActions(Objective):
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


class Autoencoder(TrainedBaseline):
    """Reconstruct the frame."""

    objective = Reconstruction


class ForwardPrediction(TrainedBaseline):
    """Predict the next frame."""

    objective = NextFrame


class TemporalContrastive(TrainedBaseline):
    """Neighbours in time attract, other trajectories repel (van den Oord et al. 2018)."""

    objective = Contrastive


class SingleFrame(TrainedBaseline):
    """Tell the agents apart by one frame; the paper's single-observation baseline in neural form."""

    objective = AgentOfFrame


class PairedFrames(TrainedBaseline):
    """Tell the agents apart by two frames; the paper's paired-observation baseline in neural form."""

    objective = AgentOfPair


class ACState(TrainedBaseline):
    """The multi-step inverse of AC-State (Lamb et al. 2023), with actions: the upper reference.

    There a discrete bottleneck makes the states while the network learns; here k-means does afterwards, told how many
    there are.
    """

    objective = MultiStepInverse
    needs_actions = True


class LatentAction(TrainedBaseline):
    """A latent-action model in the manner of LAPO (Schmidt and Jiang 2024): inverse and forward model together.

    The number and size of its codes are those of the authors' code (github.com/schmidtdominik/LAPO).
    """

    objective = LatentActions

    @torch.no_grad()
    def latents(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """The codes that the inverse model names for trajectories x (n, H, *obs): (n, H-1, size of a latent action)."""
        network = getattr(self, "network_", None)
        if not isinstance(network, LatentActions):
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


CLASSES: dict[str, type[TrainedBaseline]] = {
    "ac-state": ACState,
    "paired": PairedFrames,
    "single": SingleFrame,
    "autoencoder": Autoencoder,
    "contrastive": TemporalContrastive,
    "forward": ForwardPrediction,
    "latent-action": LatentAction,
}
