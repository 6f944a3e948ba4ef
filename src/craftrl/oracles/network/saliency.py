"""Which pixels decide on the state: gradients averaged over noisy copies (SmoothGrad, Smilkov et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from craftrl.oracles.network.encoder import NetworkEncoder
from craftrl.oracles.network.frames import as_tensor, to_input
from craftrl.oracles.network.trunks import Standardise

COPIES, NOISE = 32, 0.3  # of the noise, as a share of each pixel's own deviation: without it, gradients are erratic
UNKNOWN = 1 / 6  # the deviation that pixels are taken to have where a trunk of the user's own knows none


def deciding(encoder: NetworkEncoder, x: NDArray[Any]) -> NDArray[np.float64]:
    """What the log-odds of the state named owe to each pixel's not being as in the mean image, to first order.

    A gradient alone is large where a change would matter most, which may be a place that never changes. What is there
    to be seen in an image is what differs from the others: gradients are multiplied by it, and what speaks for the
    state counts. A trunk of the user's own has no mean image; its gradients count as they are, to either side. For
    images (n, rows, columns, channels) this is (n, rows, columns), the largest value of each image being 1. All get the
    same noise, so that what is found in one depends on no other.
    """
    scale = next((part for part in encoder.trunk.prepare if isinstance(part, Standardise)), None)
    deviation = torch.tensor(UNKNOWN) if scale is None else scale.scale.cpu()
    seen, generator = to_input(as_tensor(x)), torch.Generator().manual_seed(0)
    gradient = torch.zeros(seen.shape)
    for _ in range(COPIES):
        noisy = seen + NOISE * deviation * torch.randn(seen.shape[1:], generator=generator)
        noisy = noisy.to(encoder.device).requires_grad_()
        log_p = encoder.head(encoder.trunk(noisy)).log_softmax(dim=-1)
        named = log_p.detach().argmax(dim=-1)
        rival = log_p.scatter(1, named[:, None], -torch.inf).logsumexp(dim=1)
        (log_p.gather(1, named[:, None])[:, 0] - rival).sum().backward()
        assert noisy.grad is not None
        gradient += noisy.grad.cpu()
    owed = gradient.abs() * deviation if scale is None else gradient * (seen - scale.mean.cpu())
    heat = owed.sum(dim=1).clamp_min(0).double().numpy()
    return np.asarray(heat / np.maximum(heat.max(axis=(1, 2), keepdims=True), 1e-12))
