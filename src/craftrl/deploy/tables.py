"""Learned states as a table, one line per trajectory and step; latent actions, one line per transition."""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from craftrl.arguments import quoted
from craftrl.arrays import Ints
from craftrl.data.files import check_new, written_whole
from craftrl.data.labels import as_labels, plain_array
from craftrl.errors import InvalidDataError, require
from craftrl.planning.graph import StateGraph
from craftrl.planning.latent import LatentActions


def write_states(
    path: str | os.PathLike[str],
    states: ArrayLike,
    agent: ArrayLike,
    *,
    file: Sequence[str] | None = None,
    frame: ArrayLike | None = None,
    overwrite: bool = False,
) -> None:
    """States (n, H), -1 where a trajectory is over, and agents (n,), numbers or names, to .parquet, .csv or .npz.

    The columns are trajectory, agent, h (from 1) and state; there is no line where a trajectory is over. With `file`,
    the file that each trajectory comes from, and `frame` (n, H), the frame of each observation there, these are columns
    too. A table that is there already is replaced with `overwrite` alone.
    """
    states, whose = as_labels("states", states), plain_array(agent)
    if states.ndim != 2 or whose is None or whose.shape != states.shape[:1]:
        raise InvalidDataError(
            f"States must have shape (n, H), with one agent per trajectory; {states.shape} and "
            f"{quoted(agent) if whose is None else whose.shape} were given; write states as transform gives them."
        )
    row, step = np.nonzero(states >= 0)
    columns = {"trajectory": row, "agent": whose[row]}
    if file is not None and frame is not None:
        columns |= {"file": np.asarray(file)[row], "frame": np.asarray(frame)[row, step]}
    write_table(path, {**columns, "h": step + 1, "state": states[row, step]}, overwrite=overwrite)


def write_table(
    path: str | os.PathLike[str], columns: Mapping[str, NDArray[np.generic]], *, overwrite: bool = False
) -> None:
    """Columns of one length to a file named .parquet, .csv or .npz, whole or not at all."""
    check_table(path, overwrite)
    with written_whole(path, "table") as temporary:
        if Path(path).suffix.lower() == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(dict(columns)), temporary)
        elif Path(path).suffix.lower() == ".npz":
            with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as opened:  # savez takes no column called file
                for name, column in columns.items():
                    with opened.open(f"{name}.npy", "w", force_zip64=True) as entry:
                        np.lib.format.write_array(entry, np.asarray(column), allow_pickle=False)
        else:
            with temporary.open("w", newline="") as lines:
                writer = csv.writer(lines, lineterminator="\n")
                writer.writerow(columns)
                plain = [column.tolist() for column in columns.values()]
                writer.writerows([f"{v:.4g}" if isinstance(v, float) else v for v in row] for row in zip(*plain))


def check_table(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Whether a table may be written there; asked before the work is done."""
    check_new(path, "table", overwrite, (".parquet", ".csv", ".npz"))
    if Path(path).suffix.lower() == ".parquet":
        require("pyarrow", "tables")


def latent_action_columns(
    states: Ints, agent: NDArray[Any], moves: StateGraph, latent: LatentActions
) -> dict[str, NDArray[Any]]:
    """The columns of a table of transitions, from states (n, H), -1 where a trajectory is over, and agents (n,).

    trajectory, agent, h   which transition: from step h, counted from 1, to the next
    state, successor       the learned states before and after it
    action                 the latent action, -1 where the move is so rare that it was taken for a misread frame
    certainty              how likely that action is, given the move: less than 1 where several make it
    group                  the group of its state: numbers of actions mean the same within a group alone
    """
    nodes = moves.nodes(states)
    row, step = np.nonzero((nodes[:, :-1] >= 0) & (nodes[:, 1:] >= 0))
    s, t = nodes[row, step], nodes[row, step + 1]
    return {
        "trajectory": row,
        "agent": agent[row],
        "h": step + 1,
        "state": states[row, step],
        "successor": states[row, step + 1],
        "action": latent.of_moves(s, t),
        "certainty": latent.certainty(s, t),
        "group": latent.group[s],
    }
