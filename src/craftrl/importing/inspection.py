"""What a store holds, and what may be wrong with it."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from craftrl.arguments import check_flag
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import check_new, check_suffix
from craftrl.data.hdf5 import read_notes
from craftrl.data.places import Place, place
from craftrl.importing.actions import actions_path
from craftrl.importing.checks import find_warnings, take_sample

__all__ = ["AgentSummary", "Inspection", "inspect"]


@dataclass(frozen=True)
class AgentSummary:
    """One agent's part of a store; `format` is what it was imported from, empty where that is not known."""

    name: str
    episodes: int
    shortest: int
    median: float
    longest: int
    format: str


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found; as text, it is what `craftrl inspect` prints."""

    path: Place
    agents: tuple[AgentSummary, ...]
    horizon: int
    obs_shape: tuple[int, ...]
    dtype: str
    actions: Place | None
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        kind = {1: "feature vectors", 3: "images"}.get(len(self.obs_shape), "arrays")
        lines = [
            f"{self.path}: {len(self.agents)} agents, {sum(agent.episodes for agent in self.agents)} episodes of up to "
            f"{self.horizon} steps; {kind} of shape {self.obs_shape}, {self.dtype}",
            *self._table(),
            f"actions, which no learner reads: {self.actions or 'none'}",
            *(f"warning: {text}" for text in self.warnings),
        ]
        return "\n".join(lines if self.warnings else [*lines, "no warnings"])

    def _table(self) -> list[str]:
        width = max(len("agent"), *(len(agent.name) for agent in self.agents))
        head = f"  {'agent':{width}}  episodes  shortest  median  longest  imported from"
        rows = [
            f"  {a.name:{width}}  {a.episodes:8d}  {a.shortest:8d}  {a.median:6g}  {a.longest:7d}  {a.format}".rstrip()
            for a in self.agents
        ]
        return [head, *rows]


def inspect(
    path: str | os.PathLike[str], sheet: str | os.PathLike[str] | None = None, *, overwrite: bool = False
) -> Inspection:
    """Look at a store: its agents, lengths and shapes, and warnings from a sample of its trajectories.

    With `sheet`, frames of every agent are drawn into a PNG file of that name. A file that is there already is replaced
    with `overwrite` alone.
    """
    check_flag("overwrite", overwrite)
    if sheet is not None:
        check_suffix(sheet, "contact sheet", (".png",))
        check_new(sheet, "contact sheet", overwrite)
    tau, notes = TrajectoryDataset.open(path), read_notes(path)
    names = [str(name) for name in notes.get("agents") or range(tau.K)]
    formats = notes.get("formats") or [""] * tau.K
    warnings = find_warnings(tau, take_sample(tau), notes, names)
    if sheet is not None:
        from craftrl.importing.contact_sheet import write_contact_sheet

        write_contact_sheet(tau, names, sheet)
    actions = actions_path(path)
    return Inspection(
        path=place(path),
        agents=tuple(_summary(tau, k, names[k], formats[k]) for k in range(tau.K)),
        horizon=tau.H,
        obs_shape=tau.obs_shape,
        dtype=str(tau.dtype),
        actions=actions if actions.is_file() else None,
        warnings=warnings,
    )


def _summary(tau: TrajectoryDataset, k: int, name: str, source: str) -> AgentSummary:
    lengths = tau.lengths[tau.agent_slice(k)]
    return AgentSummary(
        name, len(lengths), int(lengths.min()), float(np.median(lengths)), int(lengths.max()), str(source)
    )
