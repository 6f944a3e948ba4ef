"""A goal on the command line: a state's number, a state at a step, or a file that shows what is to be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_source
from craftrl.data.files import UNREADABLE
from craftrl.errors import InvalidDataError, InvalidParameterError, require

__all__ = ["read_goal"]

LONGEST = 10  # digits of a state or a step, more than any has


def read_goal(text: str, shape: tuple[int, ...]) -> Any:
    """A goal as `Planner.goal_nodes` takes it; `shape` is that of observations.

    "8" is state 8, and "4:8" is state 8 at step 4. A file may have its step before it in the same way.
    """
    h, colon, name = text.partition(":")
    if all(part.isdecimal() and len(part) < LONGEST for part in text.split(":")) and text.count(":") <= 1:
        return text
    if colon and h.isdecimal() and len(h) < LONGEST and not check_source("The goal", text).exists():
        return int(h), _observation(name, shape)
    return _observation(text, shape)


def _observation(name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    path = check_source("The goal", name)
    if not path.is_file():
        raise InvalidParameterError(
            f"--goal must be a state such as 8, a state at a step such as 4:8, or a file that shows what is to be "
            f"reached; {name!r} is none of these; check the name."
        )
    x = _array(path) if path.suffix.lower() == ".npy" else _image(path, shape)
    if x.shape != shape:
        raise InvalidDataError(
            f"The goal must be an observation of shape {shape}, as the model was fitted to; {name} has {x.shape}; cut "
            "and scale it as the data was."
        )
    return x


def _array(path: Path) -> NDArray[Any]:
    try:
        x: NDArray[Any] = np.load(path, allow_pickle=False)
    except UNREADABLE as error:
        raise InvalidDataError(
            f"The goal must be an array that NumPy can read; {path} is not ({error}); check the name."
        ) from error
    return x


def _image(path: Path, shape: tuple[int, ...]) -> NDArray[Any]:
    require("PIL", "video")
    from PIL import Image

    try:
        with Image.open(path) as image:
            x = np.asarray(image.convert("L" if shape[-1:] == (1,) else "RGB"))
    except (*UNREADABLE, Image.DecompressionBombError) as error:
        raise InvalidDataError(
            f"The goal must be a picture that can be read, or an NPY file; {path} is neither ({error}); check the name."
        ) from error
    return x[..., None] if x.ndim == 2 else x
