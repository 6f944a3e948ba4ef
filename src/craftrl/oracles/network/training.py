"""One training loop for every network here: minibatches, early stopping, checkpoints, and errors that help."""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl._version import __version__
from craftrl.arguments import check_path, is_number, is_whole, shown
from craftrl.core.saved import Savable
from craftrl.data.ranks import Ranks, digest, speaks
from craftrl.errors import CraftError, InvalidParameterError
from craftrl.oracles.network.allowance import to_bytes
from craftrl.oracles.network.averaging import WeightAverage
from craftrl.oracles.network.checkpoints import Checkpoint
from craftrl.oracles.network.collectives import GradientSum, take_firsts, total
from craftrl.oracles.network.minibatches import Feed, Minibatches
from craftrl.oracles.network.parts import Part, keep_freed_memory
from craftrl.progress import progress_bar, tell

__all__ = ["Loss", "Training", "TrainingError", "seeded", "train"]

Ints = NDArray[np.integer]
PLATEAU = 0.03  # nats below chance from which on a network has begun to learn
MOST = 2**31  # of any number here: what is larger is a mistake
ENOUGH = 0.0005  # nats by which the held-out loss must fall for an epoch to have paid


class Loss(Protocol):
    """The mean loss of a minibatch.

    Where several ranks divide a minibatch, `rows` are those of this rank and `of` all of its rows: what comes back is
    then their part of the mean over `of`, so that the parts of all ranks add up to it.
    """

    def __call__(self, rows: Tensor, of: Tensor | None = None) -> Tensor | Sequence[Part]: ...


class TrainingError(CraftError, RuntimeError):
    """A network could not be trained with these settings."""


@dataclass(frozen=True)
class Training(Savable):
    """How networks are trained.

    epochs, patience   at most so many passes; stop after so many in a row that hardly lower the held-out loss; None for
                       as many as make 30,000 observations: of little data a held-out loss is no steady guide
    plateau            so many passes more while the held-out loss is still at chance: telling agents apart may
                       begin with a long plateau
    batch              observations in a minibatch; None for an eightieth of those there are, from 128 to 1024
    lr, weight_decay   of AdamW; the rate stays as it is, and what counts are the weights averaged over the last
                       minibatches, so that training can end whenever it no longer pays
    warm_up            minibatches over which the rate rises to its full height: at once it may kill a network
    held_out           share of the trajectories kept for early stopping
    device             "cpu", "cuda", or "auto": a GPU if there is one
    threads            of the CPU while a fit runs its networks; one is fastest for small networks, and results then do
                       not depend on the machine's cores. Another number rounds differently, and so may give slightly
                       different networks; None leaves it to torch, and so to the machine
    memory             how much of the observations may be held in memory, in bytes or as "4GB"; None for a quarter of
                       the machine's memory, or of the GPU's if that is less. What is larger is read from disk while
                       the network trains, in windows of this size; several ranks divide each window
    amp                mixed precision (bfloat16) on CUDA; ignored elsewhere
    seed               two runs with one seed and the same `threads` give the same result on a CPU, however many threads
                       torch has outside; on a GPU, the same up to rounding
    checkpoints        a folder in which every training run saves its state after each epoch, and small classifiers are
                       saved when they are finished (1 GiB of them at most); a killed fit that is started again with
                       the same settings and data continues there
    progress           a progress bar with the held-out loss beside chance; None shows it where a terminal is watching
    """

    epochs: int = 12
    patience: int | None = None
    plateau: int = 10
    batch: int | None = None
    lr: float = 3e-3
    weight_decay: float = 1e-4
    warm_up: int = 40
    held_out: float = 0.1
    device: str = "auto"
    threads: int | None = 1
    memory: int | str | None = None
    amp: bool = True
    seed: int = 0
    checkpoints: str | Path | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name, least in {"epochs": 1, "plateau": 0, "warm_up": 0, "seed": 0}.items():
            self._check(name, _is_whole(getattr(self, name), least), f"an integer of at least {least}")
        for name, least in {"patience": 1, "batch": 2, "threads": 1}.items():
            value = getattr(self, name)
            self._check(name, value is None or _is_whole(value, least), f"None or an integer of at least {least}")
        self._check("lr", _is_real(self.lr) and self.lr > 0, "a positive number")
        self._check("weight_decay", _is_real(self.weight_decay) and self.weight_decay >= 0, "a number of at least 0")
        self._check("held_out", _is_real(self.held_out) and 0 < self.held_out < 1, "a number between 0 and 1")
        self._check("device", isinstance(self.device, str), "'auto', 'cpu' or 'cuda'")
        self._check("amp", isinstance(self.amp, (bool, np.bool_)), "True or False")
        self._check(
            "progress", self.progress is None or isinstance(self.progress, (bool, np.bool_)), "True, False or None"
        )
        allowed = self.memory is None or to_bytes(self.memory) is not None
        self._check("memory", allowed, "None, a positive number of bytes, or one with a unit, such as '4GB'")
        if self.checkpoints is not None:
            check_path("checkpoints", self.checkpoints)

    def _check(self, name: str, holds: bool, what: str) -> None:
        if not holds:
            raise InvalidParameterError(f"{name} must be {what}; {shown(getattr(self, name))} was given to Training.")

    def __repr__(self) -> str:
        """Only what differs from the defaults, as scikit-learn prints its estimators."""
        changed = (f for f in fields(self) if getattr(self, f.name) != f.default)
        return f"Training({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    def to_device(self) -> torch.device:
        """The device asked for, if it is there."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self.device.startswith("cuda") and not torch.cuda.is_available():
            raise InvalidParameterError(
                f"device = {self.device!r} needs a CUDA GPU and none is available; use device='cpu'."
            )
        try:
            return torch.empty(0, device=self.device).device
        except (RuntimeError, AssertionError) as error:
            raise InvalidParameterError(
                f"device must be 'auto', 'cpu' or 'cuda'; {self.device!r} was given, which torch does not know here."
            ) from error

    def precision(self, device: torch.device) -> torch.autocast:
        """Mixed precision, where it was asked for and there is a GPU."""
        return torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.amp and device.type == "cuda")

    def batch_of(self, n_observations: int) -> int:
        """How many observations make a minibatch where there are so many."""
        return int(np.clip(n_observations // 80, 128, 1024)) if self.batch is None else self.batch

    def patience_of(self, n_observations: int) -> int:
        """How many epochs may pass without a gain where there are so many observations."""
        return min(3, -(-30_000 // max(n_observations, 1))) if self.patience is None else self.patience

    def split(self, n: int, name: str) -> tuple[Ints, Ints]:
        """Training and held-out indices of n things."""
        order = self.rng(name).permutation(n)
        held = max(1, round(self.held_out * n))
        return order[held:], order[:held]

    def rng(self, *names: object) -> np.random.Generator:
        return np.random.default_rng([self.seed, *(zlib.crc32(str(name).encode()) for name in names)])

    def saved(self) -> dict[str, Any]:
        """Without the folder of checkpoints, which belongs to one machine."""
        return {**super().saved(), "checkpoints": None}

    def but(self, **changes: Any) -> Training:
        return replace(self, **changes)

    def told(self) -> str:
        """Everything that a result depends on, in words: what does not say where it is trained."""
        return repr(asdict(self.but(checkpoints=None, progress=None, device="auto", memory=None)))


def _is_whole(value: Any, least: int) -> bool:
    return is_whole(value) and least <= int(value) <= MOST


def _is_real(value: Any) -> bool:
    return is_number(value) and abs(value) < MOST


@contextlib.contextmanager
def seeded(training: Training, name: str, device: torch.device | None = None) -> Iterator[None]:
    """Weights and noise drawn in here depend on the seed and the name alone."""
    gpus = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(int(training.rng("weights", name).integers(2**31)))
        yield


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
    rows_train, rows_held = rows
    size = max(2, training.batch_of(len(rows_train) * per_row) // per_row)
    feed = feed or Feed()
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
        with feed.in_order(np.array_split(rows_held, math.ceil(len(rows_held) / (4 * size)))) as chunks:
            return _mean_loss(module, loss, chunks, training, device)

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
        with (
            seeded(training, f"{name}-{at.epoch}{own_noise}", device),
            feed.shuffled(rows_train, size, training.rng(name, at.epoch)) as chunks,
        ):
            for i, chunk in enumerate(chunks):
                risen = min(1.0, (at.epoch * len(chunks) + i + 1) / (training.warm_up + 1))
                optimiser.param_groups[0]["lr"] = training.lr * risen
                optimiser.zero_grad(set_to_none=True)
                for part in _parts(loss, chunk, chunks.whole(i), training, device):
                    part.backward()
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
    run = repr((__version__, training.told(), feed.layout, feed.data(), digest(module)))
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


@torch.no_grad()
def _mean_loss(
    module: nn.Module,
    loss: Loss,
    chunks: Minibatches,
    training: Training,
    device: torch.device,
) -> float:
    module.eval()
    summed, n = 0.0, 0
    for i, chunk in enumerate(chunks):
        size = len(chunks.chunks[i])
        summed += float(sum(_parts(loss, chunk, chunks.whole(i), training, device))) * size
        n += size
    return total(chunks.ranks, summed) / n


def _parts(loss: Loss, rows: Tensor, of: Tensor | None, training: Training, device: torch.device) -> Iterator[Tensor]:
    """The parts of one loss, one after the other, under mixed precision; with a useful word where memory runs out."""
    if not len(rows):  # other ranks have this minibatch to themselves
        return
    try:
        with training.precision(device):
            found = loss(rows.to(device)) if of is None else loss(rows.to(device), of.to(device))
        if isinstance(found, Tensor):
            yield found
            return
        for part in found:
            with training.precision(device):
                value = part()
            yield value
    except torch.cuda.OutOfMemoryError as error:
        raise TrainingError("The GPU ran out of memory; lower Training(batch=...), or the trunk's width.") from error


def _bar(training: Training, name: str, start: int) -> Any:
    if training.progress is False or (training.progress is None and not sys.stderr.isatty()) or not speaks():
        return None
    return progress_bar(total=training.epochs, initial=start, desc=name, leave=False)
