"""CSV and Parquet files of feature vectors, one row per step; and LeRobot datasets, which lie in such files.

A column `episode` says which rows belong together, `agent` whose they are, `step` in which order they come. Columns
that begin with "action" are kept aside; rewards, ends and times are left out. All others are features.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require
from craftrl.importing.recordings import Content, Frame, Recording, held, in_order, name_in, picture, stamp, video

if TYPE_CHECKING:
    from pyarrow import Table

TABLES = (".csv", ".tsv", ".parquet")
EPISODE = ("episode", "episode_index", "episode_id", "trajectory")
AGENT = ("agent", "agent_id")
STEP = ("step", "t", "frame_index", "timestamp", "time")
LEFT_OUT = ("index", "reward", "next.reward", "done", "next.done", "terminated", "truncated", "task_index")
LEROBOT = Path("meta/info.json")  # https://huggingface.co/docs/lerobot/lerobot-dataset-v3


def table_files(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode in the tables is a recording."""

    def read(file: Path, version: str, i: int) -> Content:
        own = _episodes(file, version, keys)
        return Content(own.x[own.rows[i]], None if own.actions is None else own.actions[own.rows[i]])

    found = []
    for file in files:
        version = stamp(file)
        own = _episodes(file, version, keys)
        for i, labels in enumerate(own.labels):
            source = f"{name_in(root, file)}[{', '.join(filter(None, labels))}]".removesuffix("[]")
            content = partial(read, file, version, i)
            found.append(Recording(labels[0], source, version, "table", content, columns=own.columns))
    return found


class _Episodes(NamedTuple):
    """Features of a file, by name, its actions, and (agent, episode) and the rows of each of its episodes."""

    columns: tuple[str, ...]
    x: NDArray[Any]
    actions: NDArray[Any] | None
    labels: list[tuple[str, str]]
    rows: list[NDArray[np.int64]]


@held
def _episodes(path: Path, version: str, keys: tuple[str, ...]) -> _Episodes:
    table = _table(path)
    names, lower = table.column_names, {name.lower(): name for name in table.column_names}
    agent, episode, step = (next((lower[n] for n in known if n in lower), None) for known in (AGENT, EPISODE, STEP))
    actions = [name for name in names if name.lower().startswith("action") and name not in keys]
    aside = {*EPISODE, *AGENT, *STEP, *LEFT_OUT, *(name.lower() for name in actions)}
    features = list(keys) or [name for name in names if name.lower() not in aside]
    if not features or not set(features) <= set(names):
        wanted = next((key for key in keys if key not in names), "a feature")
        raise InvalidDataError(
            f"A table must have the columns that are observed; {path} has {', '.join(names)}, not {wanted}."
        )
    if table.num_rows == 0:
        raise InvalidDataError(f"A table must have at least one row; {path} has none; leave it out.")
    codes, texts = zip(*(_coded(table, name, path) for name in (agent, episode)))
    order = np.lexsort((*([] if step is None else [_numbers(table, [step], path, "biufM")[:, 0]]), *reversed(codes)))
    pairs = np.stack(codes, axis=1)[order]
    first = np.flatnonzero(np.diff(pairs, axis=0, prepend=-1).any(axis=1))
    labels = [(texts[0][a], texts[1][e]) for a, e in pairs[first].tolist()]
    beside = _numbers(table, actions, path) if actions else None
    return _Episodes(tuple(features), _numbers(table, features, path), beside, labels, np.split(order, first[1:]))


def _table(path: Path) -> Table:
    arrow, suffix = require("pyarrow", "tables"), path.suffix.lower()
    try:
        if suffix == ".parquet":
            table = require("pyarrow.parquet", "tables").read_table(path)
        else:
            csv = require("pyarrow.csv", "tables")
            table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ","))
        table.validate(full=True)
        twice = [name for name in table.column_names if table.column_names.count(name) > 1]
        if twice:
            raise ValueError(f"it has two columns called {twice[0]!r}")
        return table
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidDataError(
            f"{path} must be a table that can be read; it cannot ({reason}); copy it again."
        ) from error


def _coded(table: Table, name: str | None, path: Path) -> tuple[NDArray[np.int64], list[str]]:
    """A column of labels as numbers, in the order in which they first come, and the labels as texts."""
    if name is None:
        return np.zeros(table.num_rows, dtype=np.int64), [""]
    if table.column(name).null_count:
        raise InvalidDataError(
            f"`{name}` must be filled in every row; in {path} it is not; fill it, or drop the column."
        )
    found = table.column(name).combine_chunks().dictionary_encode()
    return np.asarray(found.indices, dtype=np.int64), [str(label) for label in found.dictionary.to_pylist()]


def _numbers(table: Table, names: list[str], path: Path, kinds: str = "biuf") -> NDArray[Any]:
    """Columns of numbers side by side, (rows, features); a single column of lists keeps its shape, (rows, ...)."""
    found = []
    for name in names:
        column = table.column(name)
        try:
            array = np.array(column.to_pylist()) if "list" in str(column.type) else column.to_numpy()
        except ValueError:  # lists of unequal length
            array = np.empty(0, dtype=object)
        if column.null_count or array.dtype.kind not in kinds:
            raise InvalidDataError(
                f"Features must be numbers, as many in every row; `{name}` of {path} is not so; fill or drop it, or "
                "choose columns with --key."
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
        layout, fps = str(info["codebase_version"]), float(info["fps"])
        patterns = {kind: str(info.get(f"{kind}_path")) for kind in ("data", "video")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidDataError(
            f"{root / LEROBOT} must be LeRobot's; it cannot be read ({error!r}); copy it again."
        ) from error
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
        actions = _numbers(own, ["action"], path) if "action" in kinds else None
        if kinds[key] == "video":
            path = file("video", row, f"videos/{key}")
            found = video(path, float(row[f"videos/{key}/from_timestamp"]))
            return Content(_exactly(n, found.frames, f"{path}, episode {number},"), actions, found.lossy, n / fps)
        if kinds[key] == "image":
            images = [io.BytesIO(image["bytes"]) for image in own.column(key).to_pylist()]
            return Content(((i / fps, partial(picture, image, path)) for i, image in enumerate(images)), actions)
        return Content(_numbers(own, [key], path), actions)

    columns = ["episode_index", "length", "data/chunk_index", "data/file_index"]
    if kinds[key] == "video":
        columns += [f"videos/{key}/{name}" for name in ("chunk_index", "file_index", "from_timestamp")]
    rows: list[dict[str, Any]] = []
    for part in in_order((root / "meta/episodes").rglob("*.parquet")):
        table = _table(part)
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


@held
def _held_table(path: Path, version: str) -> Table:
    """A file of `data`: many episodes share one."""
    return _table(path)


def _exactly(n: int, frames: Any, name: str) -> Iterator[Frame]:
    """The first n frames, if there are as many."""
    found = 0
    for frame in islice(frames, n):
        found += 1
        yield frame
    if found != n:
        raise InvalidDataError(f"{name} must have {n} steps; {found} could be read; copy the file again.")
