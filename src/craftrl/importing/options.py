"""How recordings are read: which steps, which part of the picture, which of several arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from craftrl.arguments import check_flag, check_source, check_whole, is_whole, shown
from craftrl.errors import InvalidParameterError

__all__ = ["Options"]

MOST_PIXELS = 2**15  # on a side of a picture


@dataclass(frozen=True)
class Options:
    """What `import_data` was asked to do with what it reads.

    stride      every so many steps, one is kept
    crop        (left, top, width, height) in pixels; the rest of the picture is cut away, before anything else
    resize      (width, height) in pixels, by averaging over areas
    grey        pictures in one channel
    keys        which array, camera or columns are the observations, where the source has several
    boundaries  a table that says where episodes begin and end
    clip        cut every episode into pieces of this many steps, counted after `stride`
    """

    stride: int = 1
    crop: tuple[int, int, int, int] | None = None
    resize: tuple[int, int] | None = None
    grey: bool = False
    keys: tuple[str, ...] = ()
    boundaries: Path | None = None
    clip: int | None = None

    def __post_init__(self) -> None:
        check_whole("stride", self.stride, 1)
        check_flag("grey", self.grey)
        if self.clip is not None:
            check_whole("clip", self.clip, 2, advice="CRAFT compares neighbouring steps")
        if self.crop is not None and not (_are_pixels(self.crop, 4) and min(self.crop[2:]) >= 1):
            raise InvalidParameterError(
                f"crop must be (left, top, width, height) in pixels, the last two positive; {shown(self.crop)} was "
                "given."
            )
        if self.resize is not None and not (_are_pixels(self.resize, 2) and min(self.resize) >= 1):
            raise InvalidParameterError(
                f"resize must be (width, height), both from 1 to {MOST_PIXELS}; {shown(self.resize)} was given."
            )
        if not all(isinstance(key, str) for key in self.keys):
            raise InvalidParameterError(f"keys must be names; {shown(self.keys)} was given.")

    @classmethod
    def of(
        cls,
        *,
        crop: Sequence[int] | None = None,
        resize: Sequence[int] | int | None = None,
        keys: Sequence[str] | str = (),
        boundaries: str | os.PathLike[str] | None = None,
        **more: Any,
    ) -> Options:
        """The same from looser types: one number for a square, one name, a path as text."""
        return cls(
            crop=None if crop is None else _as_tuple("crop", crop),
            resize=(resize, resize) if is_whole(resize) else None if resize is None else _as_tuple("resize", resize),
            keys=(keys,) if isinstance(keys, str) else _as_tuple("keys", keys),
            boundaries=None if boundaries is None else check_source("boundaries", boundaries),
            **more,
        )

    @property
    def changes_pictures(self) -> bool:
        return self.grey or self.crop is not None or self.resize is not None

    def __str__(self) -> str:
        """What was asked for about the reading of an episode; where it begins and ends is in the episode's name."""
        given = {name: getattr(self, name) for name in ("stride", "crop", "resize", "grey", "keys")}
        return " ".join(f"{name}={value}" for name, value in given.items() if value not in (1, None, False, ()))


def _as_tuple(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        what = {"crop": "(left, top, width, height)", "resize": "(width, height), or one number,"}.get(name)
        raise InvalidParameterError(
            f"{name} must be {f'{what} in pixels' if what else 'a list of names'}; {shown(values)} was given."
        )
    return tuple(values)


def _are_pixels(values: tuple[Any, ...], n: int) -> bool:
    return len(values) == n and all(is_whole(value) and 0 <= value <= MOST_PIXELS for value in values)
