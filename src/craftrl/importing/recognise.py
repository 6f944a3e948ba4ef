"""What was given, as recordings: which format a path holds, by what lies there, and what its agents are called."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from craftrl.arguments import check_source, quoted
from craftrl.data.labels import plain_array
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.importing import arrays, datasets, tables
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
    """The recordings at the paths, in the order in which they are read; and those of agents given in Python."""
    if not isinstance(agents, (Mapping, list, tuple)):
        raise InvalidParameterError(f"agents must be a list with one path per agent; {quoted(agents)} was given.")
    given: dict[Any, Any] = dict(agents) if isinstance(agents, Mapping) else dict(enumerate(agents))
    paths = {label: os.fspath(value) for label, value in given.items() if isinstance(value, (str, os.PathLike))}
    own = {label: value for label, value in given.items() if label not in paths}
    for label, value in own.items():
        if not (isinstance(label, str) and isinstance(value, Iterable)):
            raise InvalidParameterError(f"Agents must be paths, or names with iterables; {quoted(value)} was given.")
    found = {label: _at(path, keys) for label, path in paths.items()}
    for a, b in combinations(paths.values(), 2):
        if os.path.realpath(a) == os.path.realpath(b):
            raise InvalidDataError(
                f"Agents must have recordings of their own; {a} and {b} are the same; leave one out."
            )
    empty = [paths[label] for label in paths if not found[label]]
    if empty:
        raise InvalidDataError(f"Every agent must have an episode; {empty[0]} has none; leave it out.")
    folder = {label: Path(os.path.abspath(path)).parent.name for label, path in paths.items()}
    # Names in the data come first, then those of a mapping, then those of files and folders, if need be with the folder
    # that they lie in.
    inside = {label for label in paths if all(recording.agent for recording in found[label])}
    names = {label: label if isinstance(label, str) else _name(paths[label]) for label in paths if label not in inside}
    times = Counter(names.values())
    names = {label: f"{folder[label]}/{name}" if times[name] > 1 else name for label, name in names.items()}
    all_names = [*names.values(), *own, *{recording.agent for label in inside for recording in found[label]}]
    if len(set(all_names)) < len(all_names):
        twice = Counter(all_names).most_common(1)[0][0]
        raise InvalidDataError(f"Agents must have names of their own; two are called {twice}; rename one.")
    listed, files = [], Counter(Path(path).name for path in paths.values())
    for label, path in paths.items():
        same = label in inside and files[Path(path).name] > 1  # tables of one name may hold the same agents
        root = os.path.dirname(path) if os.path.isfile(path) else path
        for recording in found[label]:
            agent = names.get(label, recording.agent)
            source = f"{folder[label]}/{recording.source}" if same else recording.source
            shown_as = os.path.join(root, recording.source)
            listed.append(recording._replace(agent=agent, source=source, path=shown_as, cuts=(Cut(agent),)))
    return listed, {agent: _own(agent, episodes) for agent, episodes in own.items()}


def _name(path: str) -> str:
    where = Path(os.path.abspath(path))
    return path.removeprefix(MINARI) if path.startswith(MINARI) else where.stem if where.is_file() else where.name


def _own(agent: str, episodes: Iterable[Any]) -> Iterator[Recording]:
    """Episodes that a caller has made: arrays, or pairs of observations and actions."""
    for i, episode in enumerate(episodes):
        pair = isinstance(episode, tuple) and len(episode) == 2
        x, actions = (plain_array(part) for part in (episode if pair else (episode, [])))
        if x is None or actions is None or x.ndim == 0:
            raise InvalidDataError(f"Episodes must be arrays, or pairs with actions; {agent} has {quoted(episode)}.")
        read, name = partial(Content, x, actions if pair else None), f"episode {i}"
        yield Recording(agent, name, "", "Python", read, f"{agent}/{name}", (Cut(agent),))


def _at(given: str, keys: tuple[str, ...]) -> list[Recording]:
    """The recordings that a path holds, of one agent or, where the format says whose they are, of several."""
    if given.startswith(MINARI):
        return datasets.minari_dataset(datasets.named_folder(given.removeprefix(MINARI)), keys)
    path = check_source("An agent's recordings", given)
    if not path.exists():
        raise InvalidDataError(f"There must be an agent's recordings at {path}; nothing is there; check the name.")
    if path.resolve() == Path(path.resolve().anchor):
        raise InvalidDataError(f"Recordings must have a folder of their own; {path} is the whole disk.")
    if (path / datasets.LEROBOT).is_file():
        return datasets.lerobot_dataset(path, keys)
    if any(_is_minari(folder / datasets.METADATA) for folder in (path, path / "data")):
        return datasets.minari_dataset(path, keys)
    if (path / datasets.INDEX).is_file():
        return datasets.own_dataset(path)
    kinds: dict[str, list[Path]] = {}
    for file in in_order((path, *path.rglob("*"))):
        kind = next((name for name, (suffixes, _) in FILES.items() if file.suffix.lower() in suffixes), "")
        if kind and os.path.isfile(file) and not any(part[0] == "." for part in file.relative_to(path).parts):
            kinds.setdefault(kind, []).append(file)
    if not kinds or (path.is_file() and "pictures" in kinds):
        known = ", ".join(f"{name} ({' '.join(suffixes)})" for name, (suffixes, _) in FILES.items())
        raise InvalidDataError(
            f"An agent's path must hold recordings; {path} has none; known are {known}, and datasets of Minari, "
            "LeRobot and craftrl; convert others first."
        )
    if len(kinds) > 1:
        several = " and ".join(f"{len(own)} {name} ({own[0].name}, ...)" for name, own in kinds.items())
        raise InvalidDataError(f"A folder must hold one kind of recordings; {path} has {several}; move the others.")
    ((kind, own),) = kinds.items()
    if path.is_file() and kind == "NumPy files":
        return arrays.array_file(path, keys)
    return FILES[kind][1](own, path, keys)


def _is_minari(metadata: Path) -> bool:
    try:
        return "minari_version" in json.loads(metadata.read_text())
    except (OSError, ValueError):
        return False
