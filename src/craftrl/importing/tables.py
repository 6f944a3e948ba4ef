"""CSV and Parquet files of feature vectors, one row per step; and LeRobot datasets, which lie in such files.

A column `episode` says which rows belong together, `agent` whose they are, `step` in which order they come. Columns
that begin with "action" are kept aside; rewards, ends and times are left out. All others are features.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require
from craftrl.importing.recordings import Content, Frame, Recording, in_order, name_in, picture, stamp, video

if TYPE_CHECKING:
    import pyarrow

TABLES = (".csv", ".tsv", ".parquet")
EPISODE = ("episode", "episode_index", "episode_id", "trajectory")
AGENT = ("agent", "agent_id")
STEP = ("step", "t", "frame_index", "timestamp", "time")
LEFT_OUT = ("index", "reward", "next.reward", "done", "next.done", "terminated", "truncated", "task_index")
LEROBOT = Path("meta/info.json")  # https://huggingface.co/docs/lerobot/lerobot-dataset-v3


def table_files(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode in the tables is a recording."""
    found = []
    for file in files:
        version = stamp(file)
        for i, (agent, episode) in enumerate(_episodes(file, version, keys)[2]):
            labels = ", ".join(filter(None, (agent, episode)))
            source = f"{name_in(root, file)}[{labels}]" if labels else name_in(root, file)
            found.append(Recording(agent, source, version, "table", partial(_rows, file, version, keys, i)))
    return found


def _rows(path: Path, version: str, keys: tuple[str, ...], i: int) -> Content:
    x, actions, labels, rows = _episodes(path, version, keys)
    return Content(x[rows[i]], None if actions is None else actions[rows[i]])


@lru_cache(maxsize=1)
def _episodes(
    path: Path, version: str, keys: tuple[str, ...]
) -> tuple[NDArray[Any], NDArray[Any] | None, list[tuple[str, str]], list[NDArray[np.int64]]]:
    """Features and actions of a file, held while its episodes are read; (agent, episode) and the rows of each."""
    table = _table(path)
    names = table.column_names
    missing = [key for key in keys if key not in names]
    if missing:
        raise InvalidDataError(f"keys (--key) must name columns of {path}; {missing[0]} is none of {', '.join(names)}.")
    if table.num_rows == 0:
        raise InvalidDataError(f"A table must have at least one row; {path} has none; leave it out.")
    lower = {name.lower(): name for name in names}
    agent, episode, step = (next((lower[n] for n in known if n in lower), None) for known in (AGENT, EPISODE, STEP))
    actions = [name for name in names if name.lower().startswith("action") and name not in keys]
    aside = {*EPISODE, *AGENT, *STEP, *LEFT_OUT, *(name.lower() for name in actions)}
    features = list(keys) or [name for name in names if name.lower() not in aside]
    if not features:
        raise InvalidDataError(
            f"A table must have a column of observations; {path} has {', '.join(names)}; name one with --key."
        )
    codes, texts = zip(*(_coded(table, name, path) for name in (agent, episode)))
    order = np.lexsort((*([] if step is None else [_numbers(table, [step], path)[:, 0]]), *reversed(codes)))
    pairs = np.stack(codes, axis=1)[order]
    first = np.flatnonzero(np.diff(pairs, axis=0, prepend=-1).any(axis=1))
    labels = [(texts[0][a], texts[1][e]) for a, e in pairs[first].tolist()]
    x = _numbers(table, features, path)
    return x, _numbers(table, actions, path) if actions else None, labels, np.split(order, first[1:])


def _table(path: Path) -> pyarrow.Table:
    arrow = require("pyarrow", "tables")
    try:
        if path.suffix.lower() == ".parquet":
            table = require("pyarrow.parquet", "tables").read_table(path)
        else:
            csv = require("pyarrow.csv", "tables")
            options = csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            table = csv.read_csv(path, parse_options=options)
        table.validate(full=True)
        twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"it has two columns called {twice!r}")
        return table
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InvalidDataError(
            f"{path} must be a table that can be read; it is damaged or no {path.suffix[1:].upper()} file "
            f"({str(error).splitlines()[0]}); write or copy it again."
        ) from error


def _coded(table: pyarrow.Table, name: str | None, path: Path) -> tuple[NDArray[np.int64], list[str]]:
    """A column of labels as numbers, in the order in which they first come, and the labels as texts."""
    if name is None:
        return np.zeros(table.num_rows, dtype=np.int64), [""]
    if table.column(name).null_count:
        raise InvalidDataError(f"`{name}` must be filled in every row; in {path} it is not; fill it, or drop the column.")
    found = table.column(name).combine_chunks().dictionary_encode()
    return np.asarray(found.indices, dtype=np.int64), [str(label) for label in found.dictionary.to_pylist()]


def _numbers(table: pyarrow.Table, names: list[str], path: Path) -> NDArray[Any]:
    """Columns of numbers side by side, (rows, features); a single column of lists keeps its shape, (rows, ...)."""
    found = []
    for name in names:
        column = table.column(name)
        array = column.to_numpy() if column.null_count == 0 else np.empty(0, dtype=object)
        if array.dtype == object and len(array):
            try:
                array = np.array(column.to_pylist())
            except ValueError:  # lists of unequal length
                array = np.empty(0, dtype=object)
        if len(array) != table.num_rows or array.dtype.kind not in "biuf":
            raise InvalidDataError(
                f"Columns of features must hold a number, or as many numbers, in every row; `{name}` of {path} does "
                "not; fill or drop it, or choose columns with --key."
            )
        found.append(array if array.ndim > 1 else array[:, None])
    return found[0] if len(found) == 1 else np.concatenate([x.reshape(len(x), -1) for x in found], axis=1)


# -- LeRobot, version 3 -----------------------------------------------------------------------------------------------


def lerobot_dataset(root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode is a recording; lerobot itself is not needed.

    `meta/info.json` has the features and the patterns of file names. `meta/episodes` has one row per episode: its
    length, which file of `data` holds its rows, and for each camera which file of `videos`, from which second on.
    """
    try:
        info = json.loads((root / LEROBOT).read_text())
        kinds = {name: feature.get("dtype") for name, feature in info["features"].items()}
        version, fps, pattern = str(info["codebase_version"]), float(info["fps"]), str(info["data_path"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDataError(
            f"{root / LEROBOT} must say what a LeRobot dataset holds; it cannot be read ({error!r}); copy it again."
        ) from error
    if not version.startswith("v3."):
        raise InvalidDataError(
            f"LeRobot datasets must have layout v3.0; {root} has {version}; convert it with: python -m "
            "lerobot.scripts.convert_dataset_v21_to_v30"
        )
    cameras = [name for name, kind in kinds.items() if kind in ("video", "image")]
    chosen = list(keys) or cameras or ["observation.state"]
    if len(chosen) > 1 or chosen[0] not in kinds:
        known = ", ".join([*cameras, *(n for n in kinds if n.startswith("observation") and n not in cameras)])
        raise InvalidDataError(f"One feature must be chosen; {root} has {known or 'none'}; name one with --key.")
    (key,) = chosen
    columns = ["episode_index", "length", "data/chunk_index", "data/file_index"]
    if kinds[key] == "video":
        columns += [f"videos/{key}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]

    def file(pattern: str, row: dict[str, Any], kind: str) -> Path:
        numbers = {name: row[f"{kind}/{name}"] for name in ("chunk_index", "file_index")}
        path = root / pattern.format(video_key=key, **numbers)
        if not Path(os.path.abspath(path)).is_relative_to(os.path.abspath(root)):
            raise InvalidDataError(f"A LeRobot dataset must name files of its own; {root} names {path}; leave it out.")
        return path

    def read(row: dict[str, Any]) -> Content:
        number, n, path = row["episode_index"], row["length"], file(pattern, row, "data")
        table = _data(path)
        own = table.filter(np.asarray(table.column("episode_index")) == number)
        actions = _numbers(own, ["action"], path) if "action" in kinds else None
        if kinds[key] == "video":
            path = file(str(info.get("video_path")), row, f"videos/{key}")
            found = video(path, row[f"videos/{key}/from_timestamp"])
            return Content(_exactly(n, found.frames, f"{path}, episode {number},"), actions, found.lossy, n / fps)
        if kinds[key] == "image":
            images = [io.BytesIO(image["bytes"] or b"") for image in own.column(key).to_pylist()]
            return Content(((i / fps, partial(picture, image, path)) for i, image in enumerate(images)), actions)
        return Content(_numbers(own, [key], path), actions)

    rows: list[dict[str, Any]] = []
    for part in in_order((root / "meta/episodes").rglob("*.parquet")):
        table = _table(part)
        missing = [name for name in columns if name not in table.column_names]
        if missing:
            raise InvalidDataError(f"{part} must have a column {missing[0]}; it has none; convert the dataset again.")
        rows += table.select(columns).to_pylist()
    if not rows:
        raise InvalidDataError(
            f"A LeRobot dataset must list its episodes; {root / 'meta/episodes'} has no Parquet file; copy the dataset "
            "again."
        )
    changed = stamp(root / LEROBOT)
    rows.sort(key=lambda row: row["episode_index"])
    return [Recording("", f"episode {row['episode_index']}", changed, "LeRobot", partial(read, row)) for row in rows]


@lru_cache(maxsize=1)
def _data(path: Path) -> pyarrow.Table:
    """The file read last, held while its episodes are taken from it."""
    return _table(path)


def _exactly(n: int, frames: Any, name: str) -> Iterator[Frame]:
    """The first n frames, if there are as many."""
    found = 0
    for frame in islice(frames, n):
        found += 1
        yield frame
    if found != n:
        raise InvalidDataError(
            f"{name} must have {n} steps; {found} could be read; copy the file again, or leave the episode out."
        )
