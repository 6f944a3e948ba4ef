"""Learned states as a table: one line per trajectory and step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_target
from craftrl.data.files import check_new, written_whole
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError, require

__all__ = ["FORMATS", "check_table", "write_states"]

Ints = NDArray[np.integer]
COLUMNS = ("trajectory", "agent", "h", "state")


def write_states(path: str | os.PathLike[str], states: Ints, agent: Ints, *, overwrite: bool = False) -> None:
    """States (n, H), -1 where a trajectory is over, and agents (n,), to a file whose name says the format.

    .parquet and .csv have the columns trajectory, agent, h (from 1) and state, and no line where a trajectory is over;
    .npz has the two arrays as they are. A file that is there already is replaced with `overwrite` alone.
    """
    states, agent = as_labels("states", states), as_labels("agent", agent)
    if states.ndim != 2 or agent.shape != states.shape[:1]:
        raise InvalidDataError(
            f"States must have shape (n, H), with one agent per trajectory; {states.shape} and {agent.shape} were "
            "given; write states as transform gives them."
        )
    write = check_table(path)
    check_new(path, "table", overwrite)
    with written_whole(path, "table of states") as temporary:
        write(temporary, states, agent)


def check_table(path: str | os.PathLike[str]) -> Callable[[Path, Ints, Ints], None]:
    """What writes files of this name; asked before the work is done."""
    suffix = check_target("The table", path).suffix.lower()
    if suffix not in FORMATS:
        raise InvalidParameterError(
            f"A table must be named {', '.join(FORMATS)}; {os.fspath(path)} was given; choose another name."
        )
    if suffix == ".parquet":
        require("pyarrow", "tables")
    return FORMATS[suffix]


def _long(states: Ints, agent: Ints) -> dict[str, Any]:
    """The columns, one line for each observation that there is."""
    trajectory, h = np.nonzero(states >= 0)
    return dict(zip(COLUMNS, (trajectory, agent[trajectory], h + 1, states[trajectory, h])))


def _write_parquet(path: Path, states: Ints, agent: Ints) -> None:
    require("pyarrow", "tables")
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(_long(states, agent)), path)


def _write_csv(path: Path, states: Ints, agent: Ints) -> None:
    columns = _long(states, agent)
    with path.open("w") as file:
        file.write(",".join(columns) + "\n")
        np.savetxt(file, np.column_stack(list(columns.values())), fmt="%d", delimiter=",")


def _write_npz(path: Path, states: Ints, agent: Ints) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, states=states, agent=agent)


FORMATS: dict[str, Callable[[Path, Ints, Ints], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".npz": _write_npz,
}
