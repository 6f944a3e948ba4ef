"""Action labels, kept aside: a file beside the store, which nothing in the library learns from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.files import written_whole
from craftrl.data.places import Place, target
from craftrl.data.seals import UNREADABLE, read_arrays
from craftrl.errors import InvalidDataError, InvalidParameterError

__all__ = ["actions_path", "read_actions", "write_actions"]


def actions_path(store: str | os.PathLike[str]) -> Place:
    """Where a store's actions lie: data.h5 goes with data.actions.npz, beside it."""
    path = target("The store", store)
    return path.with_name(f"{path.stem}.actions.npz")


def write_actions(store: str | os.PathLike[str], agents: Sequence[Sequence[NDArray[Any] | None]]) -> bool:
    """The actions of every agent's episodes, in the order of the store; False where there are none at all.

    Episodes lie one after the other in `actions_K` of agent K; `offsets_K` says where each begins. `n_agents` tells a
    whole file from one that lost some of its arrays.
    """
    if not any(actions is not None for episodes in agents for actions in episodes):
        return False
    arrays: dict[str, NDArray[Any]] = {"n_agents": np.array(len(agents))}
    for k, episodes in enumerate(agents):
        known = [actions for actions in episodes if actions is not None]
        if len({actions.shape[1:] for actions in known}) > 1:
            shapes = " and ".join(sorted({str(actions.shape[1:]) for actions in known}))
            raise InvalidDataError(
                f"The actions of one agent must have one shape; agent {k} has {shapes}; name the columns or arrays "
                "differently, so that they are not taken for actions."
            )
        arrays[f"actions_{k}"] = np.concatenate(known) if known else np.empty(0)
        lengths = [0 if actions is None else len(actions) for actions in episodes]
        arrays[f"offsets_{k}"] = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    path = actions_path(store)
    if path.exists() and not _holds(path, arrays):
        raise InvalidParameterError(
            f"The actions of {os.fspath(store)} belong into {path}; that file exists already and is of other data; "
            "remove it, or choose another name."
        )
    with written_whole(path, "actions") as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return True


def _holds(path: Place, arrays: dict[str, NDArray[Any]]) -> bool:
    """Whether the file holds these very arrays, as an import leaves them that was killed before its store was whole."""
    try:
        found = read_arrays(path)
    except UNREADABLE:
        return False
    return found.keys() == arrays.keys() and all(np.array_equal(found[name], arrays[name]) for name in arrays)


def read_actions(store: str | os.PathLike[str]) -> list[list[NDArray[Any]]]:
    """For every agent of a store, the actions of each of its episodes; an empty list where none were imported.

    An episode of n steps has n actions, or n - 1 where the source leaves out the one after the last observation, or
    none.
    """
    path = actions_path(store)
    if not path.is_file():
        if not target("The store", store).exists():
            raise InvalidDataError(f"There must be a dataset at {store}; nothing is there; check the name.")
        return []
    try:
        arrays = read_arrays(path)
        n_agents = int(arrays.pop("n_agents", len(arrays) // 2))  # the first files did not say
        found = [(arrays.pop(f"actions_{k}"), arrays.pop(f"offsets_{k}")) for k in range(n_agents)]
        if arrays:
            raise ValueError(f"it holds {', '.join(arrays)} as well")
        for actions, offsets in found:
            if offsets[0] != 0 or offsets[-1] != len(actions) or (np.diff(offsets) < 0).any():
                raise ValueError("the offsets of its episodes do not fit")
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{path} must be the actions that craftrl import wrote; it cannot be read ({error}); import again."
        ) from error
    return [[actions[a:b] for a, b in pairwise(offsets)] for actions, offsets in found]
