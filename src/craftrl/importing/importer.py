"""Import: recordings of several agents, read episode by episode, into one store.

Every episode that was read is kept in a log beside the store (`log`). When all are there, the store is written from it,
whole or not at all, and the log removed. So an import that was killed goes on where it stopped, whatever stopped it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_target, shown
from craftrl.data.dataset import TrajectoryDataset, as_observations
from craftrl.data.files import check_writable
from craftrl.data.hdf5 import Hdf5Writer, read_notes
from craftrl.data.labels import plain_array
from craftrl.data.publishing import taken
from craftrl.data.storage import HDF5_SUFFIXES, check_room
from craftrl.errors import CraftError, InvalidDataError, InvalidParameterError
from craftrl.importing.actions import write_actions
from craftrl.importing.log import ImportLog, Record
from craftrl.importing.options import Options
from craftrl.importing.pictures import changed_picture
from craftrl.importing.plan import Plan, make_plan
from craftrl.importing.source import Agent, Episode, Recording, recorded
from craftrl.progress import progress_bar

__all__ = ["import_data"]

PathLike = str | os.PathLike[str]


def import_data(
    agents: Sequence[PathLike | Agent] | Mapping[str, PathLike],
    out: PathLike,
    *,
    stride: int = 1,
    crop: Sequence[int] | None = None,
    resize: Sequence[int] | int | None = None,
    grey: bool = False,
    keys: Sequence[str] | str = (),
    boundaries: PathLike | None = None,
    clip: int | None = None,
    progress: bool = False,
) -> TrajectoryDataset:
    """Read the recordings at these paths, one path per agent, and write them to the HDF5 file `out`.

    A path is a file or a folder in one of these formats, which is recognised: NumPy files, craftrl's own stores, CSV or
    Parquet tables, videos, folders of frames, Minari and LeRobot (v3) datasets. Agents are called as their files or
    folders are, or as the keys of a mapping. An `Agent` in place of a path brings episodes of a format of your own. The
    other parameters are those of `Options`.

    Actions in the sources are written to `actions_path(out)`. The same call again goes on with an unfinished import,
    and returns at once where it is finished.
    """
    options = Options.of(
        stride=stride, crop=crop, resize=resize, grey=grey, keys=keys, boundaries=boundaries, clip=clip
    )
    check_flag("progress", progress)
    target = check_target("The store", out)
    if target.suffix not in HDF5_SUFFIXES:
        raise InvalidParameterError(f"The store must be an HDF5 file, NAME.h5; {target} was given; choose that name.")
    plan = make_plan(agents, options)
    log = ImportLog(target.with_name(f"{target.name}.importing"))
    if not taken(target):
        check_writable(target.parent)
        with log:
            records = _read_all(plan, log, progress)
            log.commit()
            _write_store(plan, records, log, target)
    elif read_notes(target).get("import") != plan.fingerprint:
        raise InvalidParameterError(
            f"{target} exists already and holds other data than these sources give; remove it, or choose another name."
        )
    log.remove()
    return TrajectoryDataset.open(target)


def _read_all(plan: Plan, log: ImportLog, progress: bool) -> list[list[Record]]:
    """The record of every episode of every agent; those in the log are not read again."""
    first: tuple[str, tuple[int, ...]] | None = None
    with _bar(plan, log, progress) as done:
        for episode in plan.in_reading_order():
            record = log.records.get(plan.key(episode))
            if record is None:
                record = log.add(plan.key(episode), *_read_one(episode, plan.options))
                done()
            shape = record.observations.shape[1:]
            first = first or (episode.key, shape)
            if shape != first[1]:
                raise InvalidDataError(
                    f"All observations must have one shape; those of {episode.key} have {shape}, those of {first[0]} "
                    f"{first[1]}; crop or resize them to one."
                )
    found = [[log.records[plan.key(episode)] for episode in agent.episodes] for agent in plan.agents]
    _check_different(plan, found)
    return found


def _read_one(episode: Episode, options: Options) -> tuple[NDArray[Any], NDArray[Any] | None, str]:
    """Observations, actions and the kind of loss of one episode, checked."""
    recording = recorded(episode, slice(None, None, options.stride))
    frames = recording.observations
    if not isinstance(frames, np.ndarray) or options.changes_pictures:
        arrays = (as_observations(x, episode.key) for x in frames)
        frames = _stacked([changed_picture(x, options, episode.key) for x in arrays], episode.key)
    x = as_observations(frames, episode.key)
    if not len(x):
        raise InvalidDataError(f"An episode must hold at least one observation; {episode.key} is empty; leave it out.")
    return x, _actions(recording, len(x), episode.key), recording.lossy


def _actions(recording: Recording, n: int, key: str) -> NDArray[Any] | None:
    """The actions of an episode of n steps, as many or one fewer: the last observation may have none."""
    if recording.actions is None:
        return None
    actions = plain_array(recording.actions)
    if actions is None or actions.dtype.kind not in "biuf":
        found = f"are {shown(recording.actions)}" if actions is None else f"have dtype {actions.dtype}"
        raise InvalidDataError(f"Actions must be numbers in an array; those of {key} {found}.")
    if not actions.ndim or len(actions) not in (n - 1, n):
        raise InvalidDataError(
            f"There must be an action between each two steps; {key} has {n} steps and actions of shape "
            f"{actions.shape}; correct or remove its actions."
        )
    return actions


def _stacked(frames: list[NDArray[Any]], key: str) -> NDArray[Any]:
    shapes = list(dict.fromkeys(frame.shape for frame in frames))
    if len(shapes) > 1:
        raise InvalidDataError(
            f"All frames of an episode must have one size; {key} has {shapes[0]} and {shapes[1]}; crop or resize them "
            "to one."
        )
    return np.stack(frames) if frames else np.empty(0)


def _check_different(plan: Plan, found: list[list[Record]]) -> None:
    """Two agents with the very same episodes are one agent, given twice under two names."""
    seen: dict[tuple[str, ...], str] = {}
    for agent, records in zip(plan.agents, found):
        digests = tuple(sorted(record.digest for record in records))
        if digests in seen:
            raise InvalidDataError(
                f"Each agent must have recordings of its own; those of {agent.name} are the same as those of "
                f"{seen[digests]}; leave one out."
            )
        seen[digests] = agent.name


def _write_store(plan: Plan, records: list[list[Record]], log: ImportLog, target: Path) -> None:
    """The store from the log, and the actions before it: where the store is, its actions are too."""
    everything = [record for mine in records for record in mine]
    H = max(record.observations.shape[0] for record in everything)
    if H < 2:
        raise InvalidDataError("One episode at least must have two steps; all of them have one; CRAFT compares pairs.")
    dtype = np.result_type(*{np.dtype(record.observations.dtype) for record in everything})
    try:
        writer = Hdf5Writer(target, H, everything[0].observations.shape[1:], dtype, _notes(plan, records))
        check_room(target, len(everything) * H * writer.row_bytes)
        write_actions(target, [[r.actions if r.actions is None else log.array(r.actions) for r in m] for m in records])
        with writer:
            for k, mine in enumerate(records):
                for start in range(0, len(mine), writer.block):
                    _append(writer, k, [log.array(r.observations) for r in mine[start : start + writer.block]])
    except CraftError as error:
        kept = f"What was read is kept in {log.folder}; the same command goes on with it."
        raise type(error)(f"{error} {kept}") from error


def _notes(plan: Plan, records: list[list[Record]]) -> dict[str, Any]:
    """What the store remembers about its agents, for `inspect` and for reruns."""
    return {
        "agents": [agent.name for agent in plan.agents],
        "formats": [agent.format for agent in plan.agents],
        "lossy": ["; ".join(sorted({record.lossy for record in mine} - {""})) for mine in records],
        "clip": plan.options.clip,
        "import": plan.fingerprint,
    }


def _append(writer: Hdf5Writer, k: int, episodes: list[NDArray[Any]]) -> None:
    lengths = np.array([len(x) for x in episodes])
    block = np.zeros((len(episodes), lengths.max(), *writer.obs_shape), dtype=writer.dtype)
    for row, x in zip(block, episodes):
        row[: len(x)] = x
    writer.append(k, block, lengths)


@contextmanager
def _bar(plan: Plan, log: ImportLog, shown: bool) -> Iterator[Callable[[], Any]]:
    """A function to call for every episode that was read; with a bar, where one is shown."""
    if not shown:
        yield lambda: None
        return
    episodes = list(plan.in_reading_order())
    done = sum(plan.key(episode) in log.records for episode in episodes)
    with progress_bar(total=len(episodes), initial=done, desc="import", unit="episode", delay=0.5) as bar:
        yield bar.update
