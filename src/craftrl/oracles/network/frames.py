"""Observations as the networks see them: stored as they came, turned into floats one minibatch at a time."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from craftrl.data.dataset import ArraySteps, TrajectoryDataset
from craftrl.errors import InvalidDataError

__all__ = ["Frames", "check_observations", "to_input"]

IN_MEMORY = 4 * 2**30  # bytes of a dataset from another store that are held in memory
DEVICE_SHARE = 0.5  # how much of a GPU's free memory the dataset may take; beyond that it stays with the host


class Frames:
    """All observations of a dataset, time first, with minibatches by (step, trajectory).

    Images stay uint8. A memory map stays on disk, and a minibatch reads what it needs of it; what comes from
    another store, such as HDF5, goes into a temporary file if it is large.
    On a GPU the whole dataset is copied over if it takes no more than half of the free memory.
    """

    def __init__(self, tau: TrajectoryDataset, device: torch.device) -> None:
        check_observations(tau.obs_shape, tau.dtype)
        self.tau = tau
        self.device = device
        self.x = torch.from_numpy(_time_first(tau))
        if device.type == "cuda" and self.x.nbytes < DEVICE_SHARE * torch.cuda.mem_get_info(device)[0]:
            self.x = self.x.to(device)

    def batch(self, step: Tensor, row: Tensor) -> Tensor:
        """Network input for observations of trajectories `row` at `step` (from 0); shape (*row, C, P, P)."""
        where = self.x.device
        x = self.x[step.to(where), row.to(where)]
        return to_input(x.to(self.device, non_blocking=True))


    def sample(self, rng: np.random.Generator, size: int = 2048) -> Tensor:
        """Network input for some observations of all steps, on the CPU."""
        step, row = np.nonzero(np.arange(self.tau.H)[:, None] < self.tau.lengths)
        chosen = np.sort(rng.permutation(len(row))[:size])
        return self.batch(torch.from_numpy(step[chosen]), torch.from_numpy(row[chosen])).cpu()


def to_input(x: Tensor) -> Tensor:
    """Floats with channels before rows and columns; uint8 is scaled to [0, 1], vectors stay vectors."""
    x = x.movedim(-1, -3).contiguous() if x.ndim >= 4 else x
    return x.float().div_(255) if x.dtype == torch.uint8 else x.float()


def check_observations(obs_shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Images (rows, columns, channels), uint8 or floats, or feature vectors."""
    if len(obs_shape) not in (1, 3):
        raise InvalidDataError(
            "A neural oracle needs images of shape (rows, columns, channels) or feature vectors; observations of "
            f"shape {obs_shape} were given; add a channel axis to grey images."
        )
    if len(obs_shape) == 3 and dtype != np.uint8 and dtype.kind != "f":
        raise InvalidDataError(f"Images must be uint8 or floats; {dtype} was given; convert them first.")


def _time_first(tau: TrajectoryDataset) -> NDArray[Any]:
    """All observations (H, n, *obs) as an array that torch can share: in memory, or a file where that is too much."""
    array = tau.steps.array if isinstance(tau.steps, ArraySteps) else _gathered(tau)
    if array.dtype != np.uint8:
        array = array.astype(np.float32, copy=False)
    if array.flags.writeable:
        return array
    if isinstance(array, np.memmap) and array.flags.c_contiguous and array.filename is not None:
        return np.memmap(array.filename, array.dtype, "c", array.offset, array.shape)  # copy on write: still on disk
    return array.copy()


def _gathered(tau: TrajectoryDataset) -> NDArray[Any]:
    """The steps of another kind of store, in memory or, beyond IN_MEMORY bytes, in a temporary file."""
    shape = (tau.H, tau.n, *tau.obs_shape)
    if np.prod(shape, dtype=np.int64) * tau.dtype.itemsize <= IN_MEMORY:
        array: NDArray[Any] = np.empty(shape, dtype=tau.dtype)
    else:
        with tempfile.TemporaryFile() as file:
            array = np.memmap(file, tau.dtype, "w+", shape=shape)  # the file lives as long as the map
    for h in range(1, tau.H + 1):
        for rows, x in tau.blocks(h):
            array[h - 1, rows] = x
    return array
