"""Observations as networks see them, in minibatches of whole trajectories.

On a GPU all frames are held by it, as bytes, if they fit into a quarter of its free memory. On a CPU what a trunk does
to its input before it learns anything (standardise, whiten) takes as long as the network: it is done once for all
frames, and kept if it fits into `KEPT` bytes. Everything else is read minibatch by minibatch, ahead of the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.arguments import quoted
from craftrl.arrays import Ints
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import here
from craftrl.engine.threads import ordered_map
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.network.settings import Training
from craftrl.oracles.network.trunks import Trunk

SHARE = 0.25  # of a GPU's free memory that frames may take
KEPT = 2 * 10**9  # bytes of prepared inputs that are kept on a CPU
AHEAD = 4  # threads that read minibatches ahead of the network, about two each
ON_CPU, ON_GPU = 600_000, 24_000_000  # pixels that are read at once: more do not fit into a core's cache; into memory
SAMPLE = 3000  # observations from which a trunk learns the scale of its inputs


class Frames:
    """All observations of a dataset, as inputs of trunks that prepare them in the same way."""

    def __init__(self, tau: TrajectoryDataset, training: Training) -> None:
        if len(tau.obs_shape) not in (1, 3):
            raise InvalidDataError(
                "A neural oracle needs images of shape (rows, columns, channels) or feature vectors; observations of "
                f"shape {tau.obs_shape} were given; add a channel axis to grey images."
            )
        if len(tau.obs_shape) == 3 and tau.dtype != np.uint8 and tau.dtype.kind != "f":
            raise InvalidDataError(f"Images must be uint8 or floats; {tau.dtype} was given; convert them first.")
        self.tau, self.training = tau, training
        self.device = device = training.to_device()
        self._held: Tensor | None = None  # (n, H, *obs) on a GPU
        self._prepared: Tensor | None = None  # (n, H, *prepared), images with their channels last
        size = 1 if tau.dtype == np.uint8 else 4
        n_bytes = size * tau.n * tau.H * int(np.prod(tau.obs_shape, dtype=np.int64))
        if device.type == "cuda" and n_bytes <= SHARE * torch.cuda.mem_get_info(device)[0]:
            dtype = torch.uint8 if tau.dtype == np.uint8 else torch.float32
            self._held = torch.empty((tau.n, tau.H, *tau.obs_shape), dtype=dtype, device=device)
            for rows, x in tau.blocks():
                self._held[rows] = as_tensor(x).to(device)

    def sample(self) -> Tensor:
        """Inputs (m, *input) for some observations of all steps, on the CPU."""
        tau, ends = self.tau, np.cumsum(self.tau.lengths)
        size = min(SAMPLE, int(ends[-1]))
        chosen = np.sort(self.training.rng("sample").choice(ends[-1], size, replace=False))
        row = np.searchsorted(ends, chosen, side="right")
        step = chosen - (ends - tau.lengths)[row]
        return to_input(as_tensor(tau.pick(row, step)))

    @torch.no_grad()
    def keep_prepared(self, trunk: Trunk) -> None:
        """Prepare all frames once, where that saves time and there is room for it.

        All trunks of a fit see the same sample of observations, so that they prepare frames in the same way.
        """
        tau = self.tau
        if self._prepared is not None or self.device.type != "cpu" or self.training.augment or not len(trunk.prepare):
            return
        kept = None
        for rows in np.array_split(np.arange(tau.n), max(1, tau.n // self.at_once)):
            z = trunk.prepare(to_input(as_tensor(tau.rows(rows))).flatten(0, 1))
            z = (z if z.ndim == 2 else z.permute(0, 2, 3, 1)).unflatten(0, (len(rows), tau.H))
            if kept is None:
                if 4 * tau.n * z[0].numel() > KEPT:
                    return
                kept = torch.empty((tau.n, *z.shape[1:]))
            kept[torch.from_numpy(rows)] = z
        self._prepared = kept

    def forget(self) -> None:
        """Let go of prepared inputs: everything is read."""
        self._prepared = None

    @property
    def at_once(self) -> int:
        """Trajectories that are read at once, where that makes no difference but to the time it takes."""
        return max(1, read_at_once(self.tau.obs_shape, self.device) // self.tau.H)

    def batches(
        self, chunks: Sequence[Ints], learns: bool = False, trunk: Trunk | None = None
    ) -> Iterator[tuple[Tensor, Tensor] | None]:
        """This rank's rows (b,) of each minibatch on the device, and what the trunk makes features of (b * H, ...).

        None where it has no rows. Without a trunk, inputs as they come (b, H, *input). Frames that are learned from are
        changed as `Training.augment` says.
        """
        rank, world = here()
        own = [chunk[rank::world] for chunk in chunks]
        for rows, x in zip(own, self._read(own)):
            index = torch.from_numpy(rows).to(self.device)
            if not len(rows):
                yield None
            elif self._prepared is not None:
                z = self._prepared[index].flatten(0, 1)
                yield index, z if z.ndim == 2 else z.permute(0, 3, 1, 2)
            else:
                found = to_input(self._held[index] if x is None else x.to(self.device, non_blocking=True))  # type: ignore[index]
                found = self._augmented(found) if learns else found
                yield index, found if trunk is None else trunk.prepare(found.flatten(0, 1))

    def _augmented(self, seen: Tensor) -> Tensor:
        """Changed by the user's function, if there is one."""
        found = seen if self.training.augment is None else self.training.augment(seen)
        if not isinstance(found, Tensor) or found.shape != seen.shape:
            raise InvalidParameterError(
                f"augment must return frames of the shape that it is given, {tuple(seen.shape)}; "
                f"{quoted(found if not isinstance(found, Tensor) else tuple(found.shape))} was returned."
            )
        return found

    def _read(self, chunks: Sequence[Ints]) -> Iterator[Tensor | None]:
        """Trajectories (b, H, *obs) of each minibatch, read ahead by other threads; None where they are held."""
        if self._held is not None or self._prepared is not None:
            return iter([None] * len(chunks))

        def read(rows: Ints) -> Tensor:
            x = as_tensor(self.tau.rows(rows))
            return x.pin_memory() if self.device.type == "cuda" else x

        return ordered_map(read, chunks, AHEAD)


def to_input(x: Tensor) -> Tensor:
    """Observations (..., *obs) as network input: bytes as fractions of 255, images with their channels first."""
    found = x.float() / 255 if x.dtype == torch.uint8 else x.float()
    return found.movedim(-1, -3) if x.ndim >= 4 else found


def read_at_once(obs_shape: tuple[int, ...], device: torch.device) -> int:
    """Observations that are read at once, where that makes no difference but to the time it takes."""
    pixels = ON_CPU if device.type == "cpu" else ON_GPU
    return int(np.clip(pixels // int(np.prod(obs_shape[:2])), 16, 4096))


def as_tensor(x: NDArray[Any]) -> Tensor:
    """A tensor of what torch knows: bytes as they are, everything else as float32; files are not written through it."""
    x = x if x.dtype == np.uint8 else x.astype(np.float32, copy=False)
    return torch.from_numpy(x if x.flags.writeable else x.copy())
