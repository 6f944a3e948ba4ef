"""Minari datasets: a local folder, or `minari:NAME` for one among Minari's own.

https://minari.farama.org
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.errors import InvalidDataError, require
from craftrl.importing.recordings import Content, Recording, stamp

__all__ = ["METADATA", "named_folder", "minari_dataset"]

METADATA = "metadata.json"  # lies in the folder `data` of a dataset


def named_folder(name: str) -> Path:
    """Where Minari keeps a dataset of this name; it must have been downloaded or created before."""
    root = Path(require("minari.storage.datasets_root_dir", "minari").get_dataset_path(name))
    if not root.is_dir():
        raise InvalidDataError(
            f"There must be a Minari dataset {name}; none is at {root}; get it with: minari download {name}"
        )
    return root


def minari_dataset(path: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode of the dataset in this folder, or in its folder `data`, is a recording."""
    data = path / "data" if (path / "data" / METADATA).is_file() else path
    minari = require("minari.dataset.minari_storage", "minari")
    for file in data.glob("*.hdf5"):
        _check_self_contained(file)
    try:
        storage = minari.MinariStorage.read(data)
        n = int(storage.total_episodes)
    except Exception as error:  # gymnasium, h5py, JSON and Minari's asserts: whatever is damaged
        raise InvalidDataError(
            f"{data} must be a Minari dataset; it cannot be opened ({error}); write or download it again."
        ) from error
    read = partial(_episode, storage, data, keys)
    return [Recording(None, f"episode {i}", stamp(data / METADATA), "Minari", partial(read, i)) for i in range(n)]


def _check_self_contained(path: Path) -> None:
    """HDF5 files can name other files, whose bytes would be read as observations."""
    h5py = require("h5py", "minari")

    def leads_out(name: str, link: Any) -> str | None:
        if isinstance(link, h5py.ExternalLink):
            return name
        found = file[name] if isinstance(link, h5py.HardLink) else None
        return name if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual) else None

    try:
        with h5py.File(path, "r") as file:
            named = file.visititems_links(leads_out)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise InvalidDataError(
            f"{path} must be an HDF5 file of a Minari dataset; it cannot be opened ({error}); write or download it "
            "again."
        ) from error
    if named:
        raise InvalidDataError(
            f"A Minari dataset must hold its data itself; {path} refers to another file for {named}; write the dataset "
            "again."
        )


def _episode(storage: Any, data: Path, keys: tuple[str, ...], i: int) -> Content:
    try:
        found = next(iter(storage.get_episodes([i])))
    except (OSError, KeyError, ValueError, RuntimeError) as error:
        raise InvalidDataError(
            f"Episode {i} of {data} cannot be read ({error}); write or download the dataset again."
        ) from error
    x, actions, left = found["observations"], found["actions"], keys
    while isinstance(x, dict):
        name = left[0] if left else next(iter(x)) if len(x) == 1 else None
        if name is None or name not in x:
            raise InvalidDataError(
                f"One part of the observations must be chosen; {data} has {', '.join(x)}; name one with --key."
            )
        x, left = x[name], left[1:]
    if not isinstance(x, np.ndarray):
        raise InvalidDataError(
            f"Observations must be arrays; those of {data} are {type(x).__name__}; choose a part with --key."
        )
    lossy = "JPEG" if storage.jpeg_encoding and x.dtype == np.uint8 and x.ndim in (3, 4) else ""
    return Content(x, actions if isinstance(actions, np.ndarray) else None, lossy)
