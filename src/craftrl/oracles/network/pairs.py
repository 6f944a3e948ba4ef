"""f_h by one network for all h: cross-fitted, calibrated, and read off on every pair of the dataset.

Paper: Line 10, Equation 13
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn import functional

from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.networks import PairNetwork, new_trunk
from craftrl.oracles.network.training import Training, seeded, train

__all__ = ["IGNORE", "PairFit", "calibrated", "calibration", "fit_pairs", "pair_targets", "trajectories"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
IGNORE = -100  # the target of a pair that is not there, left out by torch's cross entropy


@dataclass(frozen=True)
class PairFit:
    """Calibrated agent logits of every pair, and what they are worth.

    logits           (n, H-1, K)
    loss, chance     (H-1,): on pairs that were not learned from, the loss of the logits and that of chance
    p_value          (H-1,): of the one against the other
    network          that of the last fold
    scale, shift     (H-1,) and (H-1, K): what calibrated the logits
    """

    logits: Floats
    loss: Floats
    network: PairNetwork
    chance: Floats
    p_value: Floats
    scale: Floats
    shift: Floats


def fit_pairs(frames: Frames, trunk: nn.Module | None, dim: int, folds: int, training: Training) -> PairFit:
    """Train to tell the agents apart, on all pairs of all steps at once.

    With one fold a single network sees all trajectories but those held out for early stopping. With more, each
    trajectory's values come from a network that never saw it, so that no value leans towards its own agent.
    """
    tau = frames.tau
    target = pair_targets(tau)
    fold_of = training.rng("folds").permutation(tau.n) % folds
    logits = np.empty((tau.n, tau.H - 1, tau.K))
    unseen = np.zeros(tau.n, dtype=bool)
    network: PairNetwork | None = None
    for fold in range(folds):
        name = f"log-odds-{fold + 1}-of-{folds}"
        with seeded(training, name):
            body, n_features = new_trunk(trunk, tau.obs_shape, dim)
            network = PairNetwork(body, n_features, tau.H, tau.K, hidden=2 * n_features)
        seen = np.flatnonzero((fold_of != fold) | (folds == 1))
        rows_train, rows_held = training.split(len(seen), name)
        rows = seen[rows_train], seen[rows_held]
        train(network, _pair_loss(network, frames, target), rows, training, name, tau.H, chance=chance_loss(tau.agent))
        own = np.arange(tau.n) if folds == 1 else np.flatnonzero(fold_of == fold)
        logits[own] = _pair_logits(network, frames, own, training)
        unseen[rows[1] if folds == 1 else own] = True
    assert network is not None
    scale, shift = calibration(logits, target, unseen)
    logits = logits * scale[:, None] + shift
    with np.errstate(invalid="ignore"):
        loss = np.array([_cross_entropy(logits[unseen, h], target[unseen, h]) for h in range(tau.H - 1)])
    chance, p_value = _beside_chance(logits, target, unseen)
    return PairFit(logits, loss, network, chance, p_value, scale, shift)


def _beside_chance(logits: Floats, target: Ints, unseen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """For each step, the loss of chance on the unseen pairs and the p-value of the logits."""
    rows = [np.flatnonzero(unseen & (target[:, h] != IGNORE)) for h in range(target.shape[1])]
    held = [(log_softmax(logits[r, h], axis=1), target[r, h]) for h, r in enumerate(rows)]
    return np.array([chance_loss(y) for _, y in held]), np.array([held_out_p_value(log_p, y) for log_p, y in held])


def pair_targets(tau: TrajectoryDataset) -> Ints:
    """The agent of every pair (n, H-1), IGNORE where a trajectory has ended."""
    there = tau.lengths[:, None] > np.arange(1, tau.H)
    return np.where(there, tau.agent[:, None], IGNORE)


def calibrated(logits: Floats, target: Ints, unseen: NDArray[np.bool_]) -> Floats:
    """Logits scaled and shifted, step by step, so that they are honest on pairs the network did not learn from."""
    scale, shift = calibration(logits, target, unseen)
    return np.asarray(logits * scale[:, None] + shift)


def calibration(logits: Floats, target: Ints, unseen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """One temperature (H-1,) and K offsets (H-1, K) per step, by maximum likelihood on the unseen pairs."""
    factors, offsets = np.ones(logits.shape[1]), np.zeros(logits.shape[1:])
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
        factors[h], offsets[h] = float(scale.detach()), shift.detach().numpy()
        if factors[h] <= 0:  # the logits say nothing, or less: the agents' shares are the best there is
            factors[h], offsets[h] = 0.0, np.log(np.bincount(target[chosen, h]) / chosen.sum())
    return factors, offsets


def _pair_loss(network: PairNetwork, frames: Frames, target: Ints):  # type: ignore[no-untyped-def]
    targets = torch.from_numpy(target).to(frames.device)

    def loss(rows: Tensor) -> Tensor:
        logits = network.along(trajectories(frames, rows))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets[rows].flatten())

    return loss


@torch.no_grad()
def _pair_logits(network: PairNetwork, frames: Frames, rows: Ints, training: Training) -> Floats:
    size = max(1, 4 * training.batch_of(frames.tau.n * frames.tau.H) // frames.tau.H)
    chunks = torch.from_numpy(rows).split(size)
    return torch.cat([network.along(trajectories(frames, r)).double().cpu() for r in chunks]).numpy()


def trajectories(frames: Frames, rows: Tensor) -> Tensor:
    """Whole trajectories (n, H, *input)."""
    H = frames.tau.H
    step = torch.arange(H, device=rows.device).expand(len(rows), H)
    return frames.batch(step, rows[:, None].expand(len(rows), H))


def _cross_entropy(logits: Floats, target: Ints) -> float:
    chosen = target != IGNORE
    return float(functional.cross_entropy(torch.from_numpy(logits[chosen]), torch.from_numpy(target[chosen])))
