"""How networks are trained: the settings, in one frozen record, and what follows from them alone."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from craftrl.arguments import check_path, is_number, is_whole, shown
from craftrl.core.saved import Savable
from craftrl.errors import CraftError, InvalidParameterError
from craftrl.oracles.network.allowance import to_bytes

__all__ = ["Training", "TrainingError", "seeded"]

Ints = NDArray[np.integer]
MOST = 2**31  # of any number here: what is larger is a mistake


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
    threads            of torch on a CPU while a fit runs its networks. With one, the parts of a minibatch are computed
                       side by side on the cores there are (the variable CRAFTRL_NUM_THREADS limits them), and results
                       do not depend on how many. Another number rounds differently, and so may give slightly different
                       networks; None leaves it to torch, and so to the machine
    memory             how much of the observations a GPU may hold, in bytes or as "4GB"; None for a quarter of the
                       machine's memory, or of the GPU's if that is less. What is larger is read, minibatch by
                       minibatch, from where it lies; so is everything on a CPU
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

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Training:
        """No file says where the next fit writes."""
        return cls(**{**parts, "checkpoints": None})

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
