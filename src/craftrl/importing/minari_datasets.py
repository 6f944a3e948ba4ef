"""Minari datasets: a local folder, or `minari:NAME` for one among Minari's own.

https://minari.farama.org
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, Episode, Recording, stamp

__all__ = ["METADATA", "minari_dataset", "named_minari_dataset"]

METADATA = "metadata.json"  # lies in the folder `data` of a dataset


def named_minari_dataset(name: str, options: Options) -> list[Agent]:
    """A dataset by its name in Minari's own folder; it must have been downloaded or created before."""
    storage = require("minari.dataset.minari_storage", "minari")
    root = require("minari.storage.datasets_root_dir", "minari").get_dataset_path(name)
    if not Path(root).is_dir():
        raise InvalidDataError(
            f"There must be a Minari dataset {name}; none is at {root}; get it with: minari download {name}"
        )
    return _agents(storage, Path(root) / "data", name, options)


def minari_dataset(path: Path, options: Options) -> list[Agent]:
    """A dataset in a folder, that of the dataset or the one of its data."""
    data = path / "data" if (path / "data" / METADATA).is_file() else path
    return _agents(require("minari.dataset.minari_storage", "minari"), data, path.name, options)


def _agents(module: Any, data: Path, name: str, options: Options) -> list[Agent]:
    try:
        storage = module.MinariStorage.read(data)
        n = int(storage.total_episodes)
    except Exception as error:  # gymnasium, h5py, JSON and Minari's asserts: whatever is damaged
        raise InvalidDataError(
            f"{data} must be a Minari dataset; it cannot be opened ({error}); write or download it again."
        ) from error
    version = stamp(data / METADATA)
    return [Agent(name, "Minari", [_episode(storage, data, i, version, options.keys) for i in range(n)])]


def _episode(storage: Any, data: Path, i: int, version: str, keys: tuple[str, ...]) -> Episode:
    def load() -> tuple[NDArray[Any], Any]:
        try:
            found = next(iter(storage.get_episodes([i])))
        except (OSError, KeyError, ValueError) as error:
            raise InvalidDataError(
                f"Episode {i} of {data} cannot be read ({error}); write or download the dataset again."
            ) from error
        return _chosen(found["observations"], keys, data), found["actions"]

    def read(steps: slice) -> Recording:
        x, actions = load()
        lossy = "JPEG" if storage.jpeg_encoding and x.dtype == np.uint8 and x.ndim in (3, 4) else ""
        return Recording(x[steps], actions[steps] if isinstance(actions, np.ndarray) else None, lossy)

    return Episode(f"episode {i}", version, read, lambda: len(load()[0]))


def _chosen(observations: Any, keys: tuple[str, ...], data: Path) -> NDArray[Any]:
    """The array of observations; where there are several, the one that was named."""
    while isinstance(observations, dict):
        name = keys[0] if keys else next(iter(observations)) if len(observations) == 1 else None
        if name is None or name not in observations:
            raise InvalidDataError(
                f"One part of the observations must be chosen; {data} has {', '.join(observations)}; name one with "
                "--key."
            )
        observations, keys = observations[name], keys[1:]
    if not isinstance(observations, np.ndarray):
        raise InvalidDataError(
            f"Observations must be arrays; those of {data} are {type(observations).__name__}; choose a part with --key."
        )
    return observations
