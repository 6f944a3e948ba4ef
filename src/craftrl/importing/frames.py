"""Folders of pictures: one folder is one episode, its frames in the order in which people count."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError
from craftrl.importing.options import Options
from craftrl.importing.pictures import decoded_image
from craftrl.importing.source import Agent, Episode, Recording, in_order, stamp

__all__ = ["SUFFIXES", "frame_folders"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")


def frame_folders(files: Iterable[Path], root: Path, options: Options) -> list[Agent]:
    """One agent; every folder that holds pictures is an episode."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    return [Agent(root.name, "frames", [_episode(f, root, in_order(folders[f])) for f in in_order(folders)])]


def _episode(folder: Path, root: Path, files: list[Path]) -> Episode:
    lossy = any(file.suffix.lower() in (".jpg", ".jpeg", ".webp") for file in files)

    def read(steps: slice) -> Recording:
        return Recording(map(_frame, files[steps]), lossy="JPEG or WebP" if lossy else "")

    version = f"{len(files)} files, {stamp(files[0])}, {stamp(files[-1])}"
    name = root.name if folder == root else folder.relative_to(root).as_posix()
    return Episode(name, version, read, lambda: len(files))


def _frame(file: Path) -> NDArray[np.uint8]:
    try:
        return decoded_image(file)
    except (OSError, ValueError, SyntaxError) as error:  # what Pillow raises on damaged files
        raise InvalidDataError(
            f"{file} must be a picture; it cannot be decoded ({error}); write or copy it again."
        ) from error
