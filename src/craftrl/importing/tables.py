"""CSV and Parquet files of feature vectors, one row per step.

A column `episode` says which rows belong together, `agent` whose they are, `step` in which order they come. Columns
that begin with "action" are kept aside; rewards, ends and times are left out. All others are features.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.data.files import readable
from craftrl.errors import InvalidDataError, require
from craftrl.importing.recordings import Content, Recording, name_in, stamp

if TYPE_CHECKING:
    from pyarrow import Table

TABLES = (".csv", ".tsv", ".parquet")
EPISODE = ("episode", "episode_index", "episode_id", "trajectory")
AGENT = ("agent", "agent_id")
STEP = ("step", "t", "frame_index", "timestamp", "time")
LEFT_OUT = ("index", "reward", "next.reward", "done", "next.done", "terminated", "truncated", "task_index")


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


@lru_cache(maxsize=1)  # while the episodes in a file are read, one after the other
def _episodes(path: Path, version: str, keys: tuple[str, ...]) -> _Episodes:
    table = read_table(path)
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
    order = np.lexsort((*([] if step is None else [numbers(table, [step], path, "biufM")[:, 0]]), *reversed(codes)))
    pairs = np.stack(codes, axis=1)[order]
    first = np.flatnonzero(np.diff(pairs, axis=0, prepend=-1).any(axis=1))
    labels = [(texts[0][a], texts[1][e]) for a, e in pairs[first].tolist()]
    beside = numbers(table, actions, path) if actions else None
    return _Episodes(tuple(features), numbers(table, features, path), beside, labels, np.split(order, first[1:]))


def read_table(path: Path) -> Table:
    suffix = path.suffix.lower()
    parquet, csv = require("pyarrow.parquet", "tables"), require("pyarrow.csv", "tables")
    with readable(path, "a table"):
        if suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ","))
        table.validate(full=True)
        twice = [name for name in table.column_names if table.column_names.count(name) > 1]
        if twice:
            raise ValueError(f"it has two columns called {twice[0]!r}")
        return table


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


def numbers(table: Table, names: list[str], path: Path, kinds: str = "biuf") -> NDArray[Any]:
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
