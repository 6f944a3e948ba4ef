"""Ground truth, known in simulated worlds alone: kept apart from what a learner reads, in memory and on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import written_whole
from craftrl.data.places import Place, source, target
from craftrl.data.seals import UNREADABLE, read_arrays
from craftrl.errors import InvalidDataError

__all__ = ["GroundTruth", "read_true_states", "truth_path", "write_truth"]

Ints = NDArray[np.integer]


@dataclass(frozen=True)
class GroundTruth:
    """What the learner never sees: latent states (n, H) and actions (n, H-1), rows as in the dataset."""

    states: Ints
    actions: Ints


def truth_path(data: str | os.PathLike[str]) -> Place:
    """Where a dataset's ground truth lies: data.h5 goes with data.truth.npz, beside it."""
    path = target("The dataset", data)
    return path.with_name(f"{path.stem}.truth.npz")


def write_truth(path: str | os.PathLike[str], truth: GroundTruth) -> None:
    """Write states and actions to an NPZ file, whole or not at all."""
    check_kind("truth", truth, GroundTruth, "a GroundTruth, as collect gives it")
    with written_whole(path, "ground truth") as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, states=truth.states, actions=truth.actions)


def read_true_states(path: str | os.PathLike[str], tau: TrajectoryDataset) -> Ints:
    """The true states (n, H) of this dataset, -1 where one is unknown."""
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    where = source("Ground truth", path)
    try:
        states = read_arrays(where)["states"]
        if states.dtype.kind not in "iu":
            raise TypeError(f"states of dtype {states.dtype}")
    except UNREADABLE as error:
        raise InvalidDataError(
            f"Ground truth must be an NPZ file with `states` (n, H), integers, as craftrl collect writes it; {path} is "
            "not; check the name."
        ) from error
    if states.shape != (tau.n, tau.H):
        raise InvalidDataError(
            f"Ground truth must have one state per trajectory and step, shape ({tau.n}, {tau.H}); {path} has "
            f"{states.shape}; it belongs to other data."
        )
    return states
