"""Labels and groundings as files: transitions whose action is known, and what they told.

A label file is a dataset that was recorded with actions, or an NPZ file with pairs of observations. A grounding file
holds every label in numbers, tied to the model whose states they name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_source, check_target, check_whole, is_url, is_whole
from craftrl.data import urls
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import UNREADABLE, sealed_text, unsealed, write_text
from craftrl.data.store import is_dataset, read_actions
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.planning.graph import StateGraph
from craftrl.planning.grounding import MOST_ACTIONS, Grounding

__all__ = ["Labels", "load_grounding", "model_fingerprint", "read_labels", "save_grounding"]

Ints = NDArray[np.integer]
BLOCK = 256  # trajectories that are read at a time
FORMAT, VERSION = "craftrl grounding", 1
MOST_TIMES = 10**7


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
            for step in [1] if grounding.graph.shared else sorted(set(h.tolist())):
                here = np.ones(len(h), dtype=bool) if grounding.graph.shared else h == step
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


def model_fingerprint(path: str | os.PathLike[str]) -> str:
    """What tells a saved model from others: a checksum of its file."""
    data = urls.read_bytes(os.fspath(path)) if is_url(path) else check_source("The model", path).read_bytes()
    return hashlib.sha256(data).hexdigest()[:16]


def save_grounding(path: str | os.PathLike[str], grounding: Grounding, model: str) -> None:
    """Write all labels of a grounding to a JSON file, whole or not at all; an earlier grounding is replaced.

    model  what tells the model from others, as `model_fingerprint` gives it
    """
    check_kind("grounding", grounding, Grounding, "a Grounding")
    _check_fingerprint(model)
    content = {
        "format": FORMAT,
        "format_version": VERSION,
        "model": model,
        "shared": grounding.graph.shared,
        "n_actions": grounding.n_actions,
        "labels": [list(label) for label in grounding.labels],
    }
    where = check_target("The grounding", path)
    if where.exists():
        _read(where)  # an earlier grounding is replaced, and nothing else
    write_text(where, sealed_text(content))


def load_grounding(
    path: str | os.PathLike[str], moves: StateGraph, model: str, *, latent: Any = None, deterministic: bool = True
) -> Grounding:
    """A grounding from such a file, over the moves of the same model; the rest is as for `Grounding`."""
    check_kind("moves", moves, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    _check_fingerprint(model)
    content = _read(check_source("The grounding", path))
    if content["model"] != model or content["shared"] != moves.shared:
        raise InvalidDataError(
            f"A grounding must be of this model, since every model numbers its states in its own way; {path} is of "
            "another one; choose another name, and ground again."
        )
    if any(node >= moves.n for s, _, t, _ in content["labels"] for node in (s, t)):
        raise InvalidDataError(
            f"A grounding must name states 0..{moves.n - 1}, as in this data; {path} names others; give the "
            "data that it was made with."
        )
    grounding = Grounding(moves, content["n_actions"], latent, deterministic)
    for s, a, t, times in content["labels"]:
        for _ in range(times):
            grounding.add(s, a, t)
    return grounding


def _check_fingerprint(model: Any) -> None:
    if not isinstance(model, str) or not model:
        raise InvalidParameterError(
            "model must be a text that tells the model from others; none was given; call model_fingerprint(path)."
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = unsealed(path.read_bytes())
        if content["format"] != FORMAT or content["format_version"] != VERSION:
            raise ValueError("it is of another kind or version")
        _check_labels(content["labels"], content["n_actions"])
        _ = content["model"], content["shared"]
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{path} must be a grounding that craftrl plan wrote; it cannot be read ({error}); choose another name, or "
            "remove it and ground again."
        ) from error
    return content


def _check_labels(labels: Any, n_actions: Any) -> None:
    if not (is_whole(n_actions) and 1 <= n_actions <= MOST_ACTIONS):
        raise ValueError("it has no number of actions")
    for label in labels:
        s, a, t, times = label
        if not all(is_whole(part) for part in label) or min(s, a, t) < 0 or not 1 <= times <= MOST_TIMES:
            raise ValueError("a label is not a state, an action, a state and how often")
        if a >= n_actions:
            raise ValueError("a label has an action that there is not")
