"""Episodes cut out of recordings: by a table of boundaries, or into clips of equal length.

The table is a CSV file with a header. `file` names the recording; `start` and `stop` count frames from 0, `stop` not
included, or `start_seconds` and `stop_seconds` say the same in seconds. `agent`, if there is such a column, says whose
the episode is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from craftrl.arguments import check_whole
from craftrl.errors import InvalidDataError
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, Episode, Recording, exactly, recorded

__all__ = ["cut"]


def cut(agents: Sequence[Agent], options: Options) -> list[Agent]:
    """The agents' episodes as the options want them, still not read."""
    found = list(agents)
    if options.boundaries is not None:
        found = _by_table(found, options.boundaries)
    if options.clip is None:
        return found
    clip, stride = options.clip, options.stride
    return [
        replace(agent, episodes=[part for episode in agent.episodes for part in _clips(episode, clip, stride)])
        for agent in found
    ]


def _clips(episode: Episode, clip: int, stride: int) -> Iterator[Episode]:
    """Parts that have `clip` steps when read with the stride; what is left over at the end and shorter is dropped."""
    n = episode.count()
    check_whole(f"The number of steps of {episode.key}", n)
    for start in range(0, n - (clip - 1) * stride, clip * stride):
        yield _part(episode, start, min(start + clip * stride, n))


def _part(episode: Episode, start: int, stop: int) -> Episode:
    """Steps start..stop-1 of an episode as one of its own."""
    name = f"{episode.name} {start}:{stop}"

    def read(steps: slice) -> Recording:
        wanted = range(start, stop)[steps]
        recording = recorded(episode, slice(wanted.start, wanted.stop, wanted.step))
        return Recording(exactly(len(wanted), recording.observations, name), recording.actions, recording.lossy)

    return replace(episode, name=name, read=read, count=lambda: stop - start, seconds=None)


# -- the table ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    line: str  # for errors: the table and the line
    file: str
    start: float
    stop: float
    in_seconds: bool
    agent: str | None


def _by_table(agents: list[Agent], table: Path) -> list[Agent]:
    """Agents as the table names them, else as their recordings were found; recordings not in the table are left out."""
    cut_out: dict[str, list[Episode]] = {}
    by_name = _by_name(agents)
    lengths: dict[str, Any] = {}
    for row in _rows(table):
        agent, episode = _find(by_name, row)
        if episode.key not in lengths:
            lengths[episode.key] = _length(episode, row)
        start, stop = _in_steps(row, lengths[episode.key])
        cut_out.setdefault(row.agent or agent.name, []).append(_part(episode, start, stop))
    formats = " and ".join(dict.fromkeys(agent.format for agent in agents))
    if not cut_out:
        raise InvalidDataError(f"A table of boundaries must have at least one row; {table} has none; fill it in.")
    return [Agent(name, formats, found) for name, found in cut_out.items()]


def _rows(table: Path) -> Iterator[_Row]:
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield _parsed(row, f"line {reader.line_num} of {table}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidDataError(
            f"The table of boundaries must be a CSV file; {table} cannot be read ({error}); check the name."
        ) from error


def _parsed(row: dict[str, Any], line: str) -> _Row:
    in_seconds = "start_seconds" in row
    try:
        first, last = (float(row[f"{name}_seconds" if in_seconds else name]) for name in ("start", "stop"))
        if not in_seconds and (first != int(first) or last != int(last)):
            raise ValueError
        return _Row(line, row["file"].strip(), first, last, in_seconds, (row.get("agent") or "").strip() or None)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidDataError(
            "Every row of boundaries must have `file`, and `start` and `stop` in whole frames, or `start_seconds` and "
            f"`stop_seconds`; {line} has not; correct it."
        ) from error


def _by_name(agents: list[Agent]) -> dict[str, list[tuple[Agent, Episode]]]:
    """Recordings by their name, and by AGENT/NAME for where two agents have one of that name."""
    found: dict[str, list[tuple[Agent, Episode]]] = {}
    for agent in agents:
        for episode in agent.episodes:
            for name in (f"{agent.name}/{episode.name}", episode.name):
                found.setdefault(name, []).append((agent, episode))
    return found


def _find(by_name: dict[str, list[tuple[Agent, Episode]]], row: _Row) -> tuple[Agent, Episode]:
    """The one recording that a row means."""
    found = by_name.get(row.file, [])
    mine = [pair for pair in found if pair[0].name == row.agent]
    found = mine if len(found) > 1 and mine else found
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidDataError(
            f"Every row of boundaries must name one recording; {row.file} in {row.line} is one of "
            f"{' and '.join(agent.name for agent, _ in found)}; write {found[0][0].name}/{row.file}."
        )
    first = next(iter(by_name), "none")
    raise InvalidDataError(
        f"Every row of boundaries must name a recording; {row.file} in {row.line} is none of them; names are relative "
        f"to the agent's folder, such as {first}."
    )


def _length(episode: Episode, row: _Row) -> Any:
    """The number of steps, or the time of every one."""
    if not row.in_seconds:
        return episode.count()
    if episode.seconds is None:
        raise InvalidDataError(
            f"Boundaries in seconds need recordings that know their time, such as videos; {row.file} in {row.line} "
            "does not; give `start` and `stop` in steps."
        )
    return episode.seconds()


def _in_steps(row: _Row, known: Any) -> tuple[int, int]:
    if row.in_seconds:
        tolerance = 1e-6
        start, stop = (int(np.searchsorted(known, at - tolerance)) for at in (row.start, row.stop))
        interval = float(np.median(np.diff(known))) if len(known) > 1 else 0.0
        end, unit = float(known[-1]) + interval if len(known) else 0.0, "s"
    else:
        start, stop, end, unit = int(row.start), int(row.stop), known, "steps"
    if not 0 <= row.start < row.stop <= end + (1e-6 if row.in_seconds else 0) or start >= stop:
        raise InvalidDataError(
            f"Boundaries must lie inside of the recording, start before stop; {row.file} has {end:g} {unit}, and "
            f"{row.line} asks for {row.start:g} to {row.stop:g}; correct it."
        )
    return start, stop
