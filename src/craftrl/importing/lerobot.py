"""The on-disk layout of LeRobot datasets, version 3, read with pyarrow and PyAV; lerobot itself is not needed.

`meta/info.json` has the features, the rate of frames and the patterns of file names. `meta/episodes` has one row per
episode: its length, which file of `data` holds its rows, and for each camera which file of `videos` holds its frames
and from which second on. Many episodes share a file.

https://huggingface.co/docs/lerobot/lerobot-dataset-v3
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError
from craftrl.importing.recordings import Content, Frame, Recording, in_order, picture, stamp, video
from craftrl.importing.tables import column_array, read_table

__all__ = ["INFO", "lerobot_dataset"]

INFO = Path("meta/info.json")
STATE, ACTION = "observation.state", "action"


def lerobot_dataset(root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode is a recording."""
    try:
        info = json.loads((root / INFO).read_text())
        version, features, fps = str(info["codebase_version"]), dict(info["features"]), float(info["fps"])
        data_path, video_path = str(info["data_path"]), str(info.get("video_path"))
        kinds = {name: feature.get("dtype") for name, feature in features.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDataError(
            f"{root / INFO} must say what a LeRobot dataset holds; it cannot be read ({error!r}); copy it again."
        ) from error
    if not version.startswith("v3."):
        raise InvalidDataError(
            f"LeRobot datasets must have layout v3.0; {root} has {version}; convert it with: python -m "
            "lerobot.scripts.convert_dataset_v21_to_v30"
        )
    cameras = [name for name, kind in kinds.items() if kind in ("video", "image")]
    known = [*cameras, *(name for name in kinds if name.startswith("observation") and name not in cameras)]
    if keys and (len(keys) > 1 or keys[0] not in kinds):
        raise InvalidDataError(
            f"keys (--key) must name one feature; {', '.join(keys)} was given, and {root} has {', '.join(known)}."
        )
    chosen = list(keys) or cameras or [name for name in (STATE,) if name in kinds]
    if len(chosen) != 1:
        raise InvalidDataError(
            f"One feature must be chosen; {root} has {', '.join(known) or 'none'}; name one with --key."
        )
    layout = _Layout(root, chosen[0], str(kinds[chosen[0]]), ACTION in kinds, fps, data_path, video_path)
    return [
        Recording(None, f"episode {row['episode_index']}", stamp(root / INFO), "LeRobot", partial(layout.read, row))
        for row in layout.rows()
    ]


@dataclass(frozen=True)
class _Layout:
    """Where a dataset has what, and which feature of it is observed."""

    root: Path
    key: str
    kind: str
    has_actions: bool
    fps: float
    data_path: str
    video_path: str

    def rows(self) -> list[dict[str, Any]]:
        """What `meta/episodes` says of every episode."""
        files = in_order((self.root / "meta/episodes").rglob("*.parquet"))
        if not files:
            raise InvalidDataError(
                f"A LeRobot dataset must list its episodes; {self.root / 'meta/episodes'} has no Parquet file; copy "
                "the dataset again."
            )
        needed = ["episode_index", "length", "data/chunk_index", "data/file_index"]
        if self.kind == "video":
            needed += [f"videos/{self.key}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]
        rows: list[dict[str, Any]] = []
        for file in files:
            table = read_table(file)
            missing = [name for name in needed if name not in table.column_names]
            if missing:
                raise InvalidDataError(
                    f"{file} must have a column {missing[0]}; it has none; convert the dataset to v3.0 again."
                )
            rows += table.select(needed).to_pylist()
        return sorted(rows, key=lambda row: row["episode_index"])

    def read(self, row: dict[str, Any]) -> Content:
        """One episode."""
        number, length = int(row["episode_index"]), int(row["length"])
        data = _data(self._file(self.data_path, row, "data"))
        actions = data.values(ACTION, number) if self.has_actions else None
        if self.kind == "video":
            path = self._file(self.video_path, row, f"videos/{self.key}")
            found = video(path, float(row[f"videos/{self.key}/from_timestamp"]))
            frames = _exactly(length, found.frames, f"{path}, episode {number},")  # type: ignore[arg-type]
            return Content(frames, actions, found.lossy, length / self.fps)
        if self.kind == "image":
            images = enumerate(data.images(self.key, number, self.root))
            return Content(((i / self.fps, partial(picture, image, data.path)) for i, image in images), actions)
        return Content(data.values(self.key, number), actions)

    def _file(self, pattern: str, row: dict[str, Any], prefix: str) -> Path:
        name = pattern.format(
            video_key=self.key, chunk_index=row[f"{prefix}/chunk_index"], file_index=row[f"{prefix}/file_index"]
        )
        return _inside(self.root, self.root / name)


class _Data:
    """One file of `data`: the rows of several episodes."""

    def __init__(self, path: Path) -> None:
        self.path, self.table = path, read_table(path)
        self.episode = column_array(self.table, "episode_index", path)
        self._columns: dict[str, NDArray[Any]] = {}

    def values(self, name: str, episode: int) -> NDArray[Any]:
        if name not in self._columns:
            self._columns[name] = column_array(self.table, name, self.path)
        found = self._columns[name][self.episode == episode]
        return found if found.ndim > 1 else found[:, None]

    def images(self, name: str, episode: int, root: Path) -> list[Any]:
        """Files or open bytes, as Pillow takes them: a row has one or the other."""
        found = self.table.column(name).take(np.flatnonzero(self.episode == episode)).to_pylist()
        return [
            io.BytesIO(image["bytes"]) if image.get("bytes") else _inside(root, self.path.parent / image["path"])
            for image in found
        ]


@lru_cache(maxsize=1)
def _data(path: Path) -> _Data:
    """The file read last, held while its episodes are taken from it."""
    return _Data(path)


def _inside(root: Path, path: Path) -> Path:
    """A path that a dataset names, which must lie in that dataset."""
    if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(root)):
        raise InvalidDataError(f"A LeRobot dataset must name files of its own; {root} names {path}; leave it out.")
    return path


def _exactly(n: int, frames: Iterable[Frame], name: str) -> Iterator[Frame]:
    """The first n frames, if there are as many."""
    found = 0
    for frame in islice(frames, n):
        found += 1
        yield frame
    if found != n:
        raise InvalidDataError(
            f"{name} must have {n} steps; {found} could be read; copy the file again, or leave the episode out."
        )
