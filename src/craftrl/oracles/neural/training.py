"""One training loop for every network here: minibatches, early stopping, checkpoints, and errors that help."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError

__all__ = ["Training", "TrainingError", "seeded", "train"]

Ints = NDArray[np.integer]
PLATEAU = 0.005  # nats below chance from which on a network has begun to learn


class TrainingError(CraftError, RuntimeError):
    """A network could not be trained with these settings."""


@dataclass(frozen=True)
class Training:
    """How networks are trained.

    epochs, patience   at most so many passes; stop after so many without a better held-out loss
    batch              observations in a minibatch
    lr, weight_decay   of AdamW; the rate falls to zero along a cosine over all epochs
    held_out           share of the trajectories kept for early stopping
    device             "cpu", "cuda", or "auto": a GPU if there is one
    amp                mixed precision (bfloat16) on CUDA; ignored elsewhere
    seed               two runs with one seed give the same result on a CPU
    checkpoints        a folder in which every training run saves its state after each epoch; a killed fit that
                       is started again with the same settings and data continues there
    progress           a progress bar with the held-out loss beside chance
    """

    epochs: int = 8
    patience: int = 3
    batch: int = 1024
    lr: float = 1e-3
    weight_decay: float = 1e-4
    held_out: float = 0.1
    device: str = "auto"
    amp: bool = True
    seed: int = 0
    checkpoints: str | Path | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 2 or self.lr <= 0 or not 0 < self.held_out < 1:
            raise InvalidParameterError(
                "Training needs epochs >= 1, batch >= 2, lr > 0 and 0 < held_out < 1; "
                f"{self.epochs}, {self.batch}, {self.lr}, {self.held_out} were given."
            )

    def to_device(self) -> torch.device:
        """The device asked for, if it is there."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self.device.startswith("cuda") and not torch.cuda.is_available():
            raise InvalidParameterError(
                f"device = {self.device!r} needs a CUDA GPU and none is available; use device='cpu'."
            )
        return torch.device(self.device)

    def split(self, n: int, name: str) -> tuple[Ints, Ints]:
        """Training and held-out indices of n things."""
        order = self.rng(name).permutation(n)
        held = max(1, round(self.held_out * n))
        return order[held:], order[:held]

    def rng(self, *names: object) -> np.random.Generator:
        return np.random.default_rng([self.seed, *(zlib.crc32(str(name).encode()) for name in names)])

    def but(self, **changes: Any) -> Training:
        return replace(self, **changes)


@contextlib.contextmanager
def seeded(training: Training, name: str) -> Iterator[None]:
    """Weights initialised in here depend on the seed and the name alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(training.rng("weights", name).integers(2**31)))
        yield


def train(
    module: nn.Module,
    loss: Callable[[Tensor], Tensor],
    rows: tuple[Ints, Ints],
    training: Training,
    name: str,
    per_row: int = 1,
    chance: float | None = None,
) -> float:
    """Train in place, leave the best weights on held-out rows, and return their held-out loss.

    `loss(indices)` is the mean loss of a minibatch; `rows` are training and held-out indices; `per_row` is how many
    observations one row holds, so that `batch` counts observations. Patience is not lost while the loss is still at
    `chance`: telling agents apart often begins with a long plateau.
    """
    device = training.to_device()
    module.to(device)
    size = max(2, training.batch // per_row)
    rows_train, rows_held = rows
    checkpoint = _Checkpoint(training, name)
    steps = training.epochs * max(1, math.ceil(len(rows_train) / size))
    optimiser = torch.optim.AdamW(module.parameters(), lr=training.lr, weight_decay=training.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda i: 0.5 + 0.5 * math.cos(math.pi * min(1, i / steps)))
    start, best, stale = 0, math.inf, 0
    weights = copy.deepcopy(module.state_dict())
    if saved := checkpoint.load(device):
        module.load_state_dict(saved["module"])
        optimiser.load_state_dict(saved["optimiser"])
        schedule.load_state_dict(saved["schedule"])
        start, best, stale, weights = saved["epoch"], saved["best"], saved["stale"], saved["weights"]
    bar = _bar(training, name, start)
    for epoch in range(start, training.epochs):
        if stale >= training.patience:
            break
        module.train()
        order = training.rng(name, epoch).permutation(rows_train)
        for chunk in np.array_split(order, max(1, round(len(order) / size))):
            value = _guarded(loss, torch.from_numpy(chunk), training, device)
            optimiser.zero_grad(set_to_none=True)
            value.backward()
            optimiser.step()
            schedule.step()
        held = _mean_loss(module, loss, rows_held, 4 * size, training, device)
        if not math.isfinite(held):
            raise TrainingError(
                f"The loss of '{name}' is no longer finite after epoch {epoch + 1}; lower lr (now {training.lr:g})."
            )
        learning = chance is None or min(best, held) < chance - PLATEAU
        stale = 0 if held < best or not learning else stale + 1
        if held < best:
            best, weights = held, copy.deepcopy(module.state_dict())
        checkpoint.save(
            {
                "module": module.state_dict(), "optimiser": optimiser.state_dict(), "schedule": schedule.state_dict(),
                "epoch": epoch + 1, "best": best, "stale": stale, "weights": weights,
            }
        )  # fmt: skip
        if bar is not None:
            bar.set_postfix_str(f"held-out {held:.4f}" + (f", chance {chance:.4f}" if chance else ""))
            bar.update()
    if bar is not None:
        bar.close()
    module.load_state_dict(weights)
    module.eval()
    return best


@torch.no_grad()
def _mean_loss(
    module: nn.Module,
    loss: Callable[[Tensor], Tensor],
    rows: Ints,
    size: int,
    training: Training,
    device: torch.device,
) -> float:
    module.eval()
    total = 0.0
    for chunk in np.array_split(rows, max(1, math.ceil(len(rows) / size))):
        total += float(_guarded(loss, torch.from_numpy(chunk), training, device)) * len(chunk)
    return total / len(rows)


def _guarded(loss: Callable[[Tensor], Tensor], rows: Tensor, training: Training, device: torch.device) -> Tensor:
    """One loss under mixed precision, with a useful word where memory runs out."""
    amp = training.amp and device.type == "cuda"
    try:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=amp):
            return loss(rows.to(device))
    except torch.cuda.OutOfMemoryError as error:
        raise TrainingError(
            f"The GPU ran out of memory with batch = {training.batch}; lower batch, or the trunk's width."
        ) from error


class _Checkpoint:
    """One file per training run, replaced in one move, so that a kill leaves the last whole one."""

    def __init__(self, training: Training, name: str) -> None:
        self.path = None if training.checkpoints is None else Path(training.checkpoints) / f"{name}.pt"
        self.settings = repr(training.but(checkpoints=None, progress=False, device="auto"))

    def load(self, device: torch.device) -> dict[str, Any] | None:
        if self.path is None or not self.path.exists():
            return None
        try:
            saved = torch.load(self.path, map_location=device, weights_only=True)
            settings = saved["settings"]
        except Exception as error:
            raise InvalidDataError(
                f"The checkpoint {self.path} cannot be read; it may come from elsewhere or be damaged; delete that "
                "one file to train this part again."
            ) from error
        if settings != self.settings:
            raise InvalidDataError(
                f"The checkpoint {self.path} belongs to other settings; use them again, or give an empty folder."
            )
        return saved

    def save(self, state: dict[str, Any]) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        torch.save({**state, "settings": self.settings}, partial)
        os.replace(partial, self.path)


def _bar(training: Training, name: str, start: int) -> Any:
    if not training.progress:
        return None
    from tqdm import tqdm

    return tqdm(total=training.epochs, initial=start, desc=name, leave=False)
