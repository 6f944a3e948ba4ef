"""The networks: a trunk shared over time, a head for pairs, a head for single observations."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError

__all__ = ["Classifier", "ConvTrunk", "Head", "OwnTrunk", "PairNetwork", "VectorTrunk", "new_trunk"]


class SavableModule(nn.Module, Savable):
    """A module that is saved as the arguments that built it, and its weights."""

    arguments: dict[str, Any]

    def saved(self) -> dict[str, Any]:
        weights = {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}
        return {"arguments": self.arguments, "weights": weights}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        return cls(**parts["arguments"]).with_weights(parts["weights"])

    def with_weights(self, weights: dict[str, Any]) -> Self:
        self.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in weights.items()})
        return self.eval()


class ConvTrunk(SavableModule):
    """A small convolutional network from images (n, C, P, P) to features (n, dim).

    It keeps positions up to the last layer: where something is matters here more than what it is.
    """

    def __init__(self, image: tuple[int, int, int], dim: int = 128, width: int = 16) -> None:
        super().__init__()
        self.arguments = {"image": list(image), "dim": dim, "width": width}
        rows, columns, channels = image
        layers: list[nn.Module] = [nn.Conv2d(channels, width, 4, stride=2, padding=1), nn.ReLU()]
        rows, columns = rows // 2, columns // 2
        while min(rows, columns) >= 8:
            layers += [nn.Conv2d(width, width, 4, stride=2, padding=1), nn.ReLU()]
            rows, columns = rows // 2, columns // 2
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Flatten()]
        self.layers = nn.Sequential(*layers, nn.Linear(rows * columns * width, dim), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x - 0.5)


class VectorTrunk(SavableModule):
    """Two hidden layers, for feature vectors."""

    def __init__(self, n_features: int, dim: int = 128) -> None:
        super().__init__()
        self.arguments = {"n_features": n_features, "dim": dim}
        self.layers = nn.Sequential(nn.Linear(n_features, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class OwnTrunk(SavableModule):
    """A trunk of the user's own: no file holds its code, so that a saved model is loaded with it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.arguments = {}
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        module = getattr(given, "trunk", None)
        if not isinstance(module, nn.Module):
            raise InvalidParameterError(
                "This model has a trunk of your own, whose code no file holds; give the oracle that it was fitted "
                "with: craftrl.load(path, oracle=NeuralOracle(trunk=...))."
            )
        return cls(copy.deepcopy(module)).with_weights(parts["weights"])


def new_trunk(trunk: nn.Module | None, obs_shape: tuple[int, ...], dim: int) -> tuple[SavableModule, int]:
    """A fresh trunk and the number of its features: the user's, copied, or the default for the observations."""
    if trunk is None:
        if len(obs_shape) == 1:
            return VectorTrunk(obs_shape[0], dim), dim
        rows, columns, channels = obs_shape
        return ConvTrunk((rows, columns, channels), dim), dim
    trunk = copy.deepcopy(trunk) if isinstance(trunk, SavableModule) else OwnTrunk(copy.deepcopy(trunk))
    shape = obs_shape if len(obs_shape) == 1 else (obs_shape[2], obs_shape[0], obs_shape[1])
    try:
        with torch.no_grad():
            z = trunk.cpu()(torch.zeros(2, *shape))
        got = tuple(z.shape)
    except RuntimeError as error:
        got = ()
        problem = str(error).splitlines()[0]
    else:
        problem = f"it returned shape {got}"
    if len(got) != 2 or got[0] != 2:
        raise InvalidParameterError(
            f"A trunk must turn a batch of shape {(2, *shape)} into features of shape (2, dim); {problem}; "
            "end it with nn.Flatten() and check its first layer's channels."
        )
    return trunk, got[1]


class PairNetwork(SavableModule):
    """Agent logits of all pairs of neighbouring steps, from one trunk and one head for all h.

    Pr(agent k | x_h, x_{h+1}) is softmax of the output; f_h is logit 0 less logit k. The head sees both
    features, their product and an embedding of h.

    Paper: Line 10 (the function class F_h, with encoders shared over time)
    """

    def __init__(self, trunk: SavableModule, dim: int, H: int, n_agents: int, hidden: int = 256) -> None:
        super().__init__()
        self.arguments = {"dim": dim, "H": H, "n_agents": n_agents, "hidden": hidden}
        self.trunk = trunk
        self.step = nn.Embedding(H - 1, 16)
        self.head = nn.Sequential(
            nn.Linear(3 * dim + 16, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, n_agents),
        )

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
        return self.head(torch.cat([z_h, z_next, z_h * z_next, self.step(step)], dim=-1))

    def along(self, x: Tensor) -> Tensor:
        """Logits (n, H-1, K) of whole trajectories x (n, H, *obs); each observation is encoded once."""
        n, H = x.shape[:2]
        z = self.trunk(x.flatten(0, 1)).unflatten(0, (n, H))
        step = torch.arange(H - 1, device=x.device).expand(n, H - 1)
        return self(z[:, :-1], z[:, 1:], step)


class Head(SavableModule):
    """Class logits (n, n_classes) of features (n, dim), by one hidden layer."""

    def __init__(self, dim: int, n_classes: int, hidden: int = 128, normalise: bool = False) -> None:
        super().__init__()
        self.arguments = {"dim": dim, "n_classes": n_classes, "hidden": hidden, "normalise": normalise}
        before = [nn.LayerNorm(dim)] if normalise else []
        self.layers = nn.Sequential(*before, nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, n_classes))

    def forward(self, z: Tensor) -> Tensor:
        return self.layers(z)


class Classifier(nn.Module):
    """Class logits of single observations, by a trunk and a small head."""

    def __init__(self, trunk: SavableModule, dim: int, n_classes: int) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = Head(dim, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(x))
