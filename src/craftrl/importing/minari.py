"""Minari datasets: a local folder, or `minari:NAME` for one among Minari's own (https://minari.farama.org)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.errors import InvalidDataError, require
from craftrl.importing.recordings import Content, Recording, stamp

METADATA = "metadata.json"  # lies in the folder `data` of a dataset


def named_folder(name: str) -> Path:
    """Where Minari keeps a dataset of this name; it must have been downloaded or created before."""
    root = Path(require("minari.storage.datasets_root_dir", "minari").get_dataset_path(name))
    if not root.is_dir():
        raise InvalidDataError(f"There must be a Minari dataset {name}; none is at {root}; run: minari download {name}")
    return root


def minari_dataset(path: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode of the dataset in this folder, or in its folder `data`, is a recording."""
    data = path / "data" if (path / "data" / METADATA).is_file() else path
    minari, h5py = require("minari.dataset.minari_storage", "minari"), require("h5py", "minari")
    try:
        outside = [name for file in data.glob("*.hdf5") if (name := _taken_from_elsewhere(h5py, file))]
        storage: Any = None if outside else minari.MinariStorage.read(data)
    except Exception as error:  # gymnasium, h5py, JSON and Minari's asserts: whatever is damaged
        raise InvalidDataError(
            f"{data} must be a Minari dataset; it cannot be opened ({error}); copy it again."
        ) from error
    if outside:
        raise InvalidDataError(f"A dataset must hold its data itself; {data} takes {outside[0]} from another file.")

    def read(i: int) -> Content:
        found = next(iter(storage.get_episodes([i])))
        x, actions, left = found["observations"], found["actions"], keys
        while isinstance(x, dict):
            name = left[0] if left else next(iter(x)) if len(x) == 1 else None
            if name not in x:
                raise InvalidDataError(f"One part must be observed; {data} has {', '.join(x)}; name one with --key.")
            x, left = x[name], left[1:]
        if not isinstance(x, np.ndarray):
            raise InvalidDataError(f"Observations must be arrays; those of {data} are not; choose a part with --key.")
        lossy = "JPEG" if storage.jpeg_encoding and x.dtype == np.uint8 and x.ndim in (3, 4) else ""
        return Content(x, actions if isinstance(actions, np.ndarray) else None, lossy)

    n, version = int(storage.total_episodes), stamp(data / METADATA)
    return [Recording("", f"episode {i}", version, "Minari", partial(read, i)) for i in range(n)]


def _taken_from_elsewhere(h5py: Any, path: Path) -> str | None:
    """What an HDF5 file takes from other files, if anything: their bytes would be read as observations."""

    def outside(name: str, link: Any) -> str | None:
        found = file[name] if isinstance(link, h5py.HardLink) else None
        stored = isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)
        return name if stored or isinstance(link, h5py.ExternalLink) else None

    with h5py.File(path, "r") as file:
        return file.visititems_links(outside)
