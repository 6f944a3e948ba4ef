"""The objectives of the baselines that train, each in its plainest form.

Frames are reconstructed and predicted as standardised pixels, as the trunk sees them: with plain ones a small dim
figure on a constant background would weigh nothing in the loss.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from craftrl.core.evidence import chance_loss
from craftrl.oracles.network.log_odds import PairNetwork
from craftrl.oracles.network.trunks import Trunk
from studies.trained import Ints, Objective, Shapes, TrainedBaseline

__all__ = [
    "ACState",
    "Autoencoder",
    "ForwardPrediction",
    "OfFrames",
    "PairedFrames",
    "SingleFrame",
    "TemporalContrastive",
    "mlp",
]

TEMPERATURE = 0.1  # of the contrastive loss
MAX_GAP = 5  # furthest step that the multi-step inverse looks ahead


def mlp(n_in: int, n_out: int, hidden: int = 256) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class OfFrames(Objective):
    """Objectives whose error is that of a frame: to know nothing is to name the mean frame."""

    def chance(self, agent: Ints, action: Ints) -> float:
        return self.mean_frame_loss


class _Reconstruction(OfFrames):
    """x_h from z_h, by a decoder with one hidden layer."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.decoder = mlp(shapes.dim, self.n_pixels)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(self.features(x)).float(), self.pixels(x))


class _NextFrame(OfFrames):
    """x_{h+1} from z_h."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.decoder = mlp(shapes.dim, self.n_pixels)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)[:, :-1]
        return functional.mse_loss(self.decoder(z).float(), self.pixels(x[:, 1:]))


class _Contrastive(Objective):
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


class _OfAgents(Objective):
    """Objectives that tell the agents apart: to know nothing is to know their shares."""

    def chance(self, agent: Ints, action: Ints) -> float:
        return chance_loss(agent)


class _AgentOfFrame(_OfAgents):
    """Which agent is this a frame of? The step is told as well."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.step = nn.Embedding(shapes.H, 16)
        self.head = mlp(shapes.dim + 16, shapes.n_agents)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        z = self.features(x)
        step = self.step(torch.arange(z.shape[1], device=z.device)).expand(*z.shape[:2], -1)
        logits = self.head(torch.cat([z, step], dim=-1)).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(z.shape[1]))


class _AgentOfPair(_OfAgents):
    """Which agent is this a pair of frames of? CRAFT's own first part, without the rest."""

    def __init__(self, trunk: Trunk, shapes: Shapes) -> None:
        super().__init__(trunk, shapes)
        self.pairs = PairNetwork(trunk, shapes.H - 1, shapes.n_agents, (1,), 8)

    def loss(self, x: Tensor, agent: Tensor, action: Tensor) -> Tensor:
        logits = self.pairs.along(self.features(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1), agent.repeat_interleave(logits.shape[1]))


class _MultiStepInverse(Objective):
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


class Autoencoder(TrainedBaseline):
    """Reconstruct the frame."""

    objective = _Reconstruction


class ForwardPrediction(TrainedBaseline):
    """Predict the next frame."""

    objective = _NextFrame


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
    """The multi-step inverse of AC-State (Lamb et al. 2023), with actions: the upper reference.

    There a discrete bottleneck makes the states while the network learns; here k-means does afterwards, told how many
    there are.
    """

    objective = _MultiStepInverse
    needs_actions = True
