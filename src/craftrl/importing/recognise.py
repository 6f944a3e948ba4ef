"""What was given, as recordings: which format a path holds, by what lies there, and what its agents are called."""

from __future__ import annotations

import filecmp
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from craftrl.arguments import check_source, shown
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.importing import arrays, minari, tables
from craftrl.importing.recordings import PICTURES, VIDEOS, Content, Cut, Recording, frame_folders, in_order, videos

PathLike = str | os.PathLike[str]
Agents = Sequence[PathLike] | Mapping[str, PathLike | Iterable[ArrayLike | tuple[ArrayLike, ArrayLike]]]
MINARI = "minari:"
FILES: dict[str, tuple[tuple[str, ...], Callable[[Iterable[Path], Path, tuple[str, ...]], list[Recording]]]] = {
    "videos": (VIDEOS, videos),
    "NumPy files": (arrays.ARRAYS, arrays.array_folder),
    "tables": (tables.TABLES, tables.table_files),
    "pictures": (PICTURES, frame_folders),
}


def recognised(agents: Agents, keys: tuple[str, ...]) -> tuple[list[Recording], dict[str, Iterator[Recording]]]:
    """All recordings at the paths, in the order in which they are read; and those of agents that are given in Python."""
    if not isinstance(agents, (Mapping, list, tuple)):
        raise InvalidParameterError(f"agents must be a list with one path per agent; {shown(agents)} was given.")
    given: dict[Any, Any] = dict(agents) if isinstance(agents, Mapping) else dict(enumerate(agents))
    paths = {label: value for label, value in given.items() if isinstance(value, (str, os.PathLike))}
    own = {label: value for label, value in given.items() if label not in paths}
    for label, value in own.items():
        if not (isinstance(label, str) and isinstance(value, Iterable)):
            raise InvalidParameterError(
                f"An agent must be a path or, in a mapping from names, an iterable of episodes; {shown(value)} was given."
            )
    files = {label: _files(path) for label, path in paths.items()}
    found = {label: _at(path, files[label], keys) for label, path in paths.items()}
    for a, b in combinations(paths, 2):
        sizes = [[file.stat().st_size for file in files[label]] for label in (a, b)]
        equal = sizes[0] == sizes[1] != [] and all(filecmp.cmp(x, y, False) for x, y in zip(files[a], files[b]))
        if equal or os.path.realpath(paths[a]) == os.path.realpath(paths[b]):
            raise InvalidDataError(
                f"Each agent must have recordings of its own; those of {os.fspath(paths[b])} are the same as those of "
                f"{os.fspath(paths[a])}; leave one out."
            )
    names: dict[Any, str] = {}  # of agents whose names do not stand in the data
    for label, path in paths.items():
        inside = {recording.agent for recording in found[label]}
        if inside == {""} or (isinstance(label, str) and len(inside) == 1):
            where = Path(os.path.abspath(path))
            name = str(path).removeprefix(MINARI) if str(path).startswith(MINARI) else where.name
            names[label] = label if isinstance(label, str) else where.stem if where.is_file() else name
    times = Counter(names.values())
    for label, name in names.items():
        if times[name] > 1:  # folders of one name are told apart by where they lie
            names[label] = f"{Path(os.path.abspath(paths[label])).parent.name}/{name}"
    inside = {recording.agent for label in paths if label not in names for recording in found[label]}
    twice = next((name for name, n in Counter([*names.values(), *own, *inside]).items() if n > 1), None)
    if twice is not None:
        raise InvalidDataError(
            f"Each agent must have a name of its own; two are called {twice}; rename one, or give a mapping from names."
        )
    listed = []
    times = Counter(Path(path).name for path in paths.values())
    for label, path in paths.items():
        folder = os.path.dirname(path) if os.path.isfile(path) else os.fspath(path)
        for recording in found[label]:
            agent, source = names.get(label, recording.agent), recording.source
            if label not in names and times[Path(path).name] > 1:  # tables of one name may hold one agent
                source = f"{Path(os.path.abspath(path)).parent.name}/{source}"
            where = os.path.join(folder, recording.source)
            listed.append(recording._replace(agent=agent, source=source, path=where, cuts=(Cut(agent),)))
    return listed, {agent: _own(agent, episodes) for agent, episodes in own.items()}


def _files(given: PathLike) -> list[Path]:
    """All files at a path."""
    if str(given).startswith(MINARI):
        return []
    path = check_source("An agent's recordings", given)
    if not path.exists():
        raise InvalidDataError(f"There must be an agent's recordings at {path}; nothing is there; check the name.")
    if path.resolve() == Path(path.resolve().anchor):
        raise InvalidDataError(
            f"An agent's folder must hold recordings of this agent; {path} is the whole disk; name a folder in it."
        )
    try:
        return in_order(file for file in (path, *path.rglob("*")) if file.is_file())
    except OSError as error:
        raise InvalidDataError(
            f"An agent's folder must be readable with all that is in it; {path} is not ({error}); check its rights."
        ) from error


def _own(agent: str, episodes: Iterable[Any]) -> Iterator[Recording]:
    """Episodes that a caller has made: arrays, or pairs of observations and actions."""
    for i, episode in enumerate(episodes):
        pair = isinstance(episode, tuple) and len(episode) == 2
        x, actions = (plain_array(part) for part in (episode if pair else (episode, [])))
        if x is None or actions is None or x.ndim == 0:
            raise InvalidDataError(
                f"Each episode of {agent} must be an array (length, ...), or a pair of observations and actions; "
                f"{shown(episode)} was given."
            )
        content = Content(x, actions if pair else None)
        read, path = lambda content=content: content, f"{agent}/episode {i}"  # noqa: E731
        yield Recording(agent, f"episode {i}", "", "Python", read, path, (Cut(agent),))


def _at(given: PathLike, files: list[Path], keys: tuple[str, ...]) -> list[Recording]:
    """The recordings that a path holds, of one agent or, where the format says whose they are, of several."""
    if str(given).startswith(MINARI):
        return minari.minari_dataset(minari.named_folder(str(given).removeprefix(MINARI)), keys)
    path = Path(given)
    if (path / tables.LEROBOT).is_file():
        return tables.lerobot_dataset(path, keys)
    if any(_is_minari(folder / minari.METADATA) for folder in (path, path / "data")):
        return minari.minari_dataset(path, keys)
    if (path / arrays.INDEX).is_file():
        return arrays.dataset(path)
    kinds: dict[str, list[Path]] = {}
    for file in files:
        kind = next((name for name, (known, _) in FILES.items() if file.suffix.lower() in known), "")
        if kind and not any(part.startswith(".") for part in file.relative_to(path).parts):  # notes, thumbnails, ...
            kinds.setdefault(kind, []).append(file)
    if not kinds or (path.is_file() and "pictures" in kinds):
        known = ", ".join(f"{name} ({' '.join(suffixes)})" for name, (suffixes, _) in FILES.items())
        raise InvalidDataError(
            f"An agent's folder or file must hold recordings; {path} has none; looked for {known}, and folders of them, "
            f"{tables.LEROBOT} of LeRobot, {minari.METADATA} of Minari, {arrays.INDEX} of craftrl."
        )
    if len(kinds) > 1:
        several = " and ".join(f"{len(own)} {name} ({own[0].name}, ...)" for name, own in kinds.items())
        raise InvalidDataError(
            f"An agent's folder must hold recordings of one kind; {path} has {several}; move the others elsewhere."
        )
    ((kind, own),) = kinds.items()
    return arrays.array_file(path, keys) if own == [path] and kind == "NumPy files" else FILES[kind][1](own, path, keys)


def _is_minari(metadata: Path) -> bool:
    try:
        return "minari_version" in json.loads(metadata.read_text())
    except (OSError, ValueError):
        return False
