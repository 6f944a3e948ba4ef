"""What the checks need to know of a fitted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind
from craftrl.core.craft import Bounds
from craftrl.core.encoders import Encoder
from craftrl.core.oracle import PairFunction
from craftrl.core.trace import Trace
from craftrl.data.dataset import TrajectoryDataset
from craftrl.errors import InvalidDataError

__all__ = ["Subject", "check_subject"]


@dataclass(frozen=True)
class Subject:
    """A fitted model as the checks see it, whatever its oracle.

    encoders  phi'_1..phi'_H
    n_states  int (H,): states found at each step
    labels    int (n, H): the states of the trajectories, in the order of the dataset
    trace     what `fit` decided
    bounds    the alpha, eta and nu that were used
    chosen    the names of those that were chosen from this very data, which cannot be tested against it
    f         f_1..f_{H-1} for new data, None where they are not kept
    refit     the same model fitted to other data at these bounds: anything with `encoders_`, `n_states_`, `trace_`
    """

    encoders: tuple[Encoder, ...]
    n_states: NDArray[np.int64]
    labels: NDArray[np.integer]
    trace: Trace
    bounds: Bounds
    refit: Callable[[TrajectoryDataset], Any]
    chosen: tuple[str, ...] = ()
    f: PairFunction | None = None


def check_subject(model: Any, tau: Any) -> None:
    """A model as the checks see it, and the data that it was fitted to."""
    check_kind("model", model, Subject, "a Subject; CRAFT.diagnose makes one of a fitted model")
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    if np.shape(model.labels) != (tau.n, tau.H):
        raise InvalidDataError(
            "tau must be the data that the model was fitted to, with labels of shape "
            f"{np.shape(model.labels)}; {tau} was given."
        )
