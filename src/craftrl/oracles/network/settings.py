"""How networks are trained: the settings, in one frozen record, and what follows from them alone."""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from craftrl.arguments import check_flag, check_function, check_kind, check_number, check_path, check_whole
from craftrl.core.saved import Savable
from craftrl.errors import CraftError, InvalidParameterError

Augment = Callable[[Tensor], Tensor]
MAX_SETTING = 2**31  # of any number here: what is larger is a mistake


class TrainingError(CraftError, RuntimeError):
    """A network could not be trained with these settings."""


@dataclass(frozen=True)
class Training(Savable):
    """How networks are trained.

    epochs       at most so many passes over the trajectories; None for as many as make 1,500 minibatches, two at least.
                 Training ends earlier where the held-out loss no longer falls
    batch        trajectories in a minibatch; None for 16 or, where they are short, as many as have 160 observations; up
                 to four times as many where there is much data
    lr           of AdamW; it stays as it is, and what counts are the weights averaged over about the last third
    held_out     share of the trajectories kept for early stopping and calibration
    noise        deviation of the noise that is added to standardised inputs while training; None for 0.1 in
                 feature vectors and 1.2 in images, less from 10,000 observations on (by the fourth root of their
                 number); 0 for none
    augment      a function that changes a minibatch of frames (b, H, channels, rows, columns), floats on the device,
                 while training; None for none
    calibrate    whether log-odds are calibrated on held-out trajectories
    device       "cpu", "cuda", or "auto": a GPU if there is one
    amp          mixed precision (bfloat16) on CUDA; ignored elsewhere
    seed         two runs with one seed give the same result on one machine's CPU with the same number of threads
                 (`torch.set_num_threads`); on a GPU, the same up to rounding
    checkpoints  a folder in which every training run saves where it stands; a killed fit that is started again with the
                 same settings and data continues there
    progress     a progress bar with the held-out loss beside chance; None shows it where a terminal is watching
    """

    epochs: int | None = None
    batch: int | None = None
    lr: float = 3e-3
    held_out: float = 0.1
    noise: float | None = None
    augment: Augment | None = None
    calibrate: bool = True
    device: str = "auto"
    amp: bool = True
    seed: int = 0
    checkpoints: str | Path | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if self.epochs is not None:
            check_whole("epochs", self.epochs, 1, MAX_SETTING, "or None, for as many as suit the data")
        if self.batch is not None:
            check_whole("batch", self.batch, 2, MAX_SETTING, "or None, for what suits the data")
        check_whole("seed", self.seed, 0, MAX_SETTING)
        check_number("lr", self.lr, "a positive number", lambda value: 0 < value < MAX_SETTING)
        check_number("held_out", self.held_out, "a number between 0 and 1", lambda value: 0 < value < 1)
        if self.noise is not None:
            check_number("noise", self.noise, "a number of at least 0", lambda value: 0 <= value < MAX_SETTING)
        if self.augment is not None:
            check_function("augment", self.augment, "a function of a minibatch of frames, or None")
        check_kind("device", self.device, str, "'auto', 'cpu' or 'cuda'")
        check_flag("calibrate", self.calibrate)
        check_flag("amp", self.amp)
        if self.progress is not None:
            check_flag("progress", self.progress, "or None, for where a terminal is watching")
        if self.checkpoints is not None:
            check_path("checkpoints", self.checkpoints)

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

    def rng(self, *names: object) -> np.random.Generator:
        """A generator that depends on the seed and these names alone."""
        return np.random.default_rng([self.seed, *(zlib.crc32(str(name).encode()) for name in names)])

    def but(self, **changes: Any) -> Training:
        """The same with some fields changed."""
        return replace(self, **changes)

    def signature(self) -> str:
        """Everything that a result depends on, in words: neither where it is trained nor who watches.

        A function has its name here and no address, which is another one in each process.
        """
        return re.sub(r" at 0x\w+", "", repr(asdict(self.but(checkpoints=None, progress=None, device="auto"))))

    def saved(self) -> dict[str, Any]:
        """Without a function, and without the folder of checkpoints, which belongs to one machine."""
        return {**super().saved(), "checkpoints": None, "augment": None}

    @classmethod
    def restored(cls, parts: dict[str, Any], given: Any) -> Training:
        """No file says where the next fit writes, or which code it runs."""
        return cls(**{**parts, "checkpoints": None, "augment": None})


@contextlib.contextmanager
def seeded(training: Training, name: str, device: torch.device | None = None) -> Iterator[None]:
    """Weights and noise drawn in here depend on the seed and the name alone."""
    gpus = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.manual_seed(int(training.rng("weights", name).integers(2**31)))
        yield
