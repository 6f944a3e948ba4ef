"""CSV and Parquet files of feature vectors: one row per step, one column per feature.

A column `episode` says which rows belong together, `agent` whose they are, `step` in which order they come. Columns
that begin with "action" are kept aside; rewards, ends and times are left out. All others are features.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, Episode, Recording, name_in, stamp

__all__ = ["SUFFIXES", "column_array", "read_table", "table_files"]

SUFFIXES = (".csv", ".tsv", ".parquet")
EPISODE = ("episode", "episode_index", "episode_id", "trajectory")
AGENT = ("agent", "agent_id")
STEP = ("step", "t", "frame_index", "timestamp", "time")
LEFT_OUT = ("index", "reward", "next.reward", "done", "next.done", "terminated", "truncated", "task_index")


def table_files(files: Iterable[Path], root: Path, options: Options) -> list[Agent]:
    """Agents in the order in which they first come; without a column of agents all rows are one agent's."""
    episodes: dict[str | None, list[Episode]] = {}
    for file in files:
        table, name = _Table(file, stamp(file), options.keys), name_in(root, file)
        for agent, episode, rows in table.groups():
            mine = episodes.setdefault(agent, [])
            labels = ", ".join(label for label in (agent, episode) if label is not None)
            mine.append(_episode(table, f"{name}[{labels}]" if labels else name, rows))
    return [Agent(agent or root.stem, "table", found, agent is not None) for agent, found in episodes.items()]


def read_table(path: Path, columns: list[str] | None = None) -> Any:
    """A CSV or Parquet file as an Arrow table."""
    arrow = require("pyarrow", "tables")
    try:
        if path.suffix == ".parquet":
            table = require("pyarrow.parquet", "tables").read_table(path, columns=columns)
        else:
            csv = require("pyarrow.csv", "tables")
            options = csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ",")
            table = csv.read_csv(path, parse_options=options)
        table.validate(full=True)
        names = table.column_names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"it has two columns called {twice!r}")
        return table
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidDataError(
            f"{path} must be a table that can be read; it is damaged or no {path.suffix[1:].upper()} file ({reason}); "
            "write or copy it again."
        ) from error


def column_array(table: Any, name: str, path: Path) -> NDArray[Any]:
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


class _Table:
    """One file: its columns sorted into features, actions, and what tells rows apart."""

    def __init__(self, path: Path, version: str, keys: tuple[str, ...]) -> None:
        self.path, self.stamp = path, version
        names = _read(path, version).table.column_names
        missing = [key for key in keys if key not in names]
        if missing:
            raise InvalidDataError(f"--key must name columns of {path}; {missing[0]} is none of {', '.join(names)}.")
        lower = {name.lower(): name for name in names}
        self.episode, self.agent, self.step = (
            next((lower[name] for name in known if name in lower), None) for known in (EPISODE, AGENT, STEP)
        )
        self.actions = [name for name in names if name.lower().startswith("action") and name not in keys]
        aside = {*EPISODE, *AGENT, *STEP, *LEFT_OUT, *(name.lower() for name in self.actions)}
        self.features = list(keys) or [name for name in names if name.lower() not in aside]
        if not self.features:
            raise InvalidDataError(
                f"A table must have a column of observations; {path} has {', '.join(names)}; name one with --key."
            )

    def groups(self) -> list[tuple[str | None, str | None, NDArray[np.int64]]]:
        """(agent, episode, rows) of every episode, in the order of the file."""
        columns = _read(self.path, self.stamp)
        table = columns.table
        if table.num_rows == 0:
            raise InvalidDataError(f"A table must have at least one row; {self.path} has none; leave it out.")
        labels = [
            [None] * table.num_rows if name is None else list(map(str, table.column(name).to_pylist()))
            for name in (self.agent, self.episode)
        ]
        rows: dict[tuple[Any, Any], list[int]] = {}
        for i, label in enumerate(zip(*labels)):
            rows.setdefault(label, []).append(i)
        order = None if self.step is None else columns[self.step]
        return [(*label, self._ordered(np.array(found), order)) for label, found in rows.items()]

    def values(self, names: list[str], rows: NDArray[np.int64]) -> NDArray[Any]:
        """These columns side by side, (rows, features); a single column of lists keeps its shape."""
        held = _read(self.path, self.stamp)
        found = [held[name][rows] for name in names]
        if len(found) == 1 and found[0].ndim > 1:
            return found[0]
        return np.concatenate([column.reshape(len(rows), -1) for column in found], axis=1)

    @staticmethod
    def _ordered(rows: NDArray[np.int64], order: NDArray[Any] | None) -> NDArray[np.int64]:
        return rows if order is None else rows[np.argsort(order[rows], kind="stable")]


class _Columns:
    """A file that was read, and those of its columns that were asked for."""

    def __init__(self, path: Path) -> None:
        self.path, self.table = path, read_table(path)
        self._arrays: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            self._arrays[name] = column_array(self.table, name, self.path)
        return self._arrays[name]


@lru_cache(maxsize=1)
def _read(path: Path, version: str) -> _Columns:
    """The file read last, held while its episodes are taken from it."""
    return _Columns(path)


def _episode(table: _Table, name: str, rows: NDArray[np.int64]) -> Episode:
    def read(steps: slice) -> Recording:
        mine = rows[steps]
        return Recording(
            table.values(table.features, mine), table.values(table.actions, mine) if table.actions else None
        )

    return Episode(name, table.stamp, read, lambda: len(rows))
