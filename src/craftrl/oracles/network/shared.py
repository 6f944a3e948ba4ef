"""One encoder for all steps of a stationary world, trained on the labels of all steps at once.

Step by step, CRAFT uses a state's observations at one h alone, and its labels are only as clean as those of the
step before. Where the world is stationary, the states of all steps are matched and a single network is
trained on all of them: what one step got wrong is outvoted by the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.heads import NetworkEncoder
from craftrl.oracles.network.networks import Classifier, new_trunk
from craftrl.oracles.network.pairs import IGNORE, pair_targets, trajectories
from craftrl.oracles.network.training import Training, seeded, train
from craftrl.states.visits import count_visits

__all__ = ["SharedFit", "fit_shared"]

Ints = NDArray[np.integer]
SMOOTHING = 0.5  # pairs of states begin with half a visit of each agent


@dataclass(frozen=True)
class SharedFit:
    """One encoder, the states (n, H) that it reads off the dataset, and how many states there are."""

    encoder: NetworkEncoder
    labels: NDArray[np.int64]
    n_states: int

    def states_at(self, h: int, min_share: float) -> Ints:
        """The states that at least `min_share` of the trajectories are in at step h."""
        visits = count_visits(self.labels[:, h - 1], sizes=(self.n_states,))
        return np.flatnonzero(visits >= min_share * len(self.labels))


def fit_shared(
    tau: TrajectoryDataset,
    labels: NDArray[np.int64],
    trunk: nn.Module | None,
    training: Training,
    *,
    dim: int = 128,
    rounds: int = 2,
    min_share: float = 0.0,
    agent_weight: float = 0.0,
) -> SharedFit:
    """Train on global labels (n, H), -1 for unknown; read the labels off the result; repeat.

    A state that fewer than `min_share` of the trajectories are in at every step is dropped between rounds.
    `agent_weight` adds the agents' log-likelihood given the states, the loss of Line 10 with the states as its
    bottleneck, to the classification loss: the chain of all steps in its neural form.
    """
    frames = Frames(tau, training.to_device())
    for turn in range(1, rounds + 1):
        labels, n_states = _supported(labels, min_share)
        name = f"shared-{turn}-of-{rounds}"
        with seeded(training, name):
            body, n_features = new_trunk(trunk, tau.obs_shape, dim)
            network = Classifier(body, n_features, n_states)
        loss = _loss(network, frames, labels, n_states, agent_weight)
        train(network, loss, training.split(tau.n, name), training, name, per_row=tau.H)
        encoder = NetworkEncoder(network.trunk, network.head, frames.device)
        labels = _read(network, frames, training)
    labels[tau.lengths[:, None] <= np.arange(tau.H)] = -1
    return SharedFit(encoder, labels, n_states)


def _supported(labels: NDArray[np.int64], min_share: float) -> tuple[NDArray[np.int64], int]:
    """Labels without the states that are rare at every step, renumbered; one state where none is left."""
    n, H = labels.shape
    n_states = int(labels.max(initial=-1)) + 1
    visits = np.stack([count_visits(labels[:, h], sizes=(n_states,)) for h in range(H)])
    kept = visits.max(axis=0, initial=0) >= max(min_share * n, 1)
    if not kept.any():
        return np.zeros_like(labels), 1
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    return number[labels], int(kept.sum())


def _loss(
    network: Classifier, frames: Frames, labels: Ints, n_states: int, agent_weight: float
) -> Callable[[Tensor], Tensor]:
    tau = frames.tau
    target = torch.from_numpy(np.where(labels < 0, IGNORE, labels)).to(frames.device)
    agent = torch.from_numpy(pair_targets(tau)).to(frames.device)
    table = torch.from_numpy(_agent_table(labels, tau, n_states)).float().to(frames.device) if agent_weight else None

    def loss(rows: Tensor) -> Tensor:
        x = trajectories(frames, rows)
        logits = network(x.flatten(0, 1)).float()
        value = functional.cross_entropy(logits, target[rows].flatten())
        if table is None:
            return value
        q = logits.softmax(dim=-1).unflatten(0, (len(rows), tau.H))
        log_p = torch.einsum("nhs,hstk,nht->nhk", q[:, :-1], table, q[:, 1:]).clamp_min(1e-6).log()
        return value + agent_weight * functional.nll_loss(log_p.flatten(0, 1), agent[rows].flatten())

    return loss


def _agent_table(labels: Ints, tau: TrajectoryDataset, n_states: int) -> NDArray[np.float64]:
    """Pr(agent | s_h, s_{h+1}) for each h, shape (H-1, n_states, n_states, K)."""
    sizes = (n_states, n_states, tau.K)
    pairs = zip(labels.T, labels.T[1:])
    counts = SMOOTHING + np.stack([count_visits(s_h, s_next, tau.agent, sizes=sizes) for s_h, s_next in pairs])
    return counts / counts.sum(axis=-1, keepdims=True)


@torch.no_grad()
def _read(network: Classifier, frames: Frames, training: Training) -> NDArray[np.int64]:
    tau = frames.tau
    size = max(1, 4 * training.batch // tau.H)
    chunks = torch.arange(tau.n).split(size)
    states = [network(trajectories(frames, r).flatten(0, 1)).argmax(dim=-1).view(len(r), tau.H) for r in chunks]
    return torch.cat(states).cpu().numpy()
