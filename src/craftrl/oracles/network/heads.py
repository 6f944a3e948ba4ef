"""Small classifiers on the trunk's features, for separation and encoding.

They are many and tiny: what takes time on a GPU is to launch them, not to compute them. So those that belong together
are trained as one, their weights stacked, in large minibatches, and the host waits for none of it until the end.

Where several ranks work together, each trains all heads on all features, and those of the first are taken: a minibatch
takes less time than an exchange of gradients would.

Paper: Lines 25 and 46
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from craftrl.data.ranks import digest, present
from craftrl.oracles.network.checkpoints import Finished
from craftrl.oracles.network.collectives import firsts, take_firsts
from craftrl.oracles.network.networks import Head
from craftrl.oracles.network.parts import PARTS
from craftrl.oracles.network.settings import Training, TrainingError, seeded
from craftrl.oracles.network.side_by_side import Map, cores_for, side_by_side
from craftrl.oracles.network.training import ENOUGH
from craftrl.oracles.network.trunks import Standardise

__all__ = ["Heads", "head_logits"]

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
BATCH = 4096  # held-out observations read at once
APART = 2**16  # numbers in a minibatch from which on a CPU computes heads side by side
NOWHERE = Finished(None)
Rows = tuple[Ints, Ints]  # of training, and held out


@dataclass(frozen=True)
class Heads:
    """How classifiers of features z (m, dim) are trained, and those that are there already.

    scale     standardises features: heads learn from what it makes of z, and come out for z as it is
    finished  heads that were trained before: those in there are not trained again
    """

    training: Training
    scale: Standardise
    finished: Finished = NOWHERE

    def but(self, **changes: Any) -> Heads:
        """The same with other settings of training."""
        return replace(self, training=self.training.but(**changes))

    def fit(self, z: Tensor, label: Ints, n_classes: int, name: str) -> tuple[Head, Ints]:
        """One classifier, and the rows that were held out for its early stopping."""
        rows = self.training.split(len(z), name)
        return self._for_each([rows], z, label, n_classes, name)[0], rows[1]

    def cross_fitted(self, z: Tensor, label: Ints, n_classes: int, name: str, folds: int = 2) -> Floats:
        """Class logits (m, n_classes) of every row, each from a head that did not see it."""
        fold_of = self.training.rng("folds", name).permutation(len(z)) % folds
        rows = []
        for fold in range(folds):
            seen = np.flatnonzero(fold_of != fold)
            rows_train, rows_held = self.training.split(len(seen), f"{name}-{fold + 1}-of-{folds}")
            rows.append((seen[rows_train], seen[rows_held]))
        heads = self._for_each(rows, z, label, n_classes, name)
        logits = np.empty((len(z), n_classes))
        for fold, head in enumerate(heads):
            own = np.flatnonzero(fold_of == fold)
            logits[own] = head_logits(head, z[torch.from_numpy(own).to(z.device)])
        return firsts(present(), logits)

    def _for_each(self, rows: Sequence[Rows], z: Tensor, label: Ints, n_classes: int, name: str) -> list[Head]:
        """One head for each pair of training and held-out rows, from what is finished or newly trained."""

        def key() -> str:
            parts = (self.scale.mean, self.scale.scale, _sums(z))
            return digest(self.training.told(), n_classes, len(rows), label, *(part.cpu().numpy() for part in parts))

        def train() -> list[dict[str, Tensor]]:
            return [head.state_dict() for head in self._together(rows, z, label, n_classes, name)]

        weights = self.finished.heads(name, key, z.device, train)
        with torch.device("meta"):
            heads = [Head(z.shape[1], n_classes) for _ in weights]
        for head, its in zip(heads, weights):
            head.load_state_dict(its, assign=True)
        return [head.requires_grad_().eval() for head in heads]

    def _together(self, rows: Sequence[Rows], z: Tensor, label: Ints, n_classes: int, name: str) -> list[Head]:
        """One head for each pair of training and held-out rows, all trained at the same time; the best epoch of each.

        Where mixed precision leaves weights that are no numbers, they are trained again without it.
        """
        training, device = self.training, z.device
        with seeded(training, name):
            heads = [Head(z.shape[1], n_classes) for _ in rows]
        for head in heads:
            head.to(device)
        x = self.scale(z.float())
        target = torch.from_numpy(label.astype(np.int64)).to(device)
        weights = [torch.stack([p.detach() for p in same]).requires_grad_() for same in zip(*map(_weights, heads))]
        optimiser = torch.optim.AdamW(
            weights, lr=training.lr, weight_decay=training.weight_decay, fused=device.type == "cuda"
        )
        held = _as_tensor([r[1] for r in rows], device)
        size = min(len(r[0]) for r in rows)
        n_chunks = max(1, size // training.batch_of(size))
        best = _Best(weights)
        with side_by_side(cores_for(training, device)) as map_:
            apart = device.type == "cpu" and x[0].numel() * size // n_chunks >= APART
            backward = partial(_backward_apart, map_) if apart else partial(_backward, training.precision(device))
            for epoch in range(training.epochs):
                order = _as_tensor(
                    [training.rng(name, epoch, i).permutation(r[0])[:size] for i, r in enumerate(rows)], device
                )
                for i, index in enumerate(order.tensor_split(n_chunks, dim=1)):
                    share = (epoch + i / n_chunks) / training.epochs
                    optimiser.param_groups[0]["lr"] = training.lr * (0.5 + 0.5 * math.cos(math.pi * share))
                    optimiser.zero_grad(set_to_none=True)
                    backward(weights, x, target, index)
                    optimiser.step()
                with training.precision(device):
                    loss = _held_out_loss(weights, x, target, held)
                if best.after(loss, weights) >= training.patience_of(size):
                    break
        take_firsts(present(), best.weights)
        with torch.no_grad():
            for i, head in enumerate(heads):
                for p, w in zip(_weights(head), best.weights):
                    p.copy_(w[i])
        heads = [head.unscaled(self.scale).eval() for head in heads]
        values = (best.loss, *(p for head in heads for p in head.parameters()))
        if all(bool(value.isfinite().all()) for value in values):
            return heads
        if training.amp:
            return self.but(amp=False)._together(rows, z, label, n_classes, name)
        raise TrainingError(f"The weights of '{name}' are no longer finite; lower lr (now {training.lr:g}).")


@torch.no_grad()
def head_logits(head: nn.Module, z: Tensor) -> Floats:
    return torch.cat([head(part.float()).double().cpu() for part in z.split(65536)]).numpy()


def _sums(z: Tensor) -> Tensor:
    """One number for each row of features, in whole numbers: the same on every device, and another for other rows."""
    factors = torch.from_numpy(np.random.default_rng(0).integers(2**62, size=z.shape[1])).to(z.device)
    return torch.cat([(part.float().view(torch.int32) * factors).sum(1) for part in z.split(BATCH)])


class _Best:
    """The best weights so far of heads that are trained together."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.weights = [w.detach().clone() for w in weights]
        self.loss = torch.full((len(weights[0]),), math.inf, device=weights[0].device)
        self.stale = 0

    def after(self, loss: Tensor, weights: Sequence[Tensor]) -> int:
        """After an epoch with these held-out losses: for how many epochs now no head has become better."""
        better = loss < self.loss - ENOUGH
        self.stale = 0 if bool(better.any()) else self.stale + 1
        better = loss < self.loss
        self.loss = torch.where(better, loss, self.loss)
        for old, new in zip(self.weights, weights):
            old.copy_(torch.where(better.view(-1, *[1] * (new.ndim - 1)), new.detach(), old))
        return self.stale


def _weights(head: Head) -> list[Tensor]:
    return list(head.layers.parameters())


def _logits(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """What heads with stacked weights make of standardised features (heads, m, dim)."""
    w1, b1, w2, b2 = weights
    hidden = torch.baddbmm(b1[:, None], x, w1.transpose(1, 2)).relu()
    return torch.baddbmm(b2[:, None], hidden, w2.transpose(1, 2))


def _backward(precision: torch.autocast, weights: Sequence[Tensor], x: Tensor, target: Tensor, index: Tensor) -> None:
    """The gradients of a minibatch, rows (heads, m) of x, of all heads at once."""
    with precision:
        logits = _logits(weights, x[index])
    value = functional.cross_entropy(logits.float().flatten(0, 1), target[index].flatten())
    (len(index) * value).backward()


def _backward_apart(map_: Map, weights: Sequence[Tensor], x: Tensor, target: Tensor, index: Tensor) -> None:
    """The same, each head by itself and its rows in parts."""

    def of_one(head: int, rows: Tensor) -> Sequence[Tensor]:
        own = [w.detach()[head : head + 1].requires_grad_() for w in weights]
        loss = functional.cross_entropy(_logits(own, x[rows][None])[0], target[rows], reduction="sum")
        return torch.autograd.grad(loss / index.shape[1], own)

    parts = [(head, rows) for head, of_head in enumerate(index) for rows in of_head.tensor_split(PARTS)]
    found = map_(of_one, *zip(*parts))
    sums = [torch.zeros_like(w) for w in weights]
    for (head, _), gradients in zip(parts, found):
        for total, gradient in zip(sums, gradients):
            total[head : head + 1] += gradient
    for w, total in zip(weights, sums):
        w.grad = total


@torch.no_grad()
def _held_out_loss(weights: Sequence[Tensor], x: Tensor, target: Tensor, held: Tensor) -> Tensor:
    """(heads,): the mean loss of each head on its held-out rows (heads, m)."""
    logits = torch.cat([_logits(weights, x[index]) for index in held.split(BATCH, 1)], 1)
    return functional.cross_entropy(logits.float().transpose(1, 2), target[held], reduction="none").mean(1)


def _as_tensor(rows: Sequence[Ints], device: torch.device) -> Tensor:
    """Rows of equal number, the longer ones cut."""
    size = min(len(r) for r in rows)
    return torch.from_numpy(np.stack([r[:size] for r in rows])).to(device)
