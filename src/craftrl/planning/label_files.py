"""Labels as files: transitions whose action is known, beside a store of videos or by themselves."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_source, check_whole
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.seals import UNREADABLE, read_arrays
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
    """The labels of an NPZ file; only the first n of them, where n is given.

    Three kinds of file will do. What `craftrl import` keeps aside (data.actions.npz) and what `craftrl collect` writes
    (data.truth.npz) have the actions of the trajectories of `tau`, and nothing else of them is read. A file of your own
    has x (n, 2, *obs), actions (n,) and, for models with an encoder for each step, the step of the first one, h (n,).
    An action is a whole number; -1 is none.
    """
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    if n is not None:
        check_whole("n", n, 1)
    where = check_source("Labels", path)
    try:
        arrays = read_arrays(where)
        if "x" in arrays:
            return _of_pairs(arrays, tau, n)
        return _of_store(_by_trajectory(arrays, tau), tau, n)
    except UNREADABLE as error:
        if isinstance(error, InvalidDataError):
            raise
        raise InvalidDataError(
            "Labels must be an NPZ file with x (n, 2, ...) and actions (n,), or with the actions of the store, as "
            f"craftrl import and craftrl collect write it; {path} is not ({error}); check the name."
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

    def read(start: int, stop: int) -> NDArray[Any]:
        return np.stack([tau.steps.read(step, start, stop) for step in range(tau.H)], axis=1)

    return Labels(_first(whole, n), np.ones(tau.n, dtype=np.int64), read)


def _first(actions: Ints, n: int | None) -> Ints:
    """Only the first n that are known, trajectory by trajectory."""
    number = np.cumsum(actions.ravel() >= 0).reshape(actions.shape)
    return actions if n is None else np.where(number <= n, actions, -1)


def _by_trajectory(arrays: dict[str, NDArray[Any]], tau: TrajectoryDataset) -> Ints:
    """The actions of the trajectories of the store, (n, H), -1 where none is known."""
    if "actions" in arrays:
        actions = _whole(arrays["actions"], 2)
        if len(actions) != tau.n or actions.shape[1] > tau.H:
            raise ValueError(f"it has actions of {len(actions)} trajectories, and the store has {tau.n}")
        return actions
    out = np.full((tau.n, tau.H), -1, dtype=np.int64)
    for k in range(int(arrays["n_agents"])):
        offsets, flat = _whole(arrays[f"offsets_{k}"]), arrays[f"actions_{k}"]
        if k >= tau.K or len(offsets) - 1 != tau.counts[k] or offsets[-1] != len(flat):
            raise ValueError("its episodes are not those of the store")
        if len(flat):
            whole = _whole(flat[:, 0] if flat.ndim == 2 and flat.shape[1] == 1 else flat)
            for i, (start, stop) in enumerate(pairwise(offsets.tolist()), start=tau.agent_slice(k).start):
                known = whole[start:stop][: tau.H]
                out[i, : len(known)] = known
    return out


def _whole(values: NDArray[Any], ndim: int = 1) -> Ints:
    """Whole numbers of so many dimensions; floats that are whole will do."""
    if values.ndim != ndim:
        raise ValueError(f"actions have shape {values.shape}, and each must be one whole number")
    whole = values.astype(np.int64)
    if values.dtype.kind not in "biuf" or (whole != values).any():
        raise ValueError(f"actions are {values.dtype}, and each must be one whole number")
    return whole
