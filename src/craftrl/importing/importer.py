"""Import: recordings of several agents, read once, episode by episode, into a dataset.

Episodes are cut while their recordings are decoded, and go straight into the dataset. An import that was stopped goes
on: recordings that are complete on disk are not opened again.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_source
from craftrl.data import DatasetWriter, TrajectoryDataset
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.importing.datasets import release
from craftrl.importing.reading import Episode, Reading, cut_up, lights_of
from craftrl.importing.recognise import Agents, PathLike, recognised
from craftrl.importing.recordings import Cut, Recording
from craftrl.progress import progress_bar

WITHOUT_KEYS = {"video", "frames", "craftrl"}
BAR = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"


def import_data(
    agents: Agents,
    out: PathLike,
    *,
    stride: int = 1,
    crop: Sequence[int] | None = None,
    resize: Sequence[int] | int | None = None,
    grey: bool = False,
    keys: Sequence[str] | str = (),
    standardise: Literal["recording", "agent"] | None = None,
    boundaries: PathLike | None = None,
    progress: bool = False,
) -> TrajectoryDataset:
    """Read the recordings of several agents and write them as a dataset, the folder `out`.

    The same call again goes on with an import that was stopped, and returns at once where it is finished; with episodes
    of your own, it starts over.

    agents      one path per agent, or a mapping from names to paths. What lies there is recognised: videos, folders of
                frames, NumPy files, CSV or Parquet tables, Minari and LeRobot (v3) datasets, craftrl's own datasets. In
                a mapping, an iterable of episodes may stand in place of a path: arrays (length, ...), or pairs of
                observations and actions
    stride      every so many steps, one is kept
    crop        (left, top, width, height) in pixels; the rest of the picture is cut away, before anything else
    resize      (width, height) in pixels, or one number for both, by averaging over areas
    grey        pictures in one channel
    keys        which array, camera or columns are the observations, where the source has several
    standardise for recordings that differ in light or colour: "recording" gives each of them the same mean and contrast
                in each channel, those of all in the mean; "agent" all of an agent's together, which suits many short
                ones. They are decoded twice
    boundaries  a CSV file that says where episodes begin and end: `file`, `start` and `stop` in frames, or
                `start_seconds` and `stop_seconds`, and `agent` where one recording holds several agents
    progress    show a bar
    """
    reading = Reading(stride, crop, resize, grey, keys, standardise)
    check_flag("progress", progress)
    table = None if boundaries is None else _read_boundaries(check_source("boundaries", boundaries))
    listed, own = recognised(agents, tuple(reading.keys))
    if reading.keys and listed and {recording.format for recording in listed} <= WITHOUT_KEYS:
        raise InvalidParameterError(
            "keys (--key) choose among arrays, cameras or columns; these recordings have none to choose from; leave "
            f"{', '.join(reading.keys)} out."
        )
    if table is not None:
        listed = _cut_by(table, listed)
    if standardise and own:
        raise InvalidParameterError("standardise reads recordings twice; episodes of your own were given; save them.")
    names = list(dict.fromkeys([*(cut.agent for recording in listed for cut in recording.cuts), *own]))
    if len(names) < 2:
        raise InvalidDataError(
            f"There must be two agents at least; {', '.join(names) or 'none'} was given; give one path for "
            "each agent, not one folder of all."
        )
    files = [recording.stamp for recording in listed] if standardise else []  # all of them decide on the light of each
    run = "" if own else hashlib.sha256(json.dumps([asdict(reading), names, table, files]).encode()).hexdigest()
    writer = DatasetWriter(out, run=run, notes={"agents": {}})
    _check_unchanged(writer, listed, out)
    if writer.finished:
        return TrajectoryDataset.open(out)
    columns, dtype = _common_columns(listed), _common_type(listed, reading)
    lights = lights_of(listed, reading) if standardise else []
    reading.light = np.mean(lights, axis=0).tolist() if lights else None
    writer.notes["reading"] = {**asdict(reading), "keys": columns or reading.keys}
    longest = 2 if writer.done else 0
    shown_as: dict[str, Any] = {"unit": "episode"} if own else {"total": len(listed), "bar_format": BAR}
    with writer, progress_bar(desc="import", delay=0.5, disable=not progress, **shown_as) as bar:
        for i, recording in enumerate(chain(listed, *own.values())):
            places = {(cut.agent, recording.source, -1 if cut.in_seconds else int(cut.start)) for cut in recording.cuts}
            if places <= writer.done:
                continue
            for episode in cut_up(recording, reading, lights[i] if lights else None):
                longest = max(longest, 2 if episode.goes_on else len(episode.x))
                _note(writer.notes["agents"].setdefault(episode.agent, {}), recording, episode)
                agent, source, start, x, actions, *_, goes_on = episode
                if dtype is not None and np.can_cast(x.dtype, dtype):
                    x = x.astype(dtype, copy=False)
                try:
                    writer.append(agent, x, source=source, start=start, actions=actions, goes_on=goes_on)
                except InvalidDataError as error:
                    raise InvalidDataError(f"{recording.path}: {error}") from error
                bar.update(i + episode.share - bar.n)
            bar.update(i + 1 - bar.n)
        missing = [name for name in names if longest < 2 or name not in writer.notes["agents"]]
        if missing:
            of, advice = (" of 2 steps", "record longer ones, or lower stride") if longest < 2 else ("", "leave it out")
            raise InvalidDataError(f"Every agent must have an episode{of}; {missing[0]} has none; {advice}.")
    release()
    return TrajectoryDataset.open(out)


def read_episodes(agents: Agents, **reading: Any) -> Iterator[Episode]:
    """The episodes of recordings, one after the other, without writing them anywhere.

    `reading` are options of `import_data`; those of an imported dataset are its `notes["reading"]`, so that new
    recordings can be read and cut as those were.
    """
    options = Reading(**reading)
    listed, own = recognised(agents, tuple(options.keys))
    lights = lights_of(listed, options) if options.standardise else [None] * len(listed)
    for recording, light in zip_longest(chain(listed, *own.values()), lights):
        yield from cut_up(recording, options, light)
    release()


def _note(about: dict[str, Any], recording: Recording, episode: Episode) -> None:
    """What `inspect` wants to know of an agent; the same whether an import was stopped in between or not."""
    about["format"] = recording.format
    about["lossy"] = sorted({*about.get("lossy", []), episode.lossy} - {""})
    if episode.interval is not None:
        low, high = about.get("interval", episode.interval)
        about["interval"] = [min(low, episode.interval[0]), max(high, episode.interval[1])]


def _common_columns(listed: list[Recording]) -> list[str]:
    """The columns of tables, if all recordings are tables: in another order they would be other features."""
    for one, first in ((recording, listed[0]) for recording in listed if recording.columns and listed[0].columns):
        if one.columns != first.columns:
            raise InvalidDataError(
                f"Tables must have the same columns in the same order; {one.path} has {', '.join(one.columns)}, "
                f"{first.path} {', '.join(first.columns)}; name those that are observed, each with --key."
            )
    return list(listed[0].columns) if listed and all(recording.columns for recording in listed) else []


def _common_type(listed: list[Recording], reading: Reading) -> np.dtype[Any] | None:
    """The type of all observations; agents whose frames do not fit together are noticed before anything is written."""
    first: dict[str, NDArray[Any]] = {}
    for recording in reversed({recording.agent: recording for recording in reversed(listed)}.values()):
        begin = recording._replace(cuts=(Cut(recording.agent, 0, 1),))
        for episode in cut_up(begin, replace(reading, stride=1)):
            first[recording.path] = episode.x[0]
    for path, x in first.items():
        before, y = next(iter(first.items()))
        if x.dtype.kind not in "biuf":
            raise InvalidDataError(f"Observations must be real numbers; those of {path} are {x.dtype}; convert them.")
        if x.shape != y.shape or (x.dtype != y.dtype and x.ndim > 1):
            raise InvalidDataError(
                f"All observations must have one shape, and pictures one type; {path} has {x.shape} {x.dtype}, "
                f"{before} {y.shape} {y.dtype}; crop, resize, make them grey (--grey) or convert them."
            )
    return np.result_type(*(x.dtype for x in first.values())) if first else None


def _check_unchanged(writer: DatasetWriter, listed: list[Recording], out: PathLike) -> None:
    """Files may have been mended, added or removed since an import was stopped, but not among those already written."""
    files = list(dict.fromkeys(recording.stamp for recording in listed))
    there = {(agent, source) for agent, source, _ in writer.done}
    written = [one.stamp for one in listed if any((cut.agent, one.source) in there for cut in one.cuts)]
    part = slice(None if writer.finished else files.index(written[-1]) + 1 if written else 0)
    if writer.notes.get("files", files)[part] != files[part]:
        raise InvalidParameterError(
            f"Recordings have changed since {os.fspath(out)} was written; remove it, and import again."
        )
    writer.notes["files"] = files


# -- boundaries ---------------------------------------------------------------------------------------------------


def _read_boundaries(path: Path) -> list[tuple[str, Cut]]:
    """(file, part) of every row of a table of boundaries."""
    found, line = [], f"{path}, which cannot be read"
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for i, row in enumerate(csv.DictReader(file), start=2):
                line, unit = f"line {i} of {path}", "_seconds" if "start_seconds" in row else ""
                start, stop = float(row[f"start{unit}"]), float(row[f"stop{unit}"])
                if not 0 <= start < stop or (not unit and (start % 1 or stop % 1)):
                    raise ValueError
                agent = (row.get("agent") or "").strip()
                found.append((row["file"].strip(), Cut(agent, start, stop, bool(unit), line)))
    except (OSError, KeyError, ValueError, TypeError, AttributeError, csv.Error) as error:
        raise InvalidDataError(
            "Boundaries must be a CSV file that has `file`, and `start` before `stop` in whole frames, or "
            f"`start_seconds` before `stop_seconds`, in every row; correct {line}."
        ) from error
    if not found:
        raise InvalidDataError(f"A table of boundaries must have at least one row; {path} has none; fill it in.")
    return found


def _cut_by(table: list[tuple[str, Cut]], listed: list[Recording]) -> list[Recording]:
    """The recordings that the table names, with the parts that it wants; others are left out."""
    by_name: dict[str, list[int]] = {}
    for i, recording in enumerate(listed):
        for name in (f"{recording.agent}/{recording.source}", recording.source):
            by_name.setdefault(name, []).append(i)
    cuts: dict[int, list[Cut]] = {}
    for file, cut in table:
        found = by_name.get(file, [])
        mine = [i for i in found if listed[i].agent == cut.agent]
        found = mine if len(found) > 1 and mine else found
        if len(found) != 1:
            known = [f"{listed[i].agent}/{listed[i].source}" for i in found] or [*by_name, "none"][:1]
            raise InvalidDataError(
                f"Every row of boundaries must name one recording; {file} in {cut.line} names {len(found)}; write it "
                f"as it is called in the agent's folder, such as {' or '.join(known)}."
            )
        (i,) = found
        cuts.setdefault(i, []).append(cut._replace(agent=cut.agent or listed[i].agent))
    return [  # one agent may now have recordings of several folders, in which files have the same names
        recording._replace(source=f"{recording.agent}/{recording.source}", cuts=tuple(cuts[i]))
        for i, recording in enumerate(listed)
        if i in cuts
    ]
