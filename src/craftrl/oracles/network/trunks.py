"""Trunks: from observations to features, the part that all steps and all heads share.

An image stays a map of features, about one place for every cell of what is seen: what an agent does is local, and a
network that squeezes a frame into one vector before it compares two of them never finds it (docs/pixels.md).
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError
from craftrl.oracles.network.noise import noise_like

__all__ = [
    "Decorrelate",
    "MapTrunk",
    "OwnTrunk",
    "SavableModule",
    "Standardise",
    "Trunk",
    "VectorTrunk",
    "channels_last",
    "new_trunk",
]

GROUPS = 8  # of the group normalisation
LARGEST_MAP = 20  # places along the longer side of a map, at most
IMAGE_NOISE = 0.7  # noise added to standardised pixels while training: grain is never the same twice, and means nothing
VECTOR_NOISE = 0.1  # the same for features, each of which may be a measurement
VECTOR_LAYERS, DROPOUT = 3, 0.2  # layers for features, and the share of their units that a minibatch does without
FLOOR, ROWS_PER_FEATURE = 1e-3, 8  # of the decorrelation: least variance, and rows that it wants for each feature
LETTERS, CODE_SCALE = 16, 4.0  # values of each code that features are turned into, and the size of a sure one


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


class Standardise(nn.Module):
    """Each entry less its mean over the data, divided by its deviation plus a little; while training, with noise.

    Where most of an image is constant, a small dim figure would otherwise never be noticed.
    """

    def __init__(self, shape: tuple[int, ...], noise: float = 0.0) -> None:
        super().__init__()
        self.noise = noise
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(shape))

    def fit(self, x: Tensor) -> None:
        """Take mean and deviation from inputs (n, *shape)."""
        deviation = x.std(dim=0) if len(x) > 1 else torch.zeros_like(x[0])
        self.mean = x.mean(dim=0)
        self.scale = deviation + 0.1 * deviation.mean() + 1e-6

    def forward(self, x: Tensor) -> Tensor:
        z = (x - self.mean) / self.scale
        return z + self.noise * noise_like(z) if self.training and self.noise else z


class Decorrelate(nn.Module):
    """Feature vectors turned so that each entry has mean 0, deviation 1 and no correlation with the others.

    Features may be measured in any unit and be mixtures of what matters: what is small or lies along a narrow direction
    counts as much as the rest. Of all ways to decorrelate this one changes the entries least (ZCA). Directions with
    less than `FLOOR` of an entry's variance are left small: they may be rounding alone. While training, with noise.
    """

    def __init__(self, n_features: int, noise: float = 0.0) -> None:
        super().__init__()
        self.noise = noise
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("turn", torch.eye(n_features))

    def fit(self, x: Tensor) -> None:
        """Take mean, deviations and correlations from inputs (n, n_features)."""
        x = x.double()
        mean, deviation = x.mean(dim=0), x.std(dim=0, correction=0)
        constant = deviation <= 1e-6 * mean.abs()
        unit = torch.where(constant, torch.ones_like(deviation), deviation)
        turn = torch.eye(x.shape[1], dtype=x.dtype)
        if x.shape[1] <= len(x) / ROWS_PER_FEATURE:
            z = (x - mean) / unit
            variance, axes = torch.linalg.eigh(z.T @ z / len(x))
            turn = axes @ ((variance.clamp_min(0) + FLOOR).rsqrt()[:, None] * axes.T)
        self.mean, self.turn = mean.float(), (turn / unit[:, None]).float()

    def forward(self, x: Tensor) -> Tensor:
        z = (x - self.mean) @ self.turn
        return z + self.noise * noise_like(z) if self.training and self.noise else z


class Trunk(SavableModule):
    """From inputs (n, *input) to features (n, dim).

    dim        number of features
    map_shape  (channels, rows, columns) if the features are a map, flattened; else None
    """

    dim: int
    map_shape: tuple[int, int, int] | None = None

    def fit_input(self, x: Tensor) -> None:
        """Learn the scale of the inputs (n, *input), before any training."""


class MapTrunk(Trunk):
    """A small convolutional network from images (n, C, rows, columns) to a map of features, flattened.

    Parameters
    ----------
    image
        (rows, columns, channels), from 4 x 4 up.
    width
        Features at each place of the map, a multiple of 8.
    vector
        With a number, the whole map is squeezed into so many features: for those who cluster them, such as the
        baselines.
    """

    def __init__(self, image: tuple[int, int, int], width: int = 32, vector: int | None = None) -> None:
        super().__init__()
        self.arguments = {"image": list(image), "width": width, "vector": vector}
        rows, columns, channels = image
        self.standardise = Standardise((channels, rows, columns), IMAGE_NOISE)
        layers: list[nn.Module] = []
        n_in = channels
        for _ in range(_halvings(rows, columns)):
            layers += [nn.Conv2d(n_in, width, 4, 2, padding=1), nn.GroupNorm(GROUPS, width), nn.SiLU()]
            rows, columns, n_in = rows // 2, columns // 2, width
        layers += [nn.Conv2d(n_in, width, 3, padding=1), nn.Flatten(), nn.SiLU()]
        self.dim = width * rows * columns
        if vector is None:
            self.map_shape = (width, rows, columns)
        else:
            layers += [nn.Linear(self.dim, vector), nn.SiLU()]
            self.dim = vector
        self.layers = nn.Sequential(*layers)

    def fit_input(self, x: Tensor) -> None:
        self.standardise.fit(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(channels_last(self.standardise(x)))


def channels_last(x: Tensor) -> Tensor:
    """The same images or maps, on a CPU with the channels of each place side by side in memory.

    That is the order in which convolutions work there: they take two thirds of the time, group normalisation more.
    """
    return x.contiguous(memory_format=torch.channels_last) if x.device.type == "cpu" else x


def _halvings(rows: int, columns: int) -> int:
    """How often a map is halved: to a quarter of the resolution, less for tiny images, more for large ones."""
    times = 0
    while min(rows, columns) >= 8 and (times < 2 or max(rows, columns) > LARGEST_MAP):
        rows, columns, times = rows // 2, columns // 2, times + 1
    return times


class VectorTrunk(Trunk):
    """Three layers with dropout, for feature vectors; what comes out are soft codes.

    Log-odds are the same for all observations of a state, and jump where one state ends and another begins. So the last
    layer's units compete in groups (softmax): each group is a code of `LETTERS` values, learned with the rest, flat
    inside a region and steep at its border. What tells agents apart is weak, and a few thousand trajectories are soon
    learned by heart; dropout is against that. docs/models.md has what each is worth.
    """

    def __init__(self, n_features: int, dim: int = 128) -> None:
        super().__init__()
        if dim < 2:
            raise InvalidParameterError(f"dim must be at least 2 for feature vectors; {dim} was given.")
        self.arguments = {"n_features": n_features, "dim": dim}
        self.decorrelate = Decorrelate(n_features, VECTOR_NOISE)
        layers: list[nn.Module] = []
        for n_in in [n_features] + [dim] * (VECTOR_LAYERS - 1):
            layers += [nn.Linear(n_in, dim), nn.Dropout(DROPOUT), nn.SiLU()]
        self.layers = nn.Sequential(*layers[:-1])
        self.dim = dim

    def fit_input(self, x: Tensor) -> None:
        self.decorrelate.fit(x)

    def forward(self, x: Tensor) -> Tensor:
        codes = self.layers(self.decorrelate(x)).tensor_split(max(1, self.dim // LETTERS), dim=1)
        return CODE_SCALE * torch.cat([code.softmax(dim=1) for code in codes], dim=1)


class OwnTrunk(Trunk):
    """A trunk of the user's own: no file holds its code, so that a saved model is loaded with it."""

    def __init__(self, module: nn.Module, output: tuple[int, ...]) -> None:
        super().__init__()
        self.arguments = {"output": list(output)}
        self.module = module
        self.dim = int(np.prod(output))
        self.map_shape = (output[0], output[1], output[2]) if len(output) == 3 else None

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x).flatten(1)

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        module = getattr(given, "trunk", None)
        if not isinstance(module, nn.Module):
            raise InvalidParameterError(
                "This model has a trunk of your own, whose code no file holds; give the oracle that it was fitted "
                "with: craftrl.load(path, oracle=NeuralOracle(trunk=...))."
            )
        return cls(copy.deepcopy(module), tuple(parts["arguments"]["output"])).with_weights(parts["weights"])


def new_trunk(trunk: nn.Module | None, obs_shape: tuple[int, ...], dim: int, *, maps: bool = True) -> Trunk:
    """A fresh trunk: a copy of the one given, the user's in `OwnTrunk`, or the default for the observations.

    `dim` is the number of a vector's features, and four times that of a place's in a map; without `maps` images become
    vectors too.
    """
    if isinstance(trunk, Trunk):
        return copy.deepcopy(trunk)
    if trunk is not None:
        own = copy.deepcopy(trunk).cpu()
        return OwnTrunk(own, _output_shape(own, obs_shape))
    if len(obs_shape) == 1:
        return VectorTrunk(obs_shape[0], dim)
    rows, columns, channels = obs_shape
    width = max(GROUPS, dim // 4 // GROUPS * GROUPS)
    return MapTrunk((rows, columns, channels), width, None if maps else dim)


def _output_shape(trunk: nn.Module, obs_shape: tuple[int, ...]) -> tuple[int, ...]:
    """(dim,) or (channels, rows, columns) that a trunk of the user's own returns for one observation."""
    shape = obs_shape if len(obs_shape) == 1 else (obs_shape[2], obs_shape[0], obs_shape[1])
    try:
        with torch.no_grad():
            made = trunk(torch.zeros(2, *shape))
        floats = isinstance(made, Tensor) and made.is_floating_point()
        got = tuple(made.shape) if floats else ()
        kind = made.dtype if isinstance(made, Tensor) else type(made).__name__
        problem = f"it returned shape {got}" if floats else f"it returned {kind}, not a tensor of floats"
    except RuntimeError as error:
        got, problem = (), str(error).splitlines()[0]
    if len(got) not in (2, 4) or got[0] != 2 or 0 in got:
        raise InvalidParameterError(
            f"A trunk must turn a batch of shape {(2, *shape)} into vectors (2, dim) or maps (2, channels, rows, "
            f"columns); {problem}; check its first layer's channels and its last layer."
        )
    return got[1:]
