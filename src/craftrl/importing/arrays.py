"""NumPy files and craftrl's own datasets.

One NumPy file is all trajectories of an agent, (n, steps, ...); in a folder, each is one episode. An NPZ file may hold
more: `lengths` (n,) where trajectories end early, `agent` (n,) where it holds several agents, and `actions`. Without a
known name for the observations, each array in it is an episode.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data import TrajectoryDataset
from craftrl.data.store import INDEX, read_actions
from craftrl.errors import InvalidDataError
from craftrl.importing.recordings import Content, Recording, name_in, stamp

__all__ = ["ARRAYS", "array_file", "array_folder", "dataset"]

ARRAYS = (".npz", ".npy")
OBSERVATIONS = ("observations", "observation", "obs", "x", "frames", "images", "image")
ACTIONS = ("actions", "action")
NOT_OBSERVED = (
    *(*ACTIONS, "lengths", "agent", "reward", "rewards", "terminal", "terminals", "done", "dones", "discount"),
    *("is_first", "is_last", "is_terminal"),
)

UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, MemoryError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error),
)


def array_file(path: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each trajectory of a file is a recording; the file may say whose each is."""
    version = stamp(path)
    key, arrays = _load(path, version, keys)
    read = partial(_trajectory, path, version, keys)
    if key is None:
        return [Recording(None, f"{path.name}/{name}", version, "NumPy", partial(read, name)) for name in arrays]
    x = arrays[key]
    if x.ndim < 2:
        raise InvalidDataError(
            f"A file of trajectories must have shape (trajectories, steps, ...); {path} has {x.shape}; put single "
            "episodes into a folder, one file each."
        )
    for name in ("lengths", "agent"):
        if name in arrays and arrays[name].shape != (len(x),):
            raise InvalidDataError(
                f"`{name}` must have one entry for each of the {len(x)} trajectories; in {path} it has shape "
                f"{arrays[name].shape}; correct it."
            )
    ends = arrays.get("lengths", np.full(len(x), x.shape[1]))
    if ends.dtype.kind not in "iu" or (ends < 1).any() or (ends > x.shape[1]).any():
        raise InvalidDataError(
            f"`lengths` must be whole numbers from 1 to {x.shape[1]}; those of {path} are not; correct them."
        )
    owners = arrays["agent"].tolist() if "agent" in arrays else [None] * len(x)
    return [
        Recording(
            None if owner is None else str(owner), f"{path.name}[{i}]", version, "NumPy", partial(read, i, int(end))
        )
        for i, (owner, end) in enumerate(zip(owners, ends))
    ]


def array_folder(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each file is a recording."""
    return [
        Recording(None, name_in(root, file), stamp(file), "NumPy", partial(_episode, file, keys)) for file in files
    ]


def dataset(path: Path) -> list[Recording]:
    """All trajectories of a dataset that craftrl wrote, with the names of their agents."""
    tau, actions, version = TrajectoryDataset.open(path), read_actions(path), stamp(path / INDEX)
    lossy = dict(tau.notes.get("lossy", {}))

    def read(i: int) -> Content:
        agent = str(tau.names[tau.agent[i]])
        return Content(tau.episode(i), actions[i] if actions else None, "; ".join(lossy.get(agent, [])))

    return [
        Recording(str(tau.names[k]), f"{path.name}[{i}]", version, "craftrl", partial(read, i))
        for i, k in enumerate(tau.agent.tolist())
    ]


@lru_cache(maxsize=1)
def _load(path: Path, version: str, keys: tuple[str, ...]) -> tuple[str | None, dict[str, NDArray[Any]]]:
    """The arrays of a file, held while its trajectories are read; and which has the observations, if one does."""
    try:
        if path.suffix.lower() == ".npy":
            return "", {"": np.load(path, mmap_mode="r")}
        with np.load(path) as archive:
            names = archive.files
            known = keys or [name for name in OBSERVATIONS if name in names][:1]
            known = known or [name for name in names if name not in NOT_OBSERVED]
            if keys and (len(keys) > 1 or keys[0] not in names):
                raise InvalidDataError(
                    f"keys (--key) must name one array; {', '.join(keys)} was given, and {path} has "
                    f"{', '.join(names)}."
                )
            key = known[0] if len(known) == 1 else None
            wanted = known if key is None else [key, "lengths", "agent", *ACTIONS]
            return key, {name: archive[name] for name in wanted if name in names}
    except InvalidDataError:
        raise
    except UNREADABLE as error:
        raise InvalidDataError(
            f"{path} must be a NumPy file of numbers; it cannot be read ({error}); write or copy it again."
        ) from error


def _trajectory(path: Path, version: str, keys: tuple[str, ...], i: int | str, end: int | None = None) -> Content:
    key, arrays = _load(path, version, keys)
    if key is None:
        return Content(arrays[str(i)])
    actions = next((arrays[name] for name in ACTIONS if name in arrays), None)
    return Content(arrays[key][i, :end], None if actions is None else actions[i, :end])


def _episode(path: Path, keys: tuple[str, ...]) -> Content:
    key, arrays = _load(path, stamp(path), keys)
    if key is None:
        raise InvalidDataError(
            f"An episode's file must say which array is observed; {path} has {', '.join(arrays)}; name it with --key."
        )
    return Content(arrays[key], next((arrays[name] for name in ACTIONS if name in arrays), None))
