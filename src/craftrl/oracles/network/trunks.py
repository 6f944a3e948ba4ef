"""Trunks: from observations to features, the part that log-odds, embedding and encoder share.

A trunk *prepares* its input by what it learned from a sample before training (scale, correlations of neighbours), which
never changes afterwards; only then come layers that are trained. An image stays a map of features, about one place for
every cell of what is seen: what an agent does is local, and a network that squeezes a frame into one vector before it
compares two of them never finds it (docs/how-it-works.md).
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from craftrl.core.saved import Savable
from craftrl.errors import InvalidParameterError

GROUPS = 8  # of the group normalisation
LARGEST_MAP = 14  # places along the longer side of a map, at most
WINDOW, PATCHES, RIDGE = 5, 50_000, 0.03  # of the whitening: pixels, neighbourhoods looked at, and the least variance
IMAGE_NOISE = 1.2  # noise added to standardised pixels while training: grain is never the same twice, and means nothing
VECTOR_NOISE = 0.1  # the same for features, each of which may be a measurement
FULL_NOISE_UP_TO = 10_000  # observations; with more, less noise is needed
FADING = 0.25  # the power of their number by which noise then falls
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


def _spread(x: Tensor) -> Tensor:
    """The deviation of each entry over x (n, ...), plus a little of the mean one."""
    deviation = x.std(dim=0) if len(x) > 1 else torch.zeros_like(x[0])
    return deviation + 0.1 * deviation.mean() + 1e-6


def _zca(x: Tensor, floor: float, ridge: float = 0.0) -> Tensor:
    """The matrix that decorrelates rows x (m, d) and changes their entries least. `floor`, and the share `ridge` of the
    mean variance, are added to every direction's: what is smaller stays small."""
    variance, axes = torch.linalg.eigh(x.T @ x / len(x))
    return axes @ ((variance.clamp_min(0) + ridge * variance.mean() + floor).rsqrt()[:, None] * axes.T)


class Standardise(nn.Module):
    """Each entry less its mean over the data, divided by its spread: else a small dim figure is never noticed."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(shape))

    def fit(self, x: Tensor) -> None:
        """Take mean and deviation from inputs (n, *shape)."""
        self.mean = x.mean(dim=0)
        self.scale = _spread(x)

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.scale


class Decorrelate(nn.Module):
    """Feature vectors turned so that each entry has mean 0, deviation 1 and no correlation with the others.

    Features may be measured in any unit and be mixtures of what matters: what is small or lies along a narrow direction
    counts as much as the rest, down to `FLOOR` of an entry's variance: what is smaller may be rounding alone.
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
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
            turn = _zca((x - mean) / unit, FLOOR)
        self.mean, self.turn = mean.float(), (turn / unit[:, None]).float()

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.turn


class Whiten(nn.Module):
    """Images whose neighbouring pixels are no longer correlated, each place scaled to deviation 1.

    Light and texture are shared by many pixels, and would otherwise be all that a network sees for long: in rooms of
    81 cells it stays at chance without this (docs/how-it-works.md). One fixed convolution of 5 x 5 pixels does it.
    """

    def __init__(self, image: tuple[int, int, int]) -> None:
        super().__init__()
        kernel = torch.zeros(image[0], image[0], WINDOW, WINDOW)
        kernel[range(image[0]), range(image[0]), WINDOW // 2, WINDOW // 2] = 1.0
        self.register_buffer("kernel", kernel)
        self.register_buffer("scale", torch.ones(image))

    def fit(self, x: Tensor) -> None:
        """Learn the correlations within neighbourhoods of standardised images (n, C, rows, columns)."""
        c, area = x.shape[1], WINDOW**2
        if min(x.shape[2:]) >= 2 * WINDOW and len(x) > 1:
            apart = max(1, int((len(x) * x.shape[2] * x.shape[3] / PATCHES) ** 0.5))
            parts = [image[..., i % apart :, i // apart % apart :] for i, image in enumerate(x.split(20))]
            found = [functional.unfold(part, WINDOW, stride=apart).transpose(1, 2).flatten(0, 1) for part in parts]
            patches = torch.cat(found).double()
            self.kernel = (
                _zca(patches, 1e-9, RIDGE)[torch.arange(c) * area + area // 2].view(c, c, WINDOW, WINDOW).float()
            )
            self.scale = _spread(torch.cat([self._white(part) for part in x.split(512)]))

    def _white(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.kernel, padding=WINDOW // 2)

    def forward(self, x: Tensor) -> Tensor:
        return (self._white(x) / self.scale).contiguous(memory_format=torch.channels_last)


class FlatMap(nn.Module):
    """Maps (n, channels, rows, columns) as rows (n, rows * columns * channels), the order in which they lie in memory:
    convolutions keep the channels of a place side by side, since that is quickest."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).flatten(1)

    @staticmethod
    def back(z: Tensor, shape: tuple[int, int, int]) -> Tensor:
        """The map again."""
        channels, rows, columns = shape
        return z.reshape(-1, rows, columns, channels).permute(0, 3, 1, 2)


class Trunk(SavableModule):
    """From inputs (n, *input) to features (n, dim): `layers` of what `prepare` makes of the input.

    dim        number of features
    map_shape  (channels, rows, columns) if the features are a map, flattened (`FlatMap`); else None
    noise      deviation of the noise that is added to what is prepared, while training
    prepare    what is done to inputs before anything that is trained
    """

    dim: int
    map_shape: tuple[int, int, int] | None = None
    noise = 0.0
    prepare: nn.Sequential
    layers: nn.Module

    @torch.no_grad()
    def fit_input(self, x: Tensor) -> None:
        """Learn the scale of the inputs (n, *input), before any training."""
        parts: list[Any] = [*self.prepare]
        for part in parts:
            part.fit(x)
            x = part(x)

    def features(self, prepared: Tensor) -> Tensor:
        """Features (n, dim) of inputs that are prepared."""
        if self.training and self.noise:  # drawn in one row, which is four times as quick for images on a CPU
            noise = torch.randn(prepared.numel(), device=prepared.device).as_strided(prepared.shape, prepared.stride())
            prepared = torch.add(prepared, noise, alpha=float(self.noise))
        return self.layers(prepared)

    def forward(self, x: Tensor) -> Tensor:
        return self.features(self.prepare(x))


class MapTrunk(Trunk):
    """A small convolutional network from images (n, C, rows, columns) to a map of features, flattened.

    Parameters
    ----------
    image
        (rows, columns, channels), from 4 x 4 up.
    width
        Features at each place of the map, a multiple of 8.
    """

    def __init__(self, image: tuple[int, int, int], width: int = 32) -> None:
        super().__init__()
        self.arguments = {"image": list(image), "width": width}
        self.noise = IMAGE_NOISE
        rows, columns, channels = image
        self.prepare = nn.Sequential(Standardise((channels, rows, columns)), Whiten((channels, rows, columns)))
        shorter = min(rows, columns)
        stride = 4 if shorter >= 24 else 3 if shorter >= 15 else 2 if shorter >= 8 else 1
        layers: list[nn.Module] = []
        n_in = channels
        while stride > 1:
            layers += [nn.Conv2d(n_in, width, stride + 2, stride, padding=1), nn.GroupNorm(GROUPS, width), nn.SiLU()]
            rows, columns, n_in = rows // stride, columns // stride, width
            stride = 2 if max(rows, columns) > LARGEST_MAP and min(rows, columns) >= 8 else 1
        layers += [nn.Conv2d(n_in, width, 3, padding=1), nn.SiLU(), FlatMap()]
        self.dim, self.map_shape = width * rows * columns, (width, rows, columns)
        self.layers = nn.Sequential(*layers)


class VectorTrunk(Trunk):
    """Three layers with dropout, for feature vectors; what comes out are soft codes.

    Log-odds are the same for all observations of a state, and jump where one state ends and another begins. So the last
    layer's units compete in groups (softmax): each group is a code of `LETTERS` values, learned with the rest, flat
    inside a region and steep at its border. What tells agents apart is weak, and a few thousand trajectories are soon
    learned by heart; dropout is against that.
    """

    def __init__(self, n_features: int, dim: int = 128) -> None:
        super().__init__()
        if dim < 2:
            raise InvalidParameterError(f"dim must be at least 2 for feature vectors; {dim} was given.")
        self.arguments = {"n_features": n_features, "dim": dim}
        self.noise = VECTOR_NOISE
        self.prepare = nn.Sequential(Decorrelate(n_features))
        layers: list[nn.Module] = []
        for n_in in [n_features] + [dim] * (VECTOR_LAYERS - 1):
            layers += [nn.Linear(n_in, dim), nn.Dropout(DROPOUT), nn.SiLU()]
        self.layers = nn.Sequential(*layers[:-1])
        self.dim = dim

    def features(self, prepared: Tensor) -> Tensor:
        codes = super().features(prepared).tensor_split(max(1, self.dim // LETTERS), dim=1)
        return CODE_SCALE * torch.cat([code.softmax(dim=1) for code in codes], dim=1)


class OwnTrunk(Trunk):
    """A trunk of the user's own: no file holds its code, so that a saved model is loaded with it."""

    def __init__(self, module: nn.Module, output: tuple[int, ...]) -> None:
        super().__init__()
        self.arguments = {"output": list(output)}
        self.prepare = nn.Sequential()
        self.module = module
        self.dim = int(np.prod(output))
        self.map_shape = (output[0], output[1], output[2]) if len(output) == 3 else None

    def features(self, prepared: Tensor) -> Tensor:
        made = self.module(prepared.contiguous())
        return FlatMap()(made) if self.map_shape else made

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Self:
        module = getattr(given, "trunk", None)
        if not isinstance(module, nn.Module):
            raise InvalidParameterError(
                "This model has a trunk of your own, whose code no file holds; give the oracle that it was fitted "
                "with: craftrl.load(path, oracle=NeuralOracle(trunk=...))."
            )
        return cls(copy.deepcopy(module), tuple(parts["arguments"]["output"])).with_weights(parts["weights"])


def new_trunk(
    trunk: nn.Module | None,
    obs_shape: tuple[int, ...],
    dim: int,
    noise: float | None = None,
    observations: int = FULL_NOISE_UP_TO,
) -> Trunk:
    """A fresh trunk: a copy of the one given, the user's in `OwnTrunk`, or the default for the observations.

    `dim` is the number of a vector's features, and four times that of a place's in a map. `noise` is added to prepared
    inputs while training; None for what suits so many observations: noise keeps few images from being learned by heart,
    and hides faint figures in many.
    """
    if isinstance(trunk, Trunk):
        return copy.deepcopy(trunk)
    if trunk is not None:
        own = copy.deepcopy(trunk).cpu()
        return OwnTrunk(own, _output_shape(own, obs_shape))
    made: Trunk
    if len(obs_shape) == 1:
        made = VectorTrunk(obs_shape[0], dim)
    else:
        rows, columns, channels = obs_shape
        made = MapTrunk((rows, columns, channels), max(GROUPS, dim // 4 // GROUPS * GROUPS))
        made.noise *= min(1.0, (FULL_NOISE_UP_TO / observations) ** FADING)
    made.noise = made.noise if noise is None else noise
    return made


def _output_shape(trunk: nn.Module, obs_shape: tuple[int, ...]) -> tuple[int, ...]:
    """(dim,) or (channels, rows, columns) that a trunk of the user's own returns for one observation."""
    shape = obs_shape if len(obs_shape) == 1 else (obs_shape[2], obs_shape[0], obs_shape[1])
    try:
        with torch.no_grad():
            made = trunk(torch.zeros(2, *shape))
        problem = f"it returned {type(made).__name__}, not a tensor"
        if isinstance(made, Tensor):
            if made.is_floating_point() and made.ndim in (2, 4) and len(made) == 2 and made.numel():
                return tuple(made.shape[1:])
            problem = f"it returned shape {tuple(made.shape)} of {made.dtype}"
    except RuntimeError as error:
        problem = str(error).splitlines()[0]
    raise InvalidParameterError(
        f"A trunk must turn a batch of shape {(2, *shape)} into vectors (2, dim) or maps (2, channels, rows, "
        f"columns) of floats; {problem}; check its first layer's channels and its last layer."
    )
