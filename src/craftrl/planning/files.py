"""Labels and groundings as files: transitions whose action is known, and what they say.

A label file is a dataset that was recorded with actions, or an NPZ file with pairs of observations. A grounding file
holds every label in numbers, tied to the model whose states they name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_source, check_target, check_whole
from craftrl.arrays import Ints
from craftrl.data import urls
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import readable, sealed_text, unsealed, write_text
from craftrl.data.store import is_dataset, read_actions
from craftrl.errors import InvalidDataError
from craftrl.planning.graph import StateGraph
from craftrl.planning.grounding import Grounding
from craftrl.planning.latent import LatentActions

BLOCK = 256  # trajectories that are read at a time
FORMAT = "craftrl grounding"


@dataclass(frozen=True)
class Labels:
    """Trajectories, or pieces of them, with the actions that are known; observations are read when they are needed.

    actions  (n, H-1): the action between each two observations, -1 where it is not known
    h        (n,): the step of the first observation, counted from 1
    read     the observations (m, H, *obs) of some rows (m,)
    """

    actions: Ints
    h: Ints
    read: Callable[[Ints], NDArray[Any]]

    @property
    def n_actions(self) -> int:
        """How many actions there are at least: one more than the largest number."""
        return int(self.actions.max(initial=-1)) + 1

    def add_to(self, grounding: Grounding, model: Any) -> int:
        """Add them to a grounding; returned is how many there were whose two states the model could name."""
        known, added = np.flatnonzero((self.actions >= 0).any(axis=1)), 0
        for h in np.unique(self.h[known]).tolist():
            rows = known[self.h[known] == h]
            for block in np.split(rows, range(BLOCK, len(rows), BLOCK)):
                added += grounding.add_labels(model, self.read(block), self.actions[block], h)
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
    actions: Ints = np.full((tau.n, tau.H - 1), -1, dtype=np.int64)
    h: Ints = np.ones(tau.n, dtype=np.int64)
    read: Callable[[Ints], NDArray[Any]] = tau.rows
    what = "an NPZ file with x (n, 2, ...) and actions (n,), or a dataset with actions, as craftrl import writes it"
    with readable(path, what, "check the name"):
        if is_dataset(where):
            agents = read_actions(where)
            if [len(episodes) for episodes in agents] != tau.counts.tolist():
                raise ValueError("its episodes are not those of the data" if agents else "it has no actions")
            for row, length, found in zip(actions, tau.lengths, chain.from_iterable(agents)):
                known = _whole(found[:, 0] if found.shape[1:] == (1,) else found)[: length - 1]
                row[: len(known)] = known
        else:
            with np.load(where, allow_pickle=False) as arrays:
                x, actions = arrays["x"], _whole(arrays["actions"])[:, None]
                h = _whole(arrays["h"]) if "h" in arrays else np.ones(len(x), dtype=np.int64)
            read = x.__getitem__
            if x.shape[1:] != (2, *tau.obs_shape) or not len(x) == len(actions) == len(h):
                raise ValueError(f"x has shape {x.shape}, actions {actions.shape}, and observations {tau.obs_shape}")
    if n is not None:  # trajectory by trajectory
        number = np.cumsum(actions.ravel() >= 0).reshape(actions.shape)
        actions = np.where(number <= n, actions, -1)
    return Labels(actions, h, read)


def _whole(values: NDArray[Any]) -> Ints:
    """Whole numbers in one row; floats that are whole will do."""
    whole = values.astype(np.int64)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or (whole != values).any():
        raise ValueError(f"actions are {values.dtype} of shape {values.shape}, and each must be one whole number")
    return whole


def model_fingerprint(path: str | os.PathLike[str]) -> str:
    """What tells a saved model from others: a checksum of its file."""
    return hashlib.sha256(urls.read_bytes(urls.source("The model", path))).hexdigest()[:16]


def save_grounding(path: str | os.PathLike[str], grounding: Grounding, model: str) -> None:
    """Write all labels of a grounding to a JSON file, whole or not at all; an earlier grounding is replaced.

    model  what tells the model from others, as `model_fingerprint` gives it
    """
    check_kind("grounding", grounding, Grounding, "a Grounding")
    check_kind("model", model, str, "a text, as model_fingerprint(path) gives it")
    where = check_target("The grounding", path)
    if where.exists():
        _read(where)  # an earlier grounding is replaced, and nothing else
    content = {"format": FORMAT, "model": model, "shared": grounding.graph.shared, "n_actions": grounding.n_actions}
    write_text(where, sealed_text({**content, "labels": grounding.labels}))


def load_grounding(
    path: str | os.PathLike[str],
    graph: StateGraph,
    model: str,
    *,
    latent: LatentActions | None = None,
    deterministic: bool = True,
) -> Grounding:
    """A grounding from such a file, over the moves of the same model; the rest is as for `Grounding`."""
    check_kind("graph", graph, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    content = _read(check_source("The grounding", path))
    if content["model"] != model or content["shared"] != graph.shared:
        raise InvalidDataError(
            f"A grounding must be of this model, since every model numbers its states in its own way; {path} is of "
            "another one; choose another name, and ground again."
        )
    if any(node >= graph.n for s, _, t, _ in content["labels"] for node in (s, t)):
        raise InvalidDataError(
            f"A grounding must name states 0..{graph.n - 1}, as in this data; {path} names others; give the "
            "data that it was made with."
        )
    grounding = Grounding(graph, content["n_actions"], latent, deterministic)
    for s, a, t, times in content["labels"]:
        for _ in range(times):
            grounding.add(s, a, t)
    return grounding


def _read(path: Path) -> dict[str, Any]:
    advice = "choose another name, or remove it and ground again"
    with readable(path, "a grounding that craftrl plan wrote", advice):
        content = unsealed(path.read_bytes())
        if content["format"] != FORMAT:
            raise ValueError("it is of another kind")
    return content
