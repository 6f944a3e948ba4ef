"""The objectives of CRAFT's rivals, each in its plainest form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from craftrl.arrays import Ints
from craftrl.core.evidence import chance_loss
from craftrl.oracles.network.log_odds import PairNetwork
from craftrl.oracles.network.trunks import Standardise, Trunk

TEMPERATURE = 0.1  # of the contrastive loss
MAX_GAP = 5  # furthest step that the multi-step inverse looks ahead
LATENTS, CODES, CODE_DIM = 8, 64, 16  # a latent action: so many codes, each one of 64 vectors of this size
COMMITMENT = 0.05  # weight of the loss that draws a guess to its code


def mlp(n_in: int, n_out: int, hidden: int = 256) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


@dataclass(frozen=True)
class Shapes:
    """What an objective must know of the data and the trunk."""

    dim: int
    obs_shape: tuple[int, ...]
    H: int
    n_agents: int
    n_actions: int


class Objective(nn.Module, ABC):
    """A training loss on whole trajectories, and whatever heads it needs beside the trunk.

    n_pixels         entries of one observation
    mean_frame_loss  mean squared error of the mean observation, standardised
    """

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__()
        self.trunk = trunk
        self.shapes = shapes
        *sides, last = shapes.obs_shape
        self.target = Standardise((last, *sides))  # inputs have their channels first
        self.n_pixels = int(np.prod(shapes.obs_shape))
        self.mean_frame_loss = 1.0

    def fit_input(self, x: Tensor) -> None:
        """Learn the scale of the inputs (n, *input), before any training."""
        self.trunk.fit_input(x)
        self.target.fit(x)
        self.mean_frame_loss = float(self.target(x).square().mean())

    def pixels(self, x: Tensor) -> Tensor:
        """Observations x (n, H, *input) standardised and flat, (n, H, n_pixels): what is to be predicted.

        With plain pixels a small dim figure on a constant background would weigh nothing in the loss.
        """
        return self.target(x).flatten(2)

    def features(self, x: Tensor) -> Tensor:
        """The trunk's features (n, H, dim) of trajectories x (n, H, *input)."""
        return self.trunk(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    @abstractmethod
    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        """Mean loss of trajectories x (n, H, *input) by agents (n,) with actions (n, H-1), 0 if not given."""

    def chance(self, agent: Ints, action: Ints) -> float:
        """The loss of knowing nothing, by default of naming the mean frame: while it is there, training goes on."""
        return self.mean_frame_loss


class Autoencoder(Objective):
    """Reconstruct the frame: x_h from z_h, by a decoder with one hidden layer."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.decoder = mlp(shapes.dim, self.n_pixels)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.features(x)).float(), self.pixels(x))


class ForwardPrediction(Autoencoder):
    """Predict the next frame: x_{h+1} from z_h."""

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.features(x)[:, :-1]).float(), self.pixels(x[:, 1:]))


class TemporalContrastive(Objective):
    """Of all trajectories in the minibatch, which one's x_{h+1} follows this x_h? (InfoNCE; van den Oord et al. 2018)

    The loss is less the logarithm of how many there are to choose from: so it does not depend on the minibatch's size,
    guessing has 0, and what is below is information about the future, in nats.
    """

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


class SingleFrame(Objective):
    """Which agent is this a frame of? The step is given as well; the paper's single-observation baseline."""

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


class PairedFrames(Objective):
    """Which agent is this a pair of frames of? CRAFT's own first part; the paper's paired-observation baseline."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.pairs = PairNetwork(trunk, shapes.H - 1, shapes.n_agents, (1,), 8)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        logits = self.pairs.along(self.features(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(logits.shape[1]))

    def chance(self, agent: Ints, action: Ints) -> float:
        return chance_loss(agent)


class ACState(Objective):
    """The action taken at h, from x_h and x_{h+k}, for all gaps k up to MAX_GAP (AC-State, Lamb et al. 2023).

    There a discrete bottleneck makes the states while the network learns; here k-means does afterwards, told how many
    there are. With actions, it is the upper reference.
    """

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


class LatentAction(Objective):
    """An inverse model names a latent action, made of a few discrete codes; with it, the past must predict x_{h+1}.

    LAPO (Schmidt and Jiang 2024); number and size of codes are those of its code (github.com/schmidtdominik/LAPO). As
    there both models see x_{h-1} beside x_h, and codes begin small. Other than there, both read frames through one
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


CLASSES: dict[str, type[Objective]] = {
    "ac-state": ACState,
    "paired": PairedFrames,
    "single": SingleFrame,
    "autoencoder": Autoencoder,
    "contrastive": TemporalContrastive,
    "forward": ForwardPrediction,
    "latent-action": LatentAction,
}
