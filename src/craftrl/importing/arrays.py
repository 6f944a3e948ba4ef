"""NumPy files.

One NumPy file is all trajectories of an agent, (n, steps, ...), or one recording of pictures, (steps, rows, columns,
1 or 3); in a folder, each is one episode. Bytes in rows and columns are grey pictures. An NPZ file may hold more:
`lengths` (n,) where trajectories end early, `agent` (n,) where it holds several agents, and `actions`. Without a known
name for the observations, each array in it is an episode.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.files import readable
from craftrl.errors import InvalidDataError
from craftrl.importing.recordings import Content, Recording, name_in, stamp

ARRAYS = (".npz", ".npy")
OBSERVATIONS = ("observations", "observation", "obs", "x", "frames", "images", "image")
ACTIONS = ("actions", "action")
ENDS = ("terminal", "terminals", "done", "dones", "discount", "is_first", "is_last", "is_terminal")
NOT_OBSERVED = (*ACTIONS, *ENDS, "lengths", "agent", "reward", "rewards")


def array_file(path: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each trajectory of a file is a recording; the file may say whose each is."""
    version = stamp(path)
    x, arrays = _load(path, version, keys)
    found: list[tuple[str, Any]] = [("", name) for name in arrays]
    if x is not None:
        if x.ndim == 4 and x.dtype == np.uint8 and x.shape[-1] in (1, 3):
            return array_folder([path], path, keys)
        if x.ndim < 2 or x.shape[1] == 0:
            raise InvalidDataError(f"A file of trajectories must have shape (n, steps, ...); {path} has {x.shape}.")
        n, steps = x.shape[:2]
        ends, owners = arrays.get("lengths", np.full(n, steps)), arrays.get("agent", np.full(n, ""))
        acts = _actions(arrays)
        fit = ends.shape == owners.shape == (n,) and (acts is None or (acts.ndim > 1 and len(acts) == n))
        if not fit or ends.dtype.kind not in "iu" or ((ends < 1) | (ends > steps)).any():
            raise InvalidDataError(
                f"In an NPZ file of {n} trajectories, `lengths` must be {n} numbers from 1 to {steps}, `agent` {n} "
                f"names, and `actions` have shape ({n}, steps, ...); those of {path} are not so; correct them."
            )
        found = [(str(owner), i) for i, owner in enumerate(owners.tolist())]

    def read(which: Any) -> Content:
        x, arrays = _load(path, version, keys)
        if x is None:
            return _content(arrays[which])
        part = (which, slice(int(arrays["lengths"][which]) if "lengths" in arrays else None))
        actions = _actions(arrays)
        return _content(x[part], None if actions is None else actions[part])

    return [Recording(owner, f"{path.name}[{which}]", version, "NumPy", partial(read, which)) for owner, which in found]


def array_folder(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each file is a recording."""

    def read(file: Path) -> Content:
        x, arrays = _load(file, stamp(file), keys)
        if x is None:
            raise InvalidDataError(f"One array must be chosen; {file} has {', '.join(arrays)}; name one with --key.")
        if not 0 < x.ndim < 5:
            several = "several, " if x.ndim else ""
            raise InvalidDataError(
                f"In a folder, each NumPy file must be one episode, (steps, ...); {file} has {several}shape {x.shape}; "
                "give the file itself, one for each agent."
            )
        return _content(x, _actions(arrays))

    return [Recording("", name_in(root, file), stamp(file), "NumPy", partial(read, file)) for file in files]


def _content(x: NDArray[Any], actions: NDArray[Any] | None = None) -> Content:
    """An episode; grey pictures (steps, rows, columns) in bytes get the axis of channels that all pictures have."""
    return Content(x[..., None] if x.ndim == 3 and x.dtype == np.uint8 else x, actions)


@lru_cache(maxsize=1)  # while the recordings in a file are read, one after the other
def _load(path: Path, version: str, keys: tuple[str, ...]) -> tuple[NDArray[Any] | None, dict[str, NDArray[Any]]]:
    """The observations in a file, if it is known which array has them; and all its arrays of use."""
    with readable(path, "a NumPy file of numbers"):
        if path.suffix.lower() == ".npy":
            return np.load(path, mmap_mode="r"), {}
        with path.open("rb") as file, np.load(file) as archive:
            names = archive.files
            known = keys or [name for name in OBSERVATIONS if name in names][:1]
            known = known or [name for name in names if name not in NOT_OBSERVED]
            wanted = [*known, "lengths", "agent", *ACTIONS] if len(known) == 1 else known
            arrays = {name: archive[name] for name in wanted if name in names}
    if keys and (len(keys) > 1 or keys[0] not in names):
        raise InvalidDataError(f"--key must name one array; {path} has {', '.join(names)}, not {', '.join(keys)}.")
    return arrays[known[0]] if len(known) == 1 else None, arrays


def _actions(arrays: dict[str, NDArray[Any]]) -> NDArray[Any] | None:
    return next((arrays[name] for name in ACTIONS if name in arrays), None)
