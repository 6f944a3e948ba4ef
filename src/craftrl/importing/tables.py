"""CSV and Parquet files of feature vectors: one row per step, one column per feature.

A column `episode` says which rows belong together, `agent` whose they are, `step` in which order they come. Columns
that begin with "action" are kept aside; rewards, ends and times are left out. All others are features.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require
from craftrl.importing.recordings import Content, Recording, name_in, stamp

if TYPE_CHECKING:
    import pyarrow

__all__ = ["TABLES", "column_array", "read_table", "table_files"]

TABLES = (".csv", ".tsv", ".parquet")
EPISODE = ("episode", "episode_index", "episode_id", "trajectory")
AGENT = ("agent", "agent_id")
STEP = ("step", "t", "frame_index", "timestamp", "time")
LEFT_OUT = ("index", "reward", "next.reward", "done", "next.done", "terminated", "truncated", "task_index")


def table_files(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each episode in the tables is a recording."""
    found = []
    for file in files:
        table = _sorted_table(file, stamp(file), keys)
        name = name_in(root, file)
        for i, (agent, episode) in enumerate(table.labels):
            labels = ", ".join(label for label in (agent, episode) if label is not None)
            source = f"{name}[{labels}]" if labels else name
            found.append(Recording(agent, source, stamp(file), "table", partial(_episode, file, stamp(file), keys, i)))
    return found


def read_table(path: Path) -> pyarrow.Table:
    """A CSV or Parquet file as an Arrow table."""
    arrow = require("pyarrow", "tables")
    try:
        if path.suffix.lower() == ".parquet":
            table = require("pyarrow.parquet", "tables").read_table(path)
        else:
            csv = require("pyarrow.csv", "tables")
            options = csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            table = csv.read_csv(path, parse_options=options)
        table.validate(full=True)
        names = table.column_names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"it has two columns called {twice!r}")
        return table.combine_chunks()
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidDataError(
            f"{path} must be a table that can be read; it is damaged or no {path.suffix[1:].upper()} file ({reason}); "
            "write or copy it again."
        ) from error


def column_array(table: pyarrow.Table, name: str, path: Path) -> NDArray[Any]:
    """A column of numbers as (rows,), or one of equally long lists as (rows, ...)."""
    column = table.column(name)
    array = column.to_numpy() if column.null_count == 0 else np.empty(0, dtype=object)
    if array.dtype == object and len(array) == table.num_rows:
        try:
            array = np.array(column.to_pylist())
        except ValueError:  # lists of unequal length
            array = np.empty(0, dtype=object)
    if len(array) != table.num_rows or array.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"Columns of features must hold a number, or as many numbers, in every row; `{name}` of {path} does not; "
            "fill or drop it, or choose columns with --key."
        )
    return array


class _SortedTable:
    """One file, its rows put in the order of agents, episodes and steps: (agent, episode) and rows of each episode."""

    def __init__(self, path: Path, keys: tuple[str, ...]) -> None:
        table = read_table(path)
        names = table.column_names
        missing = [key for key in keys if key not in names]
        if missing:
            raise InvalidDataError(
                f"keys (--key) must name columns of {path}; {missing[0]} is none of {', '.join(names)}."
            )
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
        self.x = _side_by_side(table, features, path)
        self.actions = _side_by_side(table, actions, path) if actions else None
        codes, texts = zip(*(self._coded(table, name, path) for name in (agent, episode)))
        steps = () if step is None else (column_array(table, step, path),)
        self.order = np.lexsort((*steps, *reversed(codes)))
        pairs = np.stack(codes, axis=1)[self.order]
        self.firsts = np.flatnonzero(np.r_[True, (np.diff(pairs, axis=0) != 0).any(axis=1)])
        self.labels = [(texts[0][a], texts[1][e]) for a, e in pairs[self.firsts].tolist()]

    @staticmethod
    def _coded(table: pyarrow.Table, name: str | None, path: Path) -> tuple[NDArray[np.int64], list[str | None]]:
        """A column of labels as numbers, in the order in which they first come, and the labels as texts."""
        if name is None:
            return np.zeros(table.num_rows, dtype=np.int64), [None]
        found = table.column(name).combine_chunks().dictionary_encode()
        if found.null_count:
            raise InvalidDataError(f"`{name}` of {path} must be filled in every row; it is not; fill it or drop it.")
        return found.indices.to_numpy(zero_copy_only=False).astype(np.int64), [str(v) for v in found.dictionary.to_pylist()]


def _side_by_side(table: pyarrow.Table, names: list[str], path: Path) -> NDArray[Any]:
    """These columns as (rows, features); a single column of lists keeps its shape."""
    found = [column_array(table, name, path) for name in names]
    if len(found) == 1 and found[0].ndim > 1:
        return found[0]
    return np.concatenate([column.reshape(len(column), -1) for column in found], axis=1)


@lru_cache(maxsize=1)
def _sorted_table(path: Path, version: str, keys: tuple[str, ...]) -> _SortedTable:
    """The file read last, held while its episodes are taken from it."""
    return _SortedTable(path, keys)


def _episode(path: Path, version: str, keys: tuple[str, ...], i: int) -> Content:
    table = _sorted_table(path, version, keys)
    rows = table.order[table.firsts[i] : table.firsts[i + 1] if i + 1 < len(table.firsts) else None]
    return Content(table.x[rows], None if table.actions is None else table.actions[rows])
