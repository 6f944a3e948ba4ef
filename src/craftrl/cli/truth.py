"""Ground truth on disk: latent states and actions, kept apart from what a learner reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from craftrl.errors import InvalidDataError, InvalidParameterError

if TYPE_CHECKING:
    from craftrl.data import TrajectoryDataset
    from craftrl.envs import GroundTruth

__all__ = ["read_states", "truth_path", "write_truth"]


def truth_path(data: Path) -> Path:
    """data.h5 -> data.truth.npz, beside it."""
    return data.with_name(f"{data.stem}.truth.npz")


def write_truth(path: Path, truth: GroundTruth) -> None:
    """Write states and actions, whole or not at all."""
    import numpy as np

    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez_compressed(file, states=truth.states, actions=truth.actions)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidParameterError(
            f"The ground truth's folder must be writable; {path.parent} is not ({error.strerror}); choose another."
        ) from error


def read_states(path: Path, tau: TrajectoryDataset) -> Any:
    """The true states (n, H) of this dataset."""
    import zipfile

    import numpy as np

    try:
        with np.load(path) as file:
            states = file["states"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidDataError(
            f"Ground truth must be an NPZ file with `states` (n, H), as craftrl collect writes it; {path} is not."
        ) from error
    if states.shape != (tau.n, tau.H):
        raise InvalidDataError(
            f"Ground truth must have one state per trajectory and step, shape ({tau.n}, {tau.H}); {path} has "
            f"{states.shape}; it belongs to other data."
        )
    return states
