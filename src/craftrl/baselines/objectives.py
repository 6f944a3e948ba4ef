"""The objectives of the baselines that train, each in its plainest form."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from craftrl.baselines.trained import Objective, Shapes, TrainedBaseline
from craftrl.oracles.network.networks import PairNetwork
from craftrl.oracles.network.trunks import Trunk

__all__ = [
    "ACState",
    "Autoencoder",
    "ForwardPrediction",
    "LatentAction",
    "PairedFrames",
    "SingleFrame",
    "TemporalContrastive",
]

CODES, CODE_DIM = 16, 16  # latent actions that the latent-action model can tell apart, and their size
TEMPERATURE = 0.1  # of the contrastive loss
MAX_GAP = 5  # furthest step that the multi-step inverse looks ahead


def _mlp(n_in: int, n_out: int, hidden: int = 256) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class _Reconstruction(Objective):
    """x_h from z_h, by a decoder with one hidden layer."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.decoder = _mlp(shapes.dim, _size(shapes))

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.features(x)).float(), x.flatten(2))


class _NextFrame(Objective):
    """x_{h+1} from z_h."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.decoder = _mlp(shapes.dim, _size(shapes))

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)[:, :-1]
        return functional.mse_loss(self.decoder(z).float(), x[:, 1:].flatten(2))


class _LatentActions(Objective):
    """An inverse model names one of a few latent actions; with it, z_h must predict x_{h+1}."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.inverse = _mlp(2 * shapes.dim, CODE_DIM)
        self.codes = nn.Embedding(CODES, CODE_DIM)
        self.decoder = _mlp(shapes.dim + CODE_DIM, _size(shapes))

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)
        guess = self.inverse(torch.cat([z[:, :-1], z[:, 1:]], dim=-1)).float()
        nearest = torch.cdist(guess.flatten(0, 1), self.codes.weight.float()).argmin(dim=-1)
        code = self.codes(nearest).view_as(guess)
        commitment = functional.mse_loss(code, guess.detach()) + 0.25 * functional.mse_loss(guess, code.detach())
        latent = guess + (code - guess).detach()  # straight through
        predicted = self.decoder(torch.cat([z[:, :-1], latent], dim=-1)).float()
        return functional.mse_loss(predicted, x[:, 1:].flatten(2)) + 0.1 * commitment


class _Contrastive(Objective):
    """Of all trajectories in the minibatch, which one's x_{h+1} follows this x_h? (InfoNCE)"""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.before, self.after = _mlp(shapes.dim, 64), _mlp(shapes.dim, 64)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x).transpose(0, 1)
        before = functional.normalize(self.before(z[:-1]).float(), dim=-1)
        after = functional.normalize(self.after(z[1:]).float(), dim=-1)
        logits = before @ after.transpose(1, 2) / TEMPERATURE
        target = torch.arange(logits.shape[1], device=logits.device).expand(logits.shape[:2])
        return functional.cross_entropy(logits.flatten(0, 1), target.flatten())


class _AgentOfFrame(Objective):
    """Which agent is this a frame of? The step is told as well."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.step = nn.Embedding(shapes.H, 16)
        self.head = _mlp(shapes.dim + 16, shapes.n_agents)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)
        step = self.step(torch.arange(z.shape[1], device=z.device)).expand(*z.shape[:2], -1)
        logits = self.head(torch.cat([z, step], dim=-1)).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(z.shape[1]))


class _AgentOfPair(Objective):
    """Which agent is this a pair of frames of? CRAFT's own first part, without the rest."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.pairs = PairNetwork(trunk, shapes.H, shapes.n_agents)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        logits = self.pairs.along(x).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(logits.shape[1]))


class _MultiStepInverse(Objective):
    """The action taken at h, from x_h and x_{h+k}, for all gaps k up to MAX_GAP."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.gap = nn.Embedding(MAX_GAP + 1, 16)
        self.head = _mlp(3 * shapes.dim + 16, shapes.n_actions)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)
        losses = []
        for gap in range(1, min(MAX_GAP, x.shape[1] - 1) + 1):
            now, later = z[:, :-gap], z[:, gap:]
            k = self.gap(torch.full(now.shape[:2], gap, device=z.device))
            logits = self.head(torch.cat([now, later, now * later, k], dim=-1)).float()
            losses.append(functional.cross_entropy(logits.flatten(0, 1), action[:, : now.shape[1]].flatten()))
        return torch.stack(losses).mean()


class Autoencoder(TrainedBaseline):
    """Reconstruct the frame."""

    objective = _Reconstruction


class ForwardPrediction(TrainedBaseline):
    """Predict the next frame."""

    objective = _NextFrame


class LatentAction(TrainedBaseline):
    """A latent-action model in the manner of LAPO (Schmidt and Jiang 2024): inverse and forward model together."""

    objective = _LatentActions


class TemporalContrastive(TrainedBaseline):
    """Neighbours in time attract, other trajectories repel (van den Oord et al. 2018)."""

    objective = _Contrastive


class SingleFrame(TrainedBaseline):
    """Tell the agents apart by one frame; the paper's single-observation baseline in neural form."""

    objective = _AgentOfFrame


class PairedFrames(TrainedBaseline):
    """Tell the agents apart by two frames; the paper's paired-observation baseline in neural form."""

    objective = _AgentOfPair


class ACState(TrainedBaseline):
    """The multi-step inverse of AC-State (Lamb et al. 2023), with actions: the upper reference."""

    objective = _MultiStepInverse
    needs_actions = True


def _size(shapes: Shapes) -> int:
    return int(torch.tensor(shapes.obs_shape).prod())
