"""Labels as files: transitions whose action is known, beside a store of videos or by themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Labels:
    """Single labels, in order: x (n, 2, *obs), the actions between the two (n,), and the step h of the first (n,)."""

    x: NDArray[Any]
    actions: Ints
    h: Ints

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def n_actions(self) -> int:
        """How many actions there are at least: one more than the largest number."""
        return int(self.actions.max(initial=-1)) + 1

    def add_to(self, grounding: Grounding, model: Any) -> int:
        """Add them to a grounding; returned is how many there were whose two states the model could name."""
        steps = [1] if grounding.nodes.shared else sorted(set(self.h.tolist()))
        rows = [np.ones(len(self), dtype=bool) if grounding.nodes.shared else self.h == h for h in steps]
        return sum(grounding.add_labels(model, self.x[row], self.actions[row], h) for h, row in zip(steps, rows))


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
    known = np.flatnonzero(actions >= 0)[:n]
    return Labels(x[known], actions[known], h[known])


def _of_store(by_trajectory: Iterator[tuple[int, Ints]], tau: TrajectoryDataset, n: int | None) -> Labels:
    found: list[tuple[int, int, int]] = []
    for i, actions in by_trajectory:
        last = int(tau.lengths[i]) - 1  # steps that have a successor
        found += [(i, h, int(actions[h - 1])) for h in range(1, min(last, len(actions)) + 1) if actions[h - 1] >= 0]
        if n is not None and len(found) >= n:
            break
    kept = found[:n]
    x = np.empty((len(kept), 2, *tau.obs_shape), dtype=tau.dtype)
    for row, (i, h, _) in zip(x, kept):
        row[:] = [tau.steps.read(step, i, i + 1)[0] for step in (h - 1, h)]
    _, h_, a_ = np.array(kept, dtype=np.int64).reshape(-1, 3).T
    return Labels(x, a_, h_)


def _by_trajectory(arrays: dict[str, NDArray[Any]], tau: TrajectoryDataset) -> Iterator[tuple[int, Ints]]:
    """The number of each trajectory of the store, and its actions."""
    if "actions" in arrays:
        actions = _whole(arrays["actions"], 2)
        if len(actions) != tau.n or actions.shape[1] > tau.H:
            raise ValueError(f"it has actions of {len(actions)} trajectories, and the store has {tau.n}")
        yield from enumerate(actions)
        return
    i = 0
    for k in range(int(arrays["n_agents"])):
        offsets = _whole(arrays[f"offsets_{k}"])
        flat = arrays[f"actions_{k}"]
        actions = _whole(flat[:, 0] if flat.ndim == 2 and flat.shape[1] == 1 else flat) if len(flat) else flat
        if k >= tau.K or len(offsets) - 1 != tau.counts[k] or (np.diff(offsets) < 0).any() or offsets[-1] > len(flat):
            raise ValueError("its episodes are not those of the store")
        for start, stop in zip(offsets, offsets[1:]):
            yield i, actions[start:stop]
            i += 1


def _whole(values: NDArray[Any], ndim: int = 1) -> Ints:
    """Whole numbers of so many dimensions; floats that are whole will do."""
    if values.ndim != ndim:
        raise ValueError(f"actions have shape {values.shape}, and each must be one whole number")
    whole = values.astype(np.int64)
    if values.dtype.kind not in "biuf" or (whole != values).any():
        raise ValueError(f"actions are {values.dtype}, and each must be one whole number")
    return whole
