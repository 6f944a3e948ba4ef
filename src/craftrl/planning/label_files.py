"""Labels as files: transitions whose action is known, beside a store of videos or by themselves."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_source, check_whole
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import UNREADABLE
from craftrl.data.store import is_dataset, read_actions
from craftrl.errors import InvalidDataError
from craftrl.planning.grounding import Grounding

__all__ = ["Labels", "read_labels"]

Ints = NDArray[np.integer]
BLOCK = 256  # trajectories that are read at a time


@dataclass(frozen=True)
class Labels:
    """Trajectories, or pieces of them, with the actions that are known; observations are read when they are needed.

    actions  (n, H-1): the action between each two observations, -1 where it is not known
    h        (n,): the step of the first observation, counted from 1
    read     the observations (stop - start, H, *obs) of rows start..stop-1
    """

    actions: Ints
    h: Ints
    read: Callable[[int, int], NDArray[Any]]

    def __len__(self) -> int:
        """How many labels there are."""
        return int((self.actions >= 0).sum())

    @property
    def n_actions(self) -> int:
        """How many actions there are at least: one more than the largest number."""
        return int(self.actions.max(initial=-1)) + 1

    def add_to(self, grounding: Grounding, model: Any) -> int:
        """Add them to a grounding; returned is how many there were whose two states the model could name."""
        added = 0
        known: NDArray[np.bool_] = np.asarray((self.actions >= 0).any(axis=1))
        for start in range(0, len(self.actions), BLOCK):
            rows = np.flatnonzero(known[start : start + BLOCK])
            if not len(rows):
                continue
            x, stop = self.read(start, min(start + BLOCK, len(known))), start + rows[-1] + 1
            actions, h = self.actions[start:stop][rows], self.h[start:stop][rows]
            for step in [1] if grounding.nodes.shared else sorted(set(h.tolist())):
                here = np.ones(len(h), dtype=bool) if grounding.nodes.shared else h == step
                added += grounding.add_labels(model, x[rows][here], actions[here], step)
        return added


def read_labels(path: str | os.PathLike[str], tau: TrajectoryDataset, n: int | None = None) -> Labels:
    """The labels of a dataset or of an NPZ file; only the first n of them, where n is given.

    The dataset is that of `tau`, of which its actions alone are read. A file of your own has x (n, 2, *obs), actions
    (n,) and, for models with an encoder for each step, the step of the first one, h (n,). An action is a whole number;
    -1 is none.
    """
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    if n is not None:
        check_whole("n", n, 1)
    where = check_source("Labels", path)
    try:
        if is_dataset(where):
            return _of_store(_by_trajectory(read_actions(where), tau), tau, n)
        with np.load(where, allow_pickle=False) as arrays:
            return _of_pairs(dict(arrays), tau, n)
    except UNREADABLE as error:
        if isinstance(error, InvalidDataError):
            raise
        raise InvalidDataError(
            "Labels must be an NPZ file with x (n, 2, ...) and actions (n,), or a dataset with actions, as craftrl "
            f"import and craftrl collect write it; {path} is not ({error}); check the name."
        ) from error


def _of_pairs(arrays: dict[str, NDArray[Any]], tau: TrajectoryDataset, n: int | None) -> Labels:
    x, actions = arrays["x"], _whole(arrays["actions"])
    h = _whole(arrays["h"]) if "h" in arrays else np.ones(len(actions), dtype=np.int64)
    if x.shape[1:] != (2, *tau.obs_shape) or not len(x) == len(actions) == len(h):
        raise ValueError(f"x has shape {x.shape}, actions {actions.shape}, and observations {tau.obs_shape}")
    return Labels(_first(actions[:, None], n), h, lambda start, stop: x[start:stop])


def _of_store(actions: Ints, tau: TrajectoryDataset, n: int | None) -> Labels:
    over = np.arange(1, tau.H) >= tau.lengths[:, None]  # no observation follows
    steps = tau.H - 1
    whole = np.full((tau.n, steps), -1, dtype=np.int64)
    whole[:, : actions.shape[1]] = actions[:, :steps]
    whole[over] = -1
    return Labels(_first(whole, n), np.ones(tau.n, dtype=np.int64), lambda a, b: tau.rows(np.arange(a, b)))


def _first(actions: Ints, n: int | None) -> Ints:
    """Only the first n that are known, trajectory by trajectory."""
    number = np.cumsum(actions.ravel() >= 0).reshape(actions.shape)
    return actions if n is None else np.where(number <= n, actions, -1)


def _by_trajectory(agents: list[list[NDArray[Any]]], tau: TrajectoryDataset) -> Ints:
    """The actions of the trajectories of the dataset, (n, H), -1 where none is known."""
    if [len(episodes) for episodes in agents] != tau.counts.tolist():
        raise ValueError("it has no actions" if not agents else "its episodes are not those of the data")
    out = np.full((tau.n, tau.H), -1, dtype=np.int64)
    for row, actions in zip(out, (actions for episodes in agents for actions in episodes)):
        if len(actions):
            known = _whole(actions[:, 0] if actions.ndim == 2 and actions.shape[1] == 1 else actions)[: tau.H]
            row[: len(known)] = known
    return out


def _whole(values: NDArray[Any], ndim: int = 1) -> Ints:
    """Whole numbers of so many dimensions; floats that are whole will do."""
    if values.ndim != ndim:
        raise ValueError(f"actions have shape {values.shape}, and each must be one whole number")
    whole = values.astype(np.int64)
    if values.dtype.kind not in "biuf" or (whole != values).any():
        raise ValueError(f"actions are {values.dtype}, and each must be one whole number")
    return whole
