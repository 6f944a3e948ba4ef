"""NumPy files. One file is all trajectories of an agent, (n, steps, ...); in a folder, each is one episode.

An NPZ file may hold more: `lengths` (n,) where trajectories end early, `agent` (n,) where it holds several agents, and
`actions`. Without a known name for the observations, each array in it is an episode.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.seals import UNREADABLE, read_array
from craftrl.errors import CraftError, InvalidDataError
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, Episode, Recording, name_in, stamp

__all__ = ["SUFFIXES", "array_file", "array_folder"]

SUFFIXES = (".npz", ".npy")
OBSERVATIONS = ("observations", "observation", "obs", "x", "frames", "images", "image")
ACTIONS = ("actions", "action")
ENDS = ("terminal", "terminals", "done", "dones", "is_first", "is_last", "is_terminal", "discount")
NOT_OBSERVED = (*ACTIONS, *ENDS, "lengths", "agent", "reward", "rewards")


def array_file(path: Path, options: Options) -> list[Agent]:
    """All agents of one file: one, unless it says which trajectory is whose."""
    arrays = _Arrays(path)
    key = arrays.observed(options.keys)
    if key is None:
        return [Agent(path.stem, "NumPy", [_whole_array(arrays, name) for name in arrays.names])]
    x, lengths, owner = arrays[key], arrays.get("lengths"), arrays.get("agent")
    if x.ndim < 2:
        raise InvalidDataError(
            f"A file of trajectories must have shape (trajectories, steps, ...); {path} has {x.shape}; put single "
            "episodes into a folder, one file each."
        )
    for name, side in (("lengths", lengths), ("agent", owner)):
        if side is not None and side.shape != (len(x),):
            raise InvalidDataError(
                f"`{name}` must have one entry for each of the {len(x)} trajectories; in {path} it has {side.shape}."
            )
    ends = np.full(len(x), x.shape[1]) if lengths is None else lengths.astype(np.int64)
    if (ends < 1).any() or (ends > x.shape[1]).any():
        raise InvalidDataError(
            f"`lengths` must lie in 1..{x.shape[1]}; in {path} they run from {ends.min()} to {ends.max()}."
        )
    episodes = [_row(arrays, x, arrays.get(*ACTIONS), i, int(end)) for i, end in enumerate(ends)]
    if owner is None:
        return [Agent(path.stem, "NumPy", episodes)]
    mine: dict[str, list[Episode]] = {}
    for name, episode in zip(owner.tolist(), episodes):
        mine.setdefault(str(name), []).append(episode)
    return [Agent(name, "NumPy", found, named_inside=True) for name, found in mine.items()]


def array_folder(files: Iterable[Path], root: Path, options: Options) -> list[Agent]:
    """One agent, one episode per file."""
    return [Agent(root.name, "NumPy", [_episode_file(file, root, options) for file in files])]


class _Arrays:
    """The arrays of one file, each read when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self.stamp = path, stamp(path)
        self._held: dict[str, NDArray[Any]] = {}
        self.names = [""] if path.suffix == ".npy" else self._load(_members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._held:
            alone = self.path.suffix == ".npy"
            self._held[name] = self._load(lambda file: file if alone else read_array(file, name))
        return self._held[name]

    def get(self, *names: str) -> NDArray[Any] | None:
        return next((self[name] for name in names if name in self.names), None)

    def observed(self, keys: tuple[str, ...]) -> str | None:
        """Which array holds the observations; None where every array is an episode."""
        if keys:
            if len(keys) > 1 or keys[0] not in self.names:
                raise InvalidDataError(
                    f"keys (--key) must name one array; {', '.join(keys)} was given, and {self.path} has "
                    f"{', '.join(self.names)}."
                )
            return keys[0]
        known = [name for name in OBSERVATIONS if name in self.names]
        left = [name for name in self.names if name not in NOT_OBSERVED]
        return known[0] if known else left[0] if len(left) == 1 else None

    def _load(self, take: Any) -> Any:
        try:
            if self.path.suffix == ".npy":
                return take(np.load(self.path, mmap_mode="r"))
            with zipfile.ZipFile(self.path) as archive:
                return take(archive)
        except CraftError:
            raise
        except UNREADABLE as error:
            raise InvalidDataError(
                f"{self.path} must be a NumPy file of numbers; it cannot be read ({error}); write or copy it again."
            ) from error


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [name.removesuffix(".npy") for name in archive.namelist()]


def _row(arrays: _Arrays, x: NDArray[Any], actions: NDArray[Any] | None, i: int, end: int) -> Episode:
    def read(steps: slice) -> Recording:
        return Recording(x[i, :end][steps], None if actions is None else actions[i, :end][steps])

    return Episode(f"{arrays.path.name}[{i}]", arrays.stamp, read, lambda: end)


def _whole_array(arrays: _Arrays, name: str) -> Episode:
    return Episode(
        f"{arrays.path.name}/{name}",
        arrays.stamp,
        lambda steps: Recording(arrays[name][steps]),
        lambda: len(arrays[name]),
    )


def _episode_file(path: Path, root: Path, options: Options) -> Episode:
    def read(steps: slice) -> Recording:
        arrays = _Arrays(path)
        key = arrays.observed(options.keys)
        if key is None:
            raise InvalidDataError(
                f"An episode's file must say which array is observed; {path} has {', '.join(arrays.names)}; name it "
                "with --key."
            )
        actions = arrays.get(*ACTIONS)
        return Recording(arrays[key][steps], None if actions is None else actions[steps])

    def count() -> int:
        return len(read(slice(None)).observations)  # type: ignore[arg-type]

    return Episode(name_in(root, path), stamp(path), read, count)
