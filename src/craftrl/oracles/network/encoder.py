"""phi': the one encoder, from observations by way of their embedding to states.

States are functions of the embedding already, so that nothing is trained: a new observation has the state of those
whose embeddings are nearest.

Paper: Line 46
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import Tensor, nn

from craftrl.arrays import Ints
from craftrl.core.saved import Savable
from craftrl.oracles.network.frames import as_tensor, read_at_once, to_input
from craftrl.oracles.network.log_odds import embedder
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.trunks import SavableModule, Standardise, Trunk

MAX_PROTOTYPES = 8000  # embeddings that states are read by, at most
MIN_PROTOTYPES = 16  # of each state at least, where there are as many
POWER = 8.0  # one at twice the distance says 2 ** -16 as much: what counts are the few nearest, at any density
CORE_RADIUS = 0.5  # of the usual distance between neighbours: below it, distances make no difference
NEIGHBOUR = 5  # which neighbour's distance is the usual one
FAR = 1e3  # where the prototype of a state lies that was never seen
COPIES, NOISE = 32, 0.3  # of the noise, as a share of each pixel's own deviation: without it, gradients are erratic
UNKNOWN = 1 / 6  # the deviation that pixels are taken to have where a trunk of the user's own knows none


class StateHead(SavableModule):
    """State logits (n, n_states) of the trunk's features (n, dim): what the nearest prototypes in the standardised
    embedding say, each weighted by a power of its distance.

    counts  how many prototypes each state has; they are in the order of the states
    """

    def __init__(self, dim: int, embedding: int, counts: Sequence[int]) -> None:
        super().__init__()
        self.arguments = {"dim": dim, "embedding": embedding, "counts": list(counts)}
        self.counts = [int(count) for count in counts]
        self.phi = embedder(dim, embedding)
        self.scale = Standardise((embedding,))
        self.prototypes: Tensor
        self.core: Tensor
        self.register_buffer("prototypes", torch.randn(sum(self.counts), embedding))
        self.register_buffer("core", torch.ones(()))

    def embed(self, z: Tensor) -> Tensor:
        """Standardised embeddings (n, d)."""
        return self.scale(self.phi(z))

    def forward(self, z: Tensor) -> Tensor:
        return self.read(self.embed(z))

    def read(self, phi: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Logits (n, n_states) of standardised embeddings (n, d), without the prototypes that are `hidden`, bool
        (n, prototypes)."""
        there = self.prototypes
        squares = (phi.square().sum(1, keepdim=True) - 2 * phi @ there.T + there.square().sum(1)).clamp_min(0)
        said = -POWER * torch.log1p(squares / self.core.square())
        if hidden is not None:
            said = said.masked_fill(hidden, -torch.inf)
        return torch.cat([part.logsumexp(dim=1, keepdim=True) for part in said.split(self.counts, dim=1)], dim=1)


def fit_head(
    phi: nn.Sequential, scale: Standardise, z: Tensor, row: Ints, state: Ints, n_states: int, rng: np.random.Generator
) -> tuple[StateHead, float]:
    """A readout of standardised embeddings z (m, d) with these states (m,), and its loss.

    The loss is the error of each state, summed, on prototypes that are read without those of their own trajectory,
    `row` (m,).
    """
    unseen = np.setdiff1d(np.arange(n_states), state)
    z, state = torch.cat([z, z.new_full((len(unseen), z.shape[1]), FAR)]), np.append(state, unseen)
    row = np.append(row, np.full(len(unseen), -1))
    order = rng.permutation(len(state))
    order = order[np.argsort(state[order], kind="stable")]
    turn = np.arange(len(order)) - np.searchsorted(state[order], state[order])  # how many of its state came before
    chosen = order[np.lexsort((rng.random(len(order)), turn >= MIN_PROTOTYPES))][:MAX_PROTOTYPES]
    chosen = chosen[np.argsort(state[chosen], kind="stable")]
    own, of, points = state[chosen], row[chosen], z[torch.from_numpy(chosen)]
    head = StateHead(phi[0].in_features, z.shape[1], np.bincount(own, minlength=n_states).tolist())  # type: ignore[arg-type]
    head.phi, head.scale, head.prototypes = copy.deepcopy(phi).cpu(), copy.deepcopy(scale), points
    near = cKDTree(points).query(points, min(NEIGHBOUR + 1, len(points)))[0].reshape(len(points), -1)[:, -1]
    head.core = torch.tensor(CORE_RADIUS * float(np.median(near)) + 1e-3, dtype=torch.float32)
    with torch.no_grad():
        parts = np.array_split(np.arange(len(own)), max(1, len(own) // 1000))
        hidden = (torch.from_numpy(of[part, None] == of) for part in parts)
        said = [head.read(points[torch.from_numpy(part)], mine).argmax(dim=1) for part, mine in zip(parts, hidden)]
    wrong = torch.cat(said).numpy() != own
    return head.eval(), float(sum(wrong[own == s].mean() for s in np.unique(own[of >= 0])))


def inputs_of(x: NDArray[Any], device: torch.device) -> Iterator[Tensor]:
    """Network inputs for observations (n, *obs), some at a time."""
    for part in np.array_split(x, max(1, -(-len(x) // read_at_once(x.shape[1:], device)))):
        yield to_input(as_tensor(part).to(device))


class NetworkEncoder(Savable):
    """phi': the most likely state by a trunk and its head."""

    def __init__(self, trunk: Trunk, head: StateHead, device: torch.device | None = None) -> None:
        self.device = device or Training().to_device()  # a GPU, if there is one
        self.trunk, self.head = trunk.to(self.device), head.to(self.device)

    def __call__(self, x: NDArray[Any]) -> Ints:
        """States of observations (n, *obs)."""
        return np.asarray(self._of_all(x, lambda z: self.head(z).argmax(dim=1)), dtype=np.int64)

    def embed(self, x: NDArray[Any]) -> NDArray[np.floating]:
        """phi: standardised embeddings (n, d) of observations (n, *obs)."""
        return self._of_all(x, self.head.embed)

    @torch.no_grad()
    def _of_all(self, x: NDArray[Any], read: Callable[[Tensor], Tensor]) -> NDArray[Any]:
        parts = [read(self.trunk(part).float()).cpu() for part in inputs_of(x, self.device)]
        return np.asarray(torch.cat(parts).numpy())

    def saved(self) -> dict[str, Any]:
        return {"trunk": self.trunk, "head": self.head}


def deciding(encoder: NetworkEncoder, x: NDArray[Any]) -> NDArray[np.float64]:
    """Which pixels decide on the state: (n, rows, columns) for images, the largest value of each being 1.

    That is what the log-odds of the state named owe to each pixel's not being as in the mean image, to first order:
    gradients, averaged over noisy copies (SmoothGrad, Smilkov et al. 2017), times the difference. A gradient alone is
    large where a change would matter most, which may be a place that never changes. A trunk of the user's own has no
    mean image; its gradients count as they are, to either side. All images get the same noise.
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
