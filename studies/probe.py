"""A linear probe: how much of the true state can be read off features by a linear map."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["linear_probe"]

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


def linear_probe(z: Floats, state: Ints, z_test: Floats, state_test: Ints, iterations: int = 60) -> float:
    """Test accuracy of multinomial logistic regression on standardised features, by L-BFGS."""
    mean, scale = z.mean(axis=0), np.maximum(z.std(axis=0), 1e-6)
    x, x_test = (torch.from_numpy(((part - mean) / scale).astype(np.float32)) for part in (z, z_test))
    target = torch.from_numpy(state.astype(np.int64))
    layer = nn.Linear(x.shape[1], int(max(state.max(), state_test.max())) + 1)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=iterations, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = functional.cross_entropy(layer(x), target) + 1e-5 * layer.weight.square().sum()
        value.backward()
        return value

    optimiser.step(closure)
    with torch.no_grad():
        return float((layer(x_test).argmax(dim=1).numpy() == state_test).mean())
