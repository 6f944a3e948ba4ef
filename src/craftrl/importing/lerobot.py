"""The on-disk layout of LeRobot datasets, version 3, read with pyarrow and PyAV; lerobot itself is not needed.

`meta/info.json` has the features, the rate of frames and the patterns of file names. `meta/episodes` has one row per
episode: its length, which file of `data` holds its rows, and for each camera which file of `videos` holds its frames
and from which second on. Many episodes share a file.

https://huggingface.co/docs/lerobot/lerobot-dataset-v3
"""

from __future__ import annotations

import io
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError
from craftrl.importing.options import Options
from craftrl.importing.pictures import decoded_image
from craftrl.importing.source import Agent, Episode, Recording, exactly, in_order, stamp
from craftrl.importing.tables import column_array, read_table
from craftrl.importing.videos import VideoReader

__all__ = ["INFO", "lerobot_dataset"]

INFO = Path("meta/info.json")
STATE, ACTION = "observation.state", "action"


def lerobot_dataset(path: Path, options: Options) -> list[Agent]:
    """One agent, with the episodes of the dataset."""
    layout = _Layout(path, options.keys)
    return [Agent(path.name, "LeRobot", [_episode(layout, row) for row in layout.episodes])]


class _Layout:
    """A dataset's metadata, and the feature that is observed."""

    def __init__(self, root: Path, keys: tuple[str, ...]) -> None:
        self.root, self.stamp = root, stamp(root / INFO)
        try:
            info = json.loads((root / INFO).read_text())
            self.version, self.features = str(info["codebase_version"]), dict(info["features"])
            self.fps, self.data_path = float(info["fps"]), str(info["data_path"])
            self.video_path = info.get("video_path")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidDataError(
                f"{root / INFO} must say what a LeRobot dataset holds; it cannot be read ({error!r}); copy it again."
            ) from error
        if not self.version.startswith("v3."):
            raise InvalidDataError(
                f"LeRobot datasets must have layout v3.0; {root} has {self.version}; convert it with: python -m "
                "lerobot.scripts.convert_dataset_v21_to_v30"
            )
        self.key = self._observed(keys)
        self.kind = str(self.features[self.key].get("dtype"))
        self.videos: dict[Path, VideoReader] = {}
        self.episodes = self._episodes()

    def _observed(self, keys: tuple[str, ...]) -> str:
        """The one feature to import: the one named, else the only camera, else the state."""
        cameras = [name for name, feature in self.features.items() if feature.get("dtype") in ("video", "image")]
        known = [*cameras, *(name for name in self.features if name.startswith("observation") and name not in cameras)]
        if keys:
            if len(keys) > 1 or keys[0] not in self.features:
                raise InvalidDataError(
                    f"keys (--key) must name one feature; {', '.join(keys)} was given, and {self.root} has "
                    f"{', '.join(known)}."
                )
            return keys[0]
        if len(cameras) == 1:
            return cameras[0]
        if not cameras and STATE in self.features:
            return STATE
        raise InvalidDataError(
            f"One feature must be chosen; {self.root} has {', '.join(known) or 'none'}; name one with --key."
        )

    def _episodes(self) -> list[dict[str, Any]]:
        files = in_order((self.root / "meta/episodes").rglob("*.parquet"))
        if not files:
            raise InvalidDataError(
                f"A LeRobot dataset must list its episodes; {self.root / 'meta/episodes'} has no Parquet file; copy "
                "the dataset again."
            )
        video = [f"videos/{self.key}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]
        needed = ["episode_index", "length", "data/chunk_index", "data/file_index"]
        needed += video if self.kind == "video" else []
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

    def file(self, pattern: str, row: dict[str, Any], prefix: str) -> Path:
        """Where an episode lies, by the pattern of the dataset."""
        chunk, number = row[f"{prefix}/chunk_index"], row[f"{prefix}/file_index"]
        return self.root / pattern.format(video_key=self.key, chunk_index=chunk, file_index=number)

    def video(self, path: Path) -> VideoReader:
        """The reader of a file, kept from one episode to the next, which usually lies in the same."""
        if path not in self.videos:
            self.videos.clear()
            self.videos[path] = VideoReader(path)
        return self.videos[path]


def _episode(layout: _Layout, row: dict[str, Any]) -> Episode:
    number, length = int(row["episode_index"]), int(row["length"])

    def read(steps: slice) -> Recording:
        table = _Rows.of(layout.file(layout.data_path, row, "data"))
        actions = table.values(ACTION, number)[steps] if ACTION in layout.features else None
        if layout.kind == "video":
            start, stop, step = steps.indices(length)
            first = round(row[f"videos/{layout.key}/from_timestamp"] * layout.fps)
            reader = layout.video(layout.file(str(layout.video_path), row, f"videos/{layout.key}"))
            recording = reader.read(slice(first + start, first + stop, step))
            n = len(range(start, stop, step))
            return Recording(
                exactly(n, recording.observations, f"{reader.path}, episode {number},"), actions, recording.lossy
            )
        if layout.kind == "image":
            return Recording(map(decoded_image, table.images(layout.key, number)[steps]), actions)
        return Recording(table.values(layout.key, number)[steps], actions)

    return Episode(f"episode {number}", layout.stamp, read, lambda: length, lambda: np.arange(length) / layout.fps)


class _Rows:
    """One file of `data`: the rows of several episodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = read_table(path)
        self.episode = column_array(self.table, "episode_index", path)
        self._columns: dict[str, NDArray[Any]] = {}

    @staticmethod
    @lru_cache(maxsize=1)
    def of(path: Path) -> _Rows:
        """The file read last, held while its episodes are taken from it."""
        return _Rows(path)

    def values(self, name: str, episode: int) -> NDArray[Any]:
        if name not in self._columns:
            self._columns[name] = column_array(self.table, name, self.path)
        found = self._columns[name][self.episode == episode]
        return found if found.ndim > 1 else found[:, None]

    def images(self, name: str, episode: int) -> list[Any]:
        """Files or open bytes, as Pillow takes them: a row has one or the other."""
        rows = np.flatnonzero(self.episode == episode)
        found = self.table.column(name).take(rows).to_pylist()
        return [
            io.BytesIO(image["bytes"]) if image.get("bytes") else self.path.parent / image["path"] for image in found
        ]
