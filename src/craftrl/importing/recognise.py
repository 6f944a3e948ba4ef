"""Which format a path holds, by what lies there; and what was looked for, where nothing fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from craftrl.arguments import check_source
from craftrl.data.places import Place
from craftrl.errors import InvalidDataError
from craftrl.importing import arrays, frames, lerobot, minari_datasets, stores, tables, videos
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, in_order

__all__ = ["agents_at", "is_store"]

STORES = (".h5", ".hdf5")
MANIFEST = "manifest.json"
FILES: dict[str, tuple[tuple[str, ...], Callable[[Iterable[Path], Path, Options], list[Agent]]]] = {
    "videos": (videos.SUFFIXES, videos.video_files),
    "NumPy files": (arrays.SUFFIXES, arrays.array_folder),
    "tables": (tables.SUFFIXES, tables.table_files),
    "pictures": (frames.SUFFIXES, frames.frame_folders),
}
MINARI = "minari:"


def agents_at(given: str | Path, options: Options) -> list[Agent]:
    """The agents that a path holds: usually one, several where the format says whose an episode is."""
    if str(given).startswith(MINARI):
        return minari_datasets.named_minari_dataset(str(given).removeprefix(MINARI), options)
    path = check_source("An agent's recordings", given)
    if not path.exists():
        raise InvalidDataError(f"There must be an agent's recordings at {path}; nothing is there; check the name.")
    return _in_folder(path, options) if path.is_dir() else _in_file(path, options)


def is_store(path: Place) -> bool:
    """Whether craftrl wrote this dataset, as far as names tell."""
    return path.suffix in STORES if path.is_file() else (path / MANIFEST).is_file()


def _in_file(path: Path, options: Options) -> list[Agent]:
    suffix = path.suffix.lower()
    if suffix in STORES:
        return stores.store(path, options)
    if suffix in arrays.SUFFIXES:
        return arrays.array_file(path, options)
    for name, (suffixes, read) in FILES.items():
        if suffix in suffixes and name != "pictures":
            return read([path], path, options)
    raise InvalidDataError(
        f"{path} must be a file of a known kind; it ends in {path.suffix or 'nothing'}, and these are known: "
        f"{' '.join((*STORES, *arrays.SUFFIXES, *tables.SUFFIXES, *videos.SUFFIXES))}; convert it first."
    )


def _in_folder(path: Path, options: Options) -> list[Agent]:
    if (path / lerobot.INFO).is_file():
        return lerobot.lerobot_dataset(path, options)
    if any(_is_minari(folder / minari_datasets.METADATA) for folder in (path, path / "data")):
        return minari_datasets.minari_dataset(path, options)
    if (path / MANIFEST).is_file():
        return stores.store(path, options)
    found: dict[str, list[Path]] = {}
    for file in _files_in(path):
        if not any(part.startswith(".") for part in file.relative_to(path).parts):
            kind = next((name for name, (known, _) in FILES.items() if file.suffix.lower() in known), None)
            found.setdefault(kind or "", []).append(file)
    found.pop("", None)  # notes, thumbnails' indices and the like
    if len(found) != 1:
        raise InvalidDataError(_nothing(path) if not found else _several(path, found))
    ((kind, files),) = found.items()
    return FILES[kind][1](in_order(files), path, options)


def _files_in(path: Path) -> list[Path]:
    if path.resolve() == Path(path.resolve().anchor):
        raise InvalidDataError(
            f"An agent's folder must hold recordings of this agent; {path} is the whole disk; name a folder in it."
        )
    try:
        return [file for file in path.rglob("*") if file.is_file()]
    except OSError as error:
        raise InvalidDataError(
            f"An agent's folder must be readable with all that is in it; {path} is not ({error}); check its rights."
        ) from error


def _is_minari(metadata: Path) -> bool:
    try:
        return "minari_version" in json.loads(metadata.read_text())
    except (OSError, ValueError):
        return False


def _nothing(path: Path) -> str:
    kinds = ", ".join(f"{name} ({' '.join(suffixes)})" for name, (suffixes, _) in FILES.items())
    return (
        f"An agent's folder must hold recordings; {path} has none; looked for {kinds}, {lerobot.INFO} of LeRobot, "
        f"{minari_datasets.METADATA} of Minari, and {MANIFEST} of craftrl."
    )


def _several(path: Path, found: dict[str, list[Path]]) -> str:
    kinds = " and ".join(f"{len(files)} {name} ({files[0].name}, ...)" for name, files in found.items())
    return f"An agent's folder must hold recordings of one kind; {path} has {kinds}; move the others elsewhere."
