"""Datasets: craftrl's own, Minari's (https://minari.farama.org) and LeRobot's. Each episode of one is a recording."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from craftrl.data import TrajectoryDataset, read_actions
from craftrl.data.files import readable
from craftrl.data.store import INDEX
from craftrl.errors import InvalidDataError, require
from craftrl.importing import arrays, tables
from craftrl.importing.recordings import Content, Frame, Recording, in_order, picture, stamp, video
from craftrl.importing.tables import numbers, read_table

if TYPE_CHECKING:
    from pyarrow import Table

METADATA = "metadata.json"  # lies in the folder `data` of a Minari dataset
LEROBOT = Path("meta/info.json")  # https://huggingface.co/docs/lerobot/lerobot-dataset-v3


def own_dataset(path: Path) -> list[Recording]:
    """Each trajectory of a dataset that craftrl wrote is a recording, of the agent that it is of there."""
    tau, actions, version = TrajectoryDataset.open(path), list(chain(*read_actions(path))), stamp(path / INDEX)
    names, about = [str(tau.names[k]) for k in tau.agent], tau.notes.get("agents", {})

    def read(i: int) -> Content:
        aside = actions[i] if actions and len(actions[i]) else None
        return Content(tau.episode(i), aside, "; ".join(about.get(names[i], {}).get("lossy", [])))

    return [Recording(name, f"{path.name}[{i}]", version, "craftrl", partial(read, i)) for i, name in enumerate(names)]


# -- Minari -----------------------------------------------------------------------------------------------------------


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
    with readable(data, "a Minari dataset"):
        for name in (_taken_from_elsewhere(h5py, file) for file in data.glob("*.hdf5")):
            if name is not None:
                raise InvalidDataError(f"A dataset must hold its data itself; {data} takes {name} from another file.")
        storage: Any = minari.MinariStorage.read(data)

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


# -- LeRobot, version 3 -----------------------------------------------------------------------------------------------


def lerobot_dataset(root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode is a recording; lerobot itself is not needed.

    `meta/info.json` has the features and the patterns of file names. `meta/episodes` has one row per episode: its
    length, which file of `data` holds its rows, and for each camera which file of `videos`, from which second on.
    """
    with readable(root / LEROBOT, "LeRobot's"):
        info = json.loads((root / LEROBOT).read_text())
        kinds = {name: feature.get("dtype") for name, feature in info["features"].items()}
        layout, fps = str(info["codebase_version"]), float(info["fps"])
        patterns = {kind: str(info.get(f"{kind}_path")) for kind in ("data", "video")}
    if not layout.startswith("v3."):
        converter = "python -m lerobot.scripts.convert_dataset_v21_to_v30"
        raise InvalidDataError(
            f"LeRobot datasets must have layout v3.0; {root} has {layout}; convert it with: {converter}"
        )
    cameras = [name for name, kind in kinds.items() if kind in ("video", "image")]
    chosen = list(keys) or cameras or ["observation.state"]
    if len(chosen) > 1 or chosen[0] not in kinds:
        known = ", ".join(name for name in kinds if name.startswith("observation"))
        raise InvalidDataError(f"One feature must be observed; {root} has {known or 'none'}; name one with --key.")
    (key,), version = chosen, stamp(root / LEROBOT)

    def file(kind: str, row: dict[str, Any], prefix: str) -> Path:
        numbers = {name: row[f"{prefix}/{name}"] for name in ("chunk_index", "file_index")}
        path = root / patterns[kind].format(video_key=key, **numbers)
        if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(root)):
            raise InvalidDataError(f"A dataset must hold its data itself; {root} takes {path}, which lies elsewhere.")
        return path

    def read(row: dict[str, Any]) -> Content:
        number, n, path = int(row["episode_index"]), int(row["length"]), file("data", row, "data")
        table = _held_table(path, stamp(path))
        own = table.filter(np.asarray(table.column("episode_index")) == number)
        actions = numbers(own, ["action"], path) if "action" in kinds else None
        if kinds[key] == "video":
            path = file("video", row, f"videos/{key}")
            found = video(path, float(row[f"videos/{key}/from_timestamp"]))
            return Content(_exactly(n, found.frames, f"{path}, episode {number},"), actions, found.lossy, n / fps)
        if kinds[key] == "image":
            images = [io.BytesIO(image["bytes"]) for image in own.column(key).to_pylist()]
            return Content(((i / fps, partial(picture, image, path)) for i, image in enumerate(images)), actions)
        return Content(numbers(own, [key], path), actions)

    columns = ["episode_index", "length", "data/chunk_index", "data/file_index"]
    if kinds[key] == "video":
        columns += [f"videos/{key}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]
    rows: list[dict[str, Any]] = []
    for part in in_order((root / "meta/episodes").rglob("*.parquet")):
        table = read_table(part)
        missing = [name for name in columns if name not in table.column_names]
        if missing:
            raise InvalidDataError(f"{part} must have a column {missing[0]}; it has none; convert the dataset again.")
        rows += table.select(columns).to_pylist()
    if not rows:
        raise InvalidDataError(
            f"A dataset must list its episodes; {root}/meta/episodes has no Parquet file; copy it again."
        )
    rows.sort(key=lambda row: row["episode_index"])
    return [Recording("", f"episode {row['episode_index']}", version, "LeRobot", partial(read, row)) for row in rows]


@lru_cache(maxsize=1)
def _held_table(path: Path, version: str) -> Table:
    """A file of `data`: many episodes share one."""
    return read_table(path)


def release() -> None:
    """Give back the memory of the file that was read last, of each kind that holds many recordings."""
    for read in (arrays._load, tables._episodes, _held_table):
        read.cache_clear()


def _exactly(n: int, frames: Any, name: str) -> Iterator[Frame]:
    """The first n frames, if there are as many."""
    found = 0
    for frame in islice(frames, n):
        found += 1
        yield frame
    if found != n:
        raise InvalidDataError(f"{name} must have {n} steps; {found} could be read; copy the file again.")
