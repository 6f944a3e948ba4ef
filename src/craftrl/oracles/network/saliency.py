"""Which pixels decide on the state: gradients averaged over noisy copies (SmoothGrad, Smilkov et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.oracles.network.encoder import NetworkEncoder
from craftrl.oracles.network.frames import to_input
from craftrl.oracles.network.trunks import Standardise

__all__ = ["deciding", "saliency"]

COPIES, NOISE = 32, 0.3  # of the noise, as a share of each pixel's own deviation: without it, gradients are erratic


def saliency(encoder: NetworkEncoder, x: NDArray[Any]) -> NDArray[np.float64]:
    """How much each pixel of images (n, rows, columns, channels) moves the log-odds of the state named.

    Pixels are moved by their own deviation over the data: a pixel that never changes decides nothing, however steep the
    network is there. Returned is (n, rows, columns), the largest value of each image being 1.
    """
    return _heat(_gradients(encoder, _input(x)).abs() * _deviation(encoder))


def deciding(encoder: NetworkEncoder, x: NDArray[Any]) -> NDArray[np.float64]:
    """What the log-odds of the state owe to each pixel's not being as in the mean image, to first order.

    Saliency alone is large where a change would matter most, which may be a place that never changes. What is there to
    be seen in an image is what differs from the others: here gradients are multiplied by it, and what speaks for the
    state counts. The largest value of each image is 1. A trunk of the user's own has no mean image; its saliency is
    returned.
    """
    standardise = getattr(encoder.trunk, "standardise", None)
    if not isinstance(standardise, Standardise):
        return saliency(encoder, x)
    seen = _input(x)
    return _heat(_gradients(encoder, seen) * (seen - standardise.mean.cpu()))


def _gradients(encoder: NetworkEncoder, seen: Tensor) -> Tensor:
    """Of the log-odds of the state named, in the sum over noisy copies, for inputs (n, channels, rows, columns).

    All images get the same noise, so that what is found in one depends on no other.
    """
    generator = torch.Generator().manual_seed(0)
    deviation = _deviation(encoder)
    total = torch.zeros(seen.shape)
    for _ in range(COPIES):
        noisy = seen + NOISE * deviation * torch.randn(seen.shape[1:], generator=generator)
        noisy = noisy.to(encoder.device).requires_grad_()
        log_p = encoder.head(encoder.trunk(noisy)).log_softmax(dim=-1)
        named = log_p.detach().argmax(dim=-1)
        rival = log_p.scatter(1, named[:, None], -torch.inf).logsumexp(dim=1)
        (log_p.gather(1, named[:, None])[:, 0] - rival).sum().backward()
        assert noisy.grad is not None
        total += noisy.grad.cpu()
    return total


def _heat(parts: Tensor) -> NDArray[np.float64]:
    """The sum over channels of what speaks for the state, the largest value of each image being 1."""
    heat = parts.sum(dim=1).clamp_min(0).double().numpy()
    return np.asarray(heat / np.maximum(heat.max(axis=(1, 2), keepdims=True), 1e-12))


def _input(x: NDArray[Any]) -> Tensor:
    return to_input(torch.from_numpy(np.ascontiguousarray(x)))


def _deviation(encoder: NetworkEncoder) -> Tensor:
    """Of each pixel over the data that the trunk was fitted to; a sixth of the range for a trunk of the user's own."""
    standardise = getattr(encoder.trunk, "standardise", None)
    return standardise.scale.cpu() if isinstance(standardise, Standardise) else torch.tensor(1 / 6)
