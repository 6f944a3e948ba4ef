"""What the checks are given, checked itself: they may be called one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError
from craftrl.oracles.counting import PreparedCounting, check_counting

__all__ = ["check_codes", "prepare_probe"]


def check_codes(codes: Any, tau: Any) -> NDArray[np.int64]:
    """States (n, H) of all trajectories of a dataset, -1 for none."""
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    states = as_labels("codes", codes, 2)
    if states.shape != (tau.n, tau.H) or tau.H < 2:
        raise InvalidDataError(
            f"codes must hold the state of every trajectory at every step, shape {(tau.n, tau.H)}, of two steps or "
            f"more; shape {states.shape} was given."
        )
    return states


def prepare_probe(probe: Any, tau: TrajectoryDataset, whose: str) -> PreparedCounting:
    """A finite class, prepared for a dataset unless it is already."""
    if isinstance(probe, PreparedCounting):
        return probe
    check_counting(probe, whose)
    prepared = probe.prepare(tau)
    assert isinstance(prepared, PreparedCounting)
    return prepared
