"""What a baseline that trains is given, checked before it trains."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from craftrl.arguments import check_flag, check_kind, check_whole, shown
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.labels import as_array
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.network.settings import Training

__all__ = ["check_baseline", "check_learning"]

MOST_DIM = 2**16


def check_learning(model: Any, tau: Any, actions: Any) -> None:
    """The baseline's parameters, the data, and the actions where it needs them."""
    check_baseline(model, tau)
    if model.needs_actions and actions is None:
        raise InvalidParameterError(f"{type(model).__name__} learns from actions; give fit(x, agent, actions=...).")
    wanted = (tau.n, tau.H - 1)
    taken = np.zeros(wanted, dtype=int) if actions is None else as_array("actions", actions)
    if taken.shape != wanted or taken.dtype.kind not in "iu" or taken.min(initial=0) < 0:
        raise InvalidDataError(
            f"actions must be integers of 0 or more, of shape {wanted}: one for each pair of steps; {taken.dtype} of "
            f"shape {taken.shape} were given."
        )


def check_baseline(model: Any, tau: Any) -> None:
    """The baseline's parameters, and that they go with the data."""
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    check_kind("trunk", model.trunk, (nn.Module, type(None)), "an nn.Module or None")
    check_kind("training", model.training, (Training, type(None)), "a Training or None")
    check_whole("dim", model.dim, 1, MOST_DIM)
    check_flag("standardise", model.standardise)
    if not tau.all_present:
        raise InvalidDataError(
            "This baseline needs trajectories of equal length; unequal ones were given; cut them to the shortest."
        )
    numbers = as_array("n_states", model.n_states)
    listed = numbers.shape == (tau.H,) and numbers.dtype.kind in "iu"
    if not listed or not 1 <= numbers.min() <= numbers.max() <= tau.n:
        raise InvalidParameterError(
            f"n_states must give one integer per step, each in 1..{tau.n}, the number of trajectories; "
            f"{shown(model.n_states)} was given for {tau.H} steps."
        )
