"""f_h by networks for all h: calibrated, and read off on every pair of the dataset.

Paper: Line 10, Equation 13
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax
from torch import Tensor, nn
from torch.nn import functional

from craftrl.core.evidence import chance_loss, held_out_p_value
from craftrl.data.dataset import TrajectoryDataset
from craftrl.oracles.learned import stratified_folds
from craftrl.oracles.network.collectives import firsts
from craftrl.oracles.network.frames import Frames
from craftrl.oracles.network.networks import PairNetwork
from craftrl.oracles.network.parts import IGNORE, Part, cross_entropy_parts
from craftrl.oracles.network.settings import Training, seeded
from craftrl.oracles.network.side_by_side import cores_for, read_each
from craftrl.oracles.network.training import Loss, train
from craftrl.oracles.network.trunks import new_trunk

__all__ = ["PairFit", "calibrated", "calibration", "fit_pairs", "pair_targets"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
VECTOR_PATIENCE = 3  # epochs without a gain: with feature vectors they are short, and training often pauses
SEVERAL = 60_000  # observations below which more than one network is trained, four at most


@dataclass(frozen=True)
class PairFit:
    """Calibrated agent logits of every pair, and what they are worth.

    logits           (n, H-1, K)
    loss, chance     (H-1,): on pairs that were not learned from, the loss of the logits and that of chance
    p_value          (H-1,): of the one against the other
    networks         all that were trained, the best on held-out pairs first
    unseen           for each network the trajectories that it did not learn from
    scale, shift     (H-1,) and (H-1, K): what calibrated the logits
    """

    logits: Floats
    loss: Floats
    networks: tuple[PairNetwork, ...]
    unseen: tuple[Ints, ...]
    chance: Floats
    p_value: Floats
    scale: Floats
    shift: Floats


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
    everyone = np.arange(tau.n)

    def fitted(seen: Ints, name: str, split: str) -> tuple[PairNetwork, float, Ints]:
        rows = frames.split(seen, training, split)
        with seeded(training, name):
            network = PairNetwork(new_trunk(trunk, tau.obs_shape, dim), tau.H, tau.K)
        return network, _trained(network, frames, rows, target, training, name), rows[1]

    if folds == 1:
        several = networks or int(np.clip(SEVERAL // (tau.n * tau.H), 1, 4))
        fits = [fitted(everyone, f"log-odds-{i + 1}-of-{several}", "log-odds") for i in range(several)]
        logits = np.mean([_pair_logits(network, frames, everyone, training) for network, _, _ in fits], axis=0)
        unseen = np.isin(everyone, fits[0][2])
    else:
        fold_of = stratified_folds(tau.agent, folds, training.rng("folds"))
        names = [f"log-odds-{fold + 1}-of-{folds}" for fold in range(folds)]
        fits = [fitted(np.flatnonzero(fold_of != fold), name, name) for fold, name in enumerate(names)]
        logits = np.empty((tau.n, tau.H - 1, tau.K))
        for fold, (network, loss_held, held) in enumerate(fits):
            own = np.flatnonzero(fold_of == fold)
            logits[own] = _pair_logits(network, frames, own, training)
            fits[fold] = network, loss_held, np.union1d(own, held)
        unseen = np.ones(tau.n, dtype=bool)
    scale, shift = (firsts(frames.ranks, found) for found in calibration(logits, target, unseen))
    logits = logits * scale[:, None] + shift
    with np.errstate(invalid="ignore"):
        loss = np.array([_cross_entropy(logits[unseen, h], target[unseen, h]) for h in range(tau.H - 1)])
    chance, p_value = _beside_chance(logits, target, unseen)
    best_first, _, of_each = zip(*sorted(fits, key=lambda fit: fit[1]))
    return PairFit(logits, loss, best_first, of_each, chance, p_value, scale, shift)


def _trained(
    network: PairNetwork, frames: Frames, rows: tuple[Ints, Ints], target: Ints, training: Training, name: str
) -> float:
    """Train one network; its held-out loss."""
    network.trunk.fit_input(frames.sample(training.rng("sample")))
    if len(frames.tau.obs_shape) == 1 and training.patience is None:
        training = training.but(patience=VECTOR_PATIENCE)
    loss = _pair_loss(network, frames, target)
    chance = chance_loss(frames.tau.agent)
    return train(network, loss, rows, training, name, frames.tau.H, chance=chance, feed=frames)


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


def _pair_loss(network: PairNetwork, frames: Frames, target: Ints) -> Loss:
    targets = torch.from_numpy(target).to(frames.device)

    def loss(rows: Tensor, of: Tensor | None = None) -> Sequence[Part]:
        x, among = frames.trajectories(rows), None if of is None else targets[of]
        return cross_entropy_parts(network.along, x, targets[rows], frames.parts_of(rows, network.trunk), among)

    return loss


@torch.no_grad()
def _pair_logits(network: PairNetwork, frames: Frames, rows: Ints, training: Training) -> Floats:
    size = max(1, frames.at_once // frames.tau.H)
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    chunks = frames.in_order(parts)
    with training.precision(frames.device):
        inputs = (frames.trajectories(r) for r in chunks if len(r))
        cores = cores_for(training, frames.device, network.trunk)
        return chunks.gathered(read_each(lambda x: network.along(x).double().cpu(), inputs, cores)).numpy()


def _cross_entropy(logits: Floats, target: Ints) -> float:
    chosen = target != IGNORE
    return float(functional.cross_entropy(torch.from_numpy(logits[chosen]), torch.from_numpy(target[chosen])))
