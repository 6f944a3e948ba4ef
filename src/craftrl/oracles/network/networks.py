"""The networks on top of a trunk: log-odds of pairs, and classes of single observations."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from craftrl.oracles.network.trunks import GROUPS, SavableModule, Standardise, Trunk, channels_last

__all__ = ["Classifier", "Head", "PairNetwork"]

HIDDEN = (64, 512)  # units of a head's hidden layer: two for each class, between these
READOUTS = 3  # linear readouts that the steps mix, beside the one that all have in common


class PairNetwork(SavableModule):
    """Agent logits of all pairs of neighbouring steps, from one trunk for all h.

    Pr(agent k | x_h, x_{h+1}) is softmax of the output; f_h is logit 0 less logit k. The features of both observations
    and their product are joined: place by place where they are maps, by a hidden layer where they are vectors. What is
    joined is read out linearly. All steps have one readout in common; a few others are mixed with weights of each
    step's own, so that agents may change their habits over time without a whole readout for each step.

    Paper: Line 10 (the function class F_h, with encoders shared over time)
    """

    def __init__(self, trunk: Trunk, H: int, n_agents: int) -> None:
        super().__init__()
        self.arguments = {"H": H, "n_agents": n_agents}
        self.trunk = trunk
        self.n_agents = n_agents
        self.join = _join_maps(trunk.map_shape[0]) if trunk.map_shape else _join_vectors(trunk.dim)
        size = 2 * trunk.dim
        self.common = nn.Linear(size, n_agents)
        self.others = nn.Linear(size, READOUTS * n_agents, bias=False)
        self.mixture = nn.Parameter(0.3 * torch.randn(H - 1, READOUTS))
        self.offset = nn.Parameter(torch.zeros(H - 1, n_agents))

    def saved(self) -> dict[str, Any]:
        """The trunk by itself, since the encoders share it."""
        parts = super().saved()
        own = {name: value for name, value in parts["weights"].items() if not name.startswith("trunk.")}
        return {**parts, "weights": own, "trunk": self.trunk}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        trunk = parts["trunk"]
        weights = {f"trunk.{name}": value.cpu().numpy() for name, value in trunk.state_dict().items()}
        return cls(trunk, **parts["arguments"]).with_weights({**weights, **parts["weights"]})

    def forward(self, z_h: Tensor, z_next: Tensor, step: Tensor) -> Tensor:
        """Logits (..., K) from the trunk's features of both observations; `step` is h - 1."""
        shape = self.trunk.map_shape or (self.trunk.dim,)
        a, b = (z.reshape(-1, *shape) for z in (z_h, z_next))
        both = torch.cat([a, b, a * b], dim=1)
        joined = self.join(channels_last(both) if self.trunk.map_shape else both)
        at = step.reshape(-1)
        others = self.others(joined).unflatten(1, (READOUTS, self.n_agents))
        mixed = (self.mixture[at][..., None] * others).sum(dim=1)
        return (self.common(joined) + mixed + self.offset[at]).view(*z_h.shape[:-1], self.n_agents)

    def along(self, x: Tensor) -> Tensor:
        """Logits (n, H-1, K) of whole trajectories x (n, H, *obs); each observation is encoded once."""
        n, H = x.shape[:2]
        z = self.trunk(x.flatten(0, 1)).unflatten(0, (n, H))
        step = torch.arange(H - 1, device=x.device).expand(n, H - 1)
        return self(z[:, :-1], z[:, 1:], step)


def _join_maps(width: int) -> nn.Sequential:
    """Three maps of this width to one of twice the width, looking one place far."""
    return nn.Sequential(
        nn.Conv2d(3 * width, width, 1),
        nn.GroupNorm(GROUPS, width),
        nn.SiLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.Flatten(),
        nn.SiLU(),
    )


def _join_vectors(dim: int) -> nn.Sequential:
    """Three vectors to one of twice the size."""
    return nn.Sequential(nn.Linear(3 * dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, 2 * dim), nn.SiLU())


class Head(SavableModule):
    """Class logits (n, n_classes) of features (n, dim), by one hidden layer."""

    def __init__(self, dim: int, n_classes: int, hidden: int | None = None) -> None:
        super().__init__()
        if hidden is None:
            hidden = min(max(2 * n_classes, HIDDEN[0]), HIDDEN[1])
        self.arguments = {"dim": dim, "n_classes": n_classes, "hidden": hidden}
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))

    def forward(self, z: Tensor) -> Tensor:
        return self.layers(z)

    @torch.no_grad()
    def unscaled(self, scale: Standardise) -> Self:
        """This head, which was trained on standardised features, for features as they come."""
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        first.weight.div_(scale.scale)
        first.bias.sub_(first.weight @ scale.mean)
        return self

    @torch.no_grad()
    def scaled(self, scale: Standardise) -> Self:
        """The reverse: this head, for standardised features."""
        first = self.layers[0]
        assert isinstance(first, nn.Linear)
        first.bias.add_(first.weight @ scale.mean)
        first.weight.mul_(scale.scale)
        return self


class Classifier(nn.Module):
    """Class logits of single observations, by a trunk and a small head on its standardised features."""

    def __init__(self, trunk: Trunk, scale: Standardise, head: Head) -> None:
        super().__init__()
        self.trunk = trunk
        self.scale = scale
        self.head = head

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.scale(self.trunk(x)))
