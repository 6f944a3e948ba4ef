"""Datasets that craftrl wrote, to be put together with others: all of their agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.hdf5 import read_notes
from craftrl.importing.actions import read_actions
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, Episode, Recording, stamp

__all__ = ["store"]

ROWS = 256  # trajectories read at a time: one by one, each would cost a chunk of every step


def store(path: Path, options: Options) -> list[Agent]:
    """The agents of a dataset, with the names that it was imported under."""
    tau, notes, actions = TrajectoryDataset.open(path), read_notes(path), read_actions(path)
    rows, version = _Rows(tau), stamp(path if path.is_file() else path / "manifest.json")
    names = notes.get("agents") or [f"{path.stem}-{k}" for k in range(tau.K)]
    lossy = notes.get("lossy") or [""] * tau.K

    def episode(k: int, i: int, row: int) -> Episode:
        def read(steps: slice) -> Recording:
            aside = actions[k][i] if actions else np.empty(0)
            return Recording(rows[row][steps], aside[steps] if len(aside) else None, lossy[k])

        return Episode(f"{path.name}[{row}]", version, read, lambda: int(tau.lengths[row]))

    mine = [tau.agent_slice(k) for k in range(tau.K)]
    return [
        Agent(
            names[k],
            "craftrl",
            [episode(k, i, row) for i, row in enumerate(range(mine[k].start, mine[k].stop))],
            named_inside="agents" in notes,
        )
        for k in range(tau.K)
    ]


class _Rows:
    """Trajectories of a dataset by number; neighbours are read together and held."""

    def __init__(self, tau: TrajectoryDataset) -> None:
        self.tau = tau
        self._start, self._block = 0, np.empty((0, 0))

    def __getitem__(self, row: int) -> NDArray[Any]:
        if not self._start <= row < self._start + len(self._block):
            self._start = row // ROWS * ROWS
            stop = min(self._start + ROWS, self.tau.n)
            self._block = np.stack([self.tau.steps.read(h, self._start, stop) for h in range(self.tau.H)], axis=1)
        return self._block[row - self._start, : self.tau.lengths[row]]
