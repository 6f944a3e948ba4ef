"""One training loop for every network here: minibatches, early stopping, checkpoints, and errors that help."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl._version import __version__
from craftrl.data.ranks import Ranks, digest, speaks
from craftrl.errors import InvalidParameterError
from craftrl.oracles.network.averaging import WeightAverage
from craftrl.oracles.network.checkpoints import Checkpoint
from craftrl.oracles.network.collectives import GradientSum, take_firsts, total
from craftrl.oracles.network.minibatches import Feed, Minibatches
from craftrl.oracles.network.noise import with_own_noise
from craftrl.oracles.network.parts import Part, keep_freed_memory
from craftrl.oracles.network.settings import Training, TrainingError, seeded
from craftrl.oracles.network.side_by_side import Map, cores_for, gradients, may_be_apart, side_by_side
from craftrl.progress import progress_bar, tell, watched

__all__ = ["Loss", "train"]

Ints = NDArray[np.integer]
PLATEAU = 0.03  # nats below chance from which on a network has begun to learn
ENOUGH = 0.0005  # nats by which the held-out loss must fall for an epoch to have paid


class Loss(Protocol):
    """The mean loss of a minibatch.

    Where several ranks divide a minibatch, `rows` are those of this rank and `of` all of its rows: what comes back is
    then their part of the mean over `of`, so that the parts of all ranks add up to it.
    """

    def __call__(self, rows: Tensor, of: Tensor | None = None) -> Tensor | Sequence[Part]: ...


def train(
    module: nn.Module,
    loss: Loss,
    rows: tuple[Ints, Ints],
    training: Training,
    name: str,
    per_row: int = 1,
    chance: float | None = None,
    feed: Feed | None = None,
    targets: Ints | None = None,
) -> float:
    """Train in place, leave the best weights on held-out rows, and return their held-out loss.

    `loss(indices)` is the mean loss of a minibatch, or the parts that add up to it; `rows` are training and held-out
    indices; `per_row` is how many observations one row holds, so that `batch` counts observations; `chance` is the loss
    of knowing nothing, if that is known. `feed` knows in which order rows are best asked for; None where any order will
    do. `targets` are the labels that are learned, where another run of the same name may learn others: a checkpoint
    goes with its targets.

    Where several ranks work together (`feed.ranks`), each computes its share of every minibatch. They add up their
    gradients and their held-out losses, so that all take the same steps, stop at the same epoch and end with the same
    weights, which is checked.
    """
    device = training.to_device()
    module.to(device)
    keep_freed_memory()
    trunk = getattr(module, "trunk", module)
    with side_by_side(cores_for(training, device, trunk)) as map_:
        passes = _Passes(module, loss, training, device, map_ if may_be_apart(trunk) else None)
        return _train(passes, rows, name, per_row, chance, feed or Feed(), targets)


def _train(
    passes: _Passes,
    rows: tuple[Ints, Ints],
    name: str,
    per_row: int,
    chance: float | None,
    feed: Feed,
    targets: Ints | None,
) -> float:
    module, training, device = passes.module, passes.training, passes.device
    rows_train, rows_held = rows
    size = max(2, training.batch_of(len(rows_train) * per_row) // per_row)
    ranks = feed.ranks
    optimiser = torch.optim.AdamW(
        module.parameters(), lr=training.lr, weight_decay=training.weight_decay, fused=device.type == "cuda"
    )
    _check_divisible(module, ranks)
    take_firsts(ranks, [*module.parameters(), *module.buffers()])
    checkpoint = _checkpoint(module, training, name, feed, targets)
    average = WeightAverage(module)
    add_up_gradients = GradientSum(ranks, module.parameters())
    own_noise = "" if ranks.rank == 0 else f"-rank-{ranks.rank}"  # that of the rows which this rank computes

    def held_out() -> float:
        return passes.mean_loss(feed.in_order(np.array_split(rows_held, math.ceil(len(rows_held) / (4 * size)))))

    at = _Progress()
    weights = copy.deepcopy(module.state_dict())
    if saved := checkpoint.load(device):
        module.load_state_dict(saved["module"])
        optimiser.load_state_dict(saved["optimiser"])
        average.load_state_dict(saved["average"])
        at, weights = _Progress(**saved["progress"]), saved["weights"]
    else:
        at = _Progress(best=held_out())
    bar = _bar(training, name, at.epoch)
    patience = training.patience_of(len(rows_train) * per_row)
    tell(f"training {name}")
    while not at.done(training.epochs, patience):
        module.train()
        chunks = feed.shuffled(rows_train, size, training.rng(name, at.epoch))
        with seeded(training, f"{name}-{at.epoch}{own_noise}", device):
            for i, chunk in enumerate(chunks):
                risen = min(1.0, (at.epoch * len(chunks) + i + 1) / (training.warm_up + 1))
                optimiser.param_groups[0]["lr"] = training.lr * risen
                optimiser.zero_grad(set_to_none=True)
                passes.backward(chunk, chunks.whole(i))
                add_up_gradients()
                optimiser.step()
                average.update(window=len(chunks) / 2)
        with average.in_place():
            held = held_out()
            if not math.isfinite(held):
                mixed = ", or set amp=False" if training.amp and device.type == "cuda" else ""
                raise TrainingError(
                    f"The loss of '{name}' is no longer finite after epoch {at.epoch + 1}; lower lr (now "
                    f"{training.lr:g}){mixed}."
                )
            if held < at.best:
                weights = copy.deepcopy(module.state_dict())
        at = at.after(held, chance, training)
        state = {"module": module.state_dict(), "optimiser": optimiser.state_dict(), "weights": weights}
        checkpoint.save({**state, "average": average.state_dict(), "progress": asdict(at)})
        stands = f"held-out {held:.4f}" + (f", chance {chance:.4f}" if chance else "")
        tell(f"{name}, epoch {at.epoch} of at most {training.epochs + at.at_chance}, {stands}")
        if bar is not None:
            bar.set_postfix_str(stands)
            bar.update()
    if bar is not None:
        bar.close()
    module.load_state_dict(weights)
    module.eval()
    if ranks.world > 1:
        ranks.agree(f"weights after training '{name}'", at, *(w.cpu().float().numpy() for w in weights.values()))
    return at.best


def _checkpoint(module: nn.Module, training: Training, name: str, feed: Feed, targets: Ints | None) -> Checkpoint:
    """Where this run is saved: for this data, these settings and layers, and this version of the library. A run with
    other targets, or one that began with other weights, is another run."""
    if training.checkpoints is None:
        return Checkpoint(None, name, "")
    run = repr((__version__, training.told(), feed.data(), digest(module)))
    began = digest(targets, *(weight.detach().cpu().float().numpy() for weight in module.parameters()))
    return Checkpoint(training.checkpoints, name, run, began, feed.ranks)


def _check_divisible(module: nn.Module, ranks: Ranks) -> None:
    """Raise where a layer looks at the whole minibatch, of which a rank has a part alone."""
    if ranks.world > 1 and any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules()):
        raise InvalidParameterError(
            "A trunk that several ranks train must treat each observation by itself; this one has batch "
            "normalisation; use nn.GroupNorm instead."
        )


@dataclass(frozen=True)
class _Progress:
    """Where a training run stands: epochs in all, those of them at chance, best held-out loss, epochs since."""

    epoch: int = 0
    at_chance: int = 0
    best: float = math.inf
    stale: int = 0

    def done(self, epochs: int, patience: int) -> bool:
        return self.stale >= patience or self.epoch - self.at_chance >= epochs

    def after(self, held: float, chance: float | None, training: Training) -> _Progress:
        """After one more epoch with this held-out loss."""
        best = min(self.best, held)
        if chance is not None and best > chance - PLATEAU and self.at_chance < training.plateau:
            return _Progress(self.epoch + 1, self.at_chance + 1, best)
        stale = 0 if held < self.best - ENOUGH else self.stale + 1
        return _Progress(self.epoch + 1, self.at_chance, best, stale)


@dataclass(frozen=True)
class _Passes:
    """The loss of a module over minibatches, forward and backward.

    `map_` computes the parts of a minibatch side by side; None where they may not be.
    """

    module: nn.Module
    loss: Loss
    training: Training
    device: torch.device
    map_: Map | None

    def backward(self, rows: Tensor, of: Tensor | None) -> None:
        """Add the gradients of a minibatch to those of the parameters."""
        with _enough_memory():
            parts = self._parts(rows, of)
            if self.map_ is not None and len(parts) > 1:
                gradients(with_own_noise(parts), list(self.module.parameters()), self.map_)
            else:
                for part in parts:
                    part().backward()

    def mean_loss(self, chunks: Minibatches) -> float:
        """Over all rows, by the module as it is used."""
        self.module.eval()
        summed, n = 0.0, 0
        value = torch.no_grad()(lambda part: part())
        with torch.no_grad(), _enough_memory():
            for i, chunk in enumerate(chunks):
                size = len(chunks.chunks[i])
                parts = self._parts(chunk, chunks.whole(i))
                summed += float(sum((self.map_ or map)(value, parts))) * size
                n += size
        return total(chunks.ranks, summed) / n

    def _parts(self, rows: Tensor, of: Tensor | None) -> Sequence[Part]:
        """The parts of one loss, under mixed precision."""
        if not len(rows):  # other ranks have this minibatch to themselves
            return []
        where = [rows] if of is None else [rows, of]
        with self.training.precision(self.device):
            found = self.loss(*(index.to(self.device) for index in where))
        return [lambda: found] if isinstance(found, Tensor) else [partial(self._computed, part) for part in found]

    def _computed(self, part: Part) -> Tensor:
        with self.training.precision(self.device):
            return part()


@contextmanager
def _enough_memory() -> Iterator[None]:
    """With a useful word where a GPU has none left."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise TrainingError("The GPU ran out of memory; lower Training(batch=...), or the trunk's width.") from error


def _bar(training: Training, name: str, start: int) -> Any:
    unseen = training.progress is None and not sys.stderr.isatty()
    if training.progress is False or unseen or watched() or not speaks():  # a fit shows one bar over all of them
        return None
    return progress_bar(total=training.epochs, initial=start, desc=name, leave=False)
