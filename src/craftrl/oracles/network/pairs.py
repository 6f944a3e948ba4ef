"""f_h by one network for all h: cross-fitted, calibrated, and read off on every pair of the dataset.

Paper: Line 10, Equation 13
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.networks import PairNetwork
from craftrl.oracles.network.training import Training, seeded, train
from craftrl.oracles.network.trunks import new_trunk

__all__ = ["IGNORE", "PairFit", "calibrated", "fit_pairs", "pair_targets"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
IGNORE = -100  # the target of a pair that is not there, left out by torch's cross entropy


@dataclass(frozen=True)
class PairFit:
    """Calibrated agent logits of every pair (n, H-1, K), their loss per step, and the best of the networks."""

    logits: Floats
    loss: Floats
    network: PairNetwork


def fit_pairs(
    frames: Frames, trunk: nn.Module | None, dim: int, folds: int, networks: int | None, training: Training
) -> PairFit:
    """Train to tell the agents apart, on all pairs of all steps at once.

    With one fold, `networks` of them see all trajectories but those held out for early stopping, and their logits are
    averaged: what one of them makes of the noise, another does not. With more folds, each trajectory's values come
    from a network that never saw it, so that no value leans towards its own agent.
    """
    tau = frames.tau
    target = pair_targets(tau)
    fits = []
    if folds == 1:
        seen = np.arange(tau.n)
        rows = frames.split(seen, training, "log-odds")
        unseen = np.isin(seen, rows[1])
        several = networks or networks_for(tau.n * tau.H)
        fits = [
            _fit(frames, trunk, dim, rows, target, training, f"log-odds-{i + 1}-of-{several}") for i in range(several)
        ]
        logits = np.mean([_pair_logits(network, frames, seen, training) for network, _ in fits], axis=0)
    else:
        logits = np.empty((tau.n, tau.H - 1, tau.K))
        unseen = np.ones(tau.n, dtype=bool)
        fold_of = training.rng("folds").permutation(tau.n) % folds
        for fold in range(folds):
            seen, own = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            name = f"log-odds-{fold + 1}-of-{folds}"
            rows = frames.split(seen, training, name)
            fits.append(_fit(frames, trunk, dim, rows, target, training, name))
            logits[own] = _pair_logits(fits[-1][0], frames, own, training)
    logits = calibrated(logits, target, unseen)
    with np.errstate(invalid="ignore"):
        loss = np.array([_cross_entropy(logits[unseen, h], target[unseen, h]) for h in range(tau.H - 1)])
    return PairFit(logits, loss, min(fits, key=lambda fit: fit[1])[0])


def networks_for(n_observations: int) -> int:
    """How many networks are averaged where there are so many observations: several where data is short."""
    return int(np.clip(60_000 // n_observations, 1, 4))


def _fit(
    frames: Frames,
    trunk: nn.Module | None,
    dim: int,
    rows: tuple[Ints, Ints],
    target: Ints,
    training: Training,
    name: str,
) -> tuple[PairNetwork, float]:
    """One network and its held-out loss."""
    tau = frames.tau
    with seeded(training, name):
        network = PairNetwork(new_trunk(trunk, tau.obs_shape, dim), tau.H, tau.K)
    network.trunk.fit_input(frames.sample(training.rng("sample")))
    loss = _pair_loss(network, frames, target)
    return network, train(network, loss, rows, training, name, tau.H, chance=math.log(tau.K), feed=frames)


def pair_targets(tau: TrajectoryDataset) -> Ints:
    """The agent of every pair (n, H-1), IGNORE where a trajectory has ended."""
    there = tau.lengths[:, None] > np.arange(1, tau.H)
    return np.where(there, tau.agent[:, None], IGNORE)


def calibrated(logits: Floats, target: Ints, unseen: NDArray[np.bool_]) -> Floats:
    """Logits scaled and shifted, step by step, so that they are honest on pairs the network did not learn from.

    One temperature and K offsets per step, by maximum likelihood on the unseen pairs.
    """
    out = logits.copy()
    for h in range(logits.shape[1]):
        chosen = unseen & (target[:, h] != IGNORE)
        if len(np.unique(target[chosen, h])) < logits.shape[2]:
            continue
        x, y = torch.from_numpy(logits[chosen, h]), torch.from_numpy(target[chosen, h])
        scale = torch.ones((), dtype=x.dtype, requires_grad=True)
        shift = torch.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
        optimiser = torch.optim.LBFGS([scale, shift], max_iter=30, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimiser.zero_grad()  # noqa: B023
            value = functional.cross_entropy(x * scale + shift, y) + 1e-3 * shift.square().sum()  # noqa: B023
            value.backward()
            return value

        optimiser.step(closure)
        out[:, h] = logits[:, h] * max(float(scale.detach()), 0.0) + shift.detach().numpy()
    return out


def _pair_loss(network: PairNetwork, frames: Frames, target: Ints):  # type: ignore[no-untyped-def]
    targets = torch.from_numpy(target).to(frames.device)

    def loss(rows: Tensor) -> Tensor:
        logits = network.along(frames.trajectories(rows))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets[rows].flatten())

    return loss


@torch.no_grad()
def _pair_logits(network: PairNetwork, frames: Frames, rows: Ints, training: Training) -> Floats:
    size = max(1, 4 * training.batch_of(frames.tau.n * frames.tau.H) // frames.tau.H)
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    with training.precision(frames.device), frames.in_order(parts) as chunks:
        return torch.cat([network.along(frames.trajectories(r)).double().cpu() for r in chunks]).numpy()


def _cross_entropy(logits: Floats, target: Ints) -> float:
    chosen = target != IGNORE
    return float(functional.cross_entropy(torch.from_numpy(logits[chosen]), torch.from_numpy(target[chosen])))
