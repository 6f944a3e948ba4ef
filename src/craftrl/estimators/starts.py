"""The start of every trajectory, where the user knows it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.data.inputs import Grouped
from craftrl.errors import InvalidDataError

__all__ = ["start_labels"]


def start_labels(start: ArrayLike | None, data: Grouped) -> NDArray[np.int64] | None:
    """Numbers 0, 1, ... for the names of the starts (n,), in the order of the dataset; None where all are one."""
    if start is None:
        return None
    given = np.asarray(start)
    if given.shape != (data.tau.n,):
        raise InvalidDataError(
            f"start must name the start of each of {data.tau.n} trajectories; shape {given.shape} was given."
        )
    names, label = np.unique(given, return_inverse=True)
    return None if len(names) == 1 else data.as_grouped(label.reshape(-1).astype(np.int64))
