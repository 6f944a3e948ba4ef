"""One encoder for all steps of a stationary world, trained on the labels of all steps at once.

Step by step, CRAFT uses a state's observations at one h alone, and its labels are only as clean as those of the
step before. Where the world is stationary, the states of all steps are matched and a single network is
trained on all of them: what one step got wrong is outvoted by the others.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from craftrl.core.oracle import EncoderFit
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.network.encoders import NetworkEncoder
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.networks import Classifier, Head
from craftrl.oracles.network.pairs import pair_targets
from craftrl.oracles.network.parts import IGNORE, Part, cross_entropy_parts
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.training import Loss, train
from craftrl.oracles.network.trunks import Standardise, Trunk
from craftrl.states.visits import count_visits

__all__ = ["fit_shared"]

Ints = NDArray[np.integer]
SMOOTHING = 0.5  # pairs of states begin with half a visit of each agent


def fit_shared(
    frames: Frames,
    labels: Ints,
    n_states: int,
    trunk: Trunk,
    head: Head,
    scale: Standardise,
    training: Training,
    *,
    agent_weight: float = 0.0,
    name: str = "shared",
) -> EncoderFit:
    """One encoder for all steps from the states (n, H) of all observations, -1 for unknown.

    It begins with copies of `trunk` and `head`, a classifier that is good already, and both are trained.

    `agent_weight` adds the agents' log-likelihood given the states, the loss of Line 10 with the states as its
    bottleneck, to the classification loss: the chain of all steps in its neural form. The loss returned is the
    held-out one.
    """
    tau = frames.tau
    network = Classifier(copy.deepcopy(trunk), scale, head.scaled(scale))
    loss = _loss(network, frames, labels, n_states, agent_weight)
    rows = frames.split(np.arange(tau.n), training, name)
    held_out = train(network, loss, rows, training, name, per_row=tau.H, feed=frames, targets=labels)
    return EncoderFit(NetworkEncoder(network.trunk, network.head.unscaled(scale), frames.device), held_out)


def _loss(network: Classifier, frames: Frames, labels: Ints, n_states: int, agent_weight: float) -> Loss:
    tau = frames.tau
    target = torch.from_numpy(np.where(labels < 0, IGNORE, labels)).to(frames.device)
    agent = torch.from_numpy(pair_targets(tau)).to(frames.device)
    table = torch.from_numpy(_agent_table(labels, tau, n_states)).float().to(frames.device) if agent_weight else None

    def logits(x: Tensor) -> Tensor:
        return network(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def loss(rows: Tensor, of: Tensor | None = None) -> Tensor | Sequence[Part]:
        x = frames.trajectories(rows)
        if table is None:
            among = None if of is None else target[of]
            return cross_entropy_parts(logits, x, target[rows], frames.parts_of(rows, network.trunk), among)
        found = logits(x).float()
        q = found.softmax(dim=-1)
        log_p = torch.einsum("nhs,hstk,nht->nhk", q[:, :-1], table, q[:, 1:]).clamp_min(1e-6).log()
        how = "mean" if of is None else "sum"
        agents = functional.nll_loss(log_p.flatten(0, 1), agent[rows].flatten(), reduction=how)
        states = functional.cross_entropy(found.flatten(0, 1), target[rows].flatten(), reduction=how)
        if of is not None:
            states, agents = states / _known(target[of]), agents / _known(agent[of])
        return states + agent_weight * agents

    return loss


def _known(target: Tensor) -> Tensor:
    """How many targets there are, one at least."""
    return (target != IGNORE).sum().clamp_min(1)


def _agent_table(labels: Ints, tau: TrajectoryDataset, n_states: int) -> NDArray[np.float64]:
    """Pr(agent | s_h, s_{h+1}) for each h, shape (H-1, n_states, n_states, K)."""
    sizes = (n_states, n_states, tau.K)
    pairs = zip(labels.T, labels.T[1:])
    counts = SMOOTHING + np.stack([count_visits(s_h, s_next, tau.agent, sizes=sizes) for s_h, s_next in pairs])
    return counts / counts.sum(axis=-1, keepdims=True)
