"""What every format gives: agents, each with episodes that can be read one at a time.

A format is a function that takes a path and returns agents. Nothing is read before an episode is asked for its
observations, so that naming the episodes of a large folder is quick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from craftrl.arguments import check_flag, check_function, check_kind, shown
from craftrl.errors import InvalidDataError

__all__ = ["Agent", "Episode", "Recording", "exactly", "in_order", "name_in", "recorded", "stamp"]


@dataclass(frozen=True)
class Recording:
    """What an episode holds, or a part of one.

    observations  one after the other, all of one shape: an array (steps, ...) or an iterator, for what is decoded
                  frame by frame
    actions       (steps or steps - 1, ...), where the source has them; they are kept aside
    lossy         how the observations were compressed, where that has changed them; else empty
    """

    observations: Iterable[NDArray[Any]]
    actions: NDArray[Any] | None = None
    lossy: str = ""

    def __post_init__(self) -> None:
        x = self.observations
        if not isinstance(x, Iterable) or isinstance(x, (str, bytes)) or getattr(x, "shape", None) == ():
            raise InvalidDataError(
                f"observations must be an array (steps, ...) or an iterator over steps; {shown(x)} was given."
            )
        check_kind("lossy", self.lossy, str, "a text")


@dataclass(frozen=True)
class Episode:
    """One episode of one agent, not read yet.

    name     tells it from the agent's other episodes; the same on every run
    stamp    changes when the file behind it does
    read     the steps of a slice; `slice(None)` is all of them
    count    how many steps there are; asked only where an episode is cut
    seconds  the time of every step, where the source knows it
    origin   the path that was given; with the name it says for good which episode this is
    """

    name: str
    stamp: str
    read: Callable[[slice], Recording]
    count: Callable[[], int]
    seconds: Callable[[], NDArray[Any]] | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "stamp", "origin"):
            check_kind(name, getattr(self, name), str, "a text")
        check_function("read", self.read, "a function that gives the Recording of a slice of steps")
        check_function("count", self.count, "a function that gives the number of steps")
        if self.seconds is not None:
            check_function("seconds", self.seconds, "a function that gives the time of every step, or None")

    @property
    def key(self) -> str:
        """Which episode this is, for logs and for errors."""
        return f"{self.origin}/{self.name}"


@dataclass(frozen=True)
class Agent:
    """One agent's episodes, and the format that they were found in.

    `named_inside` tells that the name stands in the data. Equal names then mean the same agent, in all paths given;
    names of files and folders do not.
    """

    name: str
    format: str
    episodes: list[Episode] = field(repr=False)
    named_inside: bool = False

    def __post_init__(self) -> None:
        check_kind("name", self.name, str, "a text")
        check_kind("format", self.format, str, "a text")
        check_kind("episodes", self.episodes, list, "a list of Episode")
        for episode in self.episodes:
            check_kind("Each of episodes", episode, Episode, "an Episode")
        check_flag("named_inside", self.named_inside)


def recorded(episode: Episode, steps: slice) -> Recording:
    """These steps of an episode, by a function that may be the caller's own."""
    found = episode.read(steps)
    check_kind(f"What read gives of {episode.key}", found, Recording, "a Recording")
    return found


def exactly(n: int, observations: Iterable[NDArray[Any]], name: str) -> Iterator[NDArray[Any]]:
    """The observations, if as many come as must."""
    found = 0
    for x in observations:
        found += 1
        yield x
    if found != n:
        raise InvalidDataError(
            f"{name} must have {n} steps; {found} could be read; copy the file again, or leave the episode out."
        )


def stamp(path: Path) -> str:
    """A file's size and time of change."""
    status = path.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


def name_in(root: Path, file: Path) -> str:
    """A file's name as seen from the folder that was given, or its own where it was given itself."""
    return file.name if file == root else file.relative_to(root).as_posix()


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Files as people count them: frame9 before frame10."""
    return sorted(paths, key=lambda path: [(int(s), "") if s.isdigit() else (-1, s) for s in _parts(path)])


def _parts(path: Path) -> list[str]:
    return [part for part in re.split(r"(\d+)", str(path)) if part]
