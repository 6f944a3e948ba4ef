"""What every format gives: recordings, each read when its turn comes. Here: videos and folders of frames."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.data.files import readable
from craftrl.errors import require

VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv", ".gif")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
# What FFmpeg may take a file for: a text that calls itself a video could name other files, which would be read.
CONTAINERS = "mov,mp4,matroska,webm,avi,asf,mpeg,mpegts,mpegvideo,m4v,h264,hevc,flv,ogg,nut,ivf"
GREY = "gray"  # pixel formats that begin so have one channel
VIDEO = "a video that can be decoded to its end"

Frame = tuple[float | None, Callable[[], NDArray[Any]]]  # its time in seconds, where it is known, and what decodes it


class Content(NamedTuple):
    """What a recording holds.

    frames   an array (steps, ...), or frames one by one
    actions  (steps or steps - 1, ...), where there are any
    lossy    how the frames were compressed, if that has changed them
    seconds  how long it says that it is
    """

    frames: NDArray[Any] | Iterator[Frame]
    actions: NDArray[Any] | None = None
    lossy: str = ""
    seconds: float = 0.0


class Cut(NamedTuple):
    """A part of a recording, in frames or in seconds; `line` is where a table of boundaries asks for it."""

    agent: str
    start: float = 0.0
    stop: float = inf
    in_seconds: bool = False
    line: str = ""


class Recording(NamedTuple):
    """One recording, not read yet.

    agent   whose it is; empty where only the path says that
    source  its name within the path that was given; the same on every run
    stamp   changes when the file behind it does
    path    what it is called in messages
    cuts    the parts that become episodes
    columns the features of a table by name, in their order
    """

    agent: str
    source: str
    stamp: str
    format: str
    read: Callable[[], Content]
    path: str = ""
    cuts: tuple[Cut, ...] = ()
    columns: tuple[str, ...] = ()


def stamp(path: Path) -> str:
    """A file's name, size and time of change."""
    return f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Files as people count them: frame9 before frame10."""
    parts = re.compile(r"(\d+)").split
    return sorted(paths, key=lambda path: [(int(s), "") if s.isdecimal() else (-1, s) for s in parts(str(path))])


def name_in(root: Path, path: Path) -> str:
    """A path as seen from the one that was given, which is called by its own name."""
    return path.name if path == root else path.relative_to(root).as_posix()


def videos(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each file is a recording."""
    return [Recording("", name_in(root, file), stamp(file), "video", partial(video, file)) for file in files]


def video(path: Path, start: float = 0.0) -> Content:
    """The frames of a file from this second on, from which times count."""
    if path.suffix.lower() == ".gif":  # of GIFs that do not say how long frames are shown, FFmpeg gives the first alone
        return Content(_gif_frames(path))
    av = require("av", "video")
    with readable(path, VIDEO):
        container = av.open(str(path), metadata_errors="replace", options={"format_whitelist": CONTAINERS})
        if not container.streams.video:
            raise ValueError("it has no pictures")
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        rate, length = float(stream.average_rate or 0), (container.duration or 0) / 1e6
        codec, pixels = stream.codec_context, stream.codec_context.format
        lossy = f"{codec.name} {pixels.name if pixels else ''}".strip() if codec.codec.lossy else ""
        if lossy and codec.codec.lossless and pixels and pixels.name.startswith(("gbr", "rgb", "bgr", GREY)):
            lossy += ", possibly without loss"
        if start:
            container.seek(int(start / stream.time_base), stream=stream)

    def frames() -> Iterator[Frame]:
        first, last, longest = None, 0.0, 2.5 / rate if rate else 0.0
        with readable(path, VIDEO), container:
            for frame in container.decode(stream):
                if frame.is_corrupt:
                    raise ValueError("a frame is corrupt")
                time = frame.time
                if time is not None and rate and time < start - 0.5 / rate:
                    continue
                if time is not None:
                    first, last, longest = time if first is None else first, time, max(longest, time - last)
                yield None if time is None or first is None else time - first, partial(_pixels, frame, path)
            if rate and last + longest < length and len(container.streams) == 1:  # sound may run on
                raise ValueError(f"it ends after {last:.1f} of {length:.1f} s")

    return Content(frames(), lossy=lossy, seconds=length)


def _pixels(frame: Any, path: Path) -> NDArray[np.uint8]:
    with readable(path, VIDEO):
        grey = frame.format.name.startswith(GREY)
        return frame.to_ndarray(format="gray")[..., None] if grey else frame.to_ndarray(format="rgb24")


def _gif_frames(path: Path) -> Iterator[Frame]:
    pillow, sequence, seconds = require("PIL.Image", "video"), require("PIL.ImageSequence", "video"), 0.0
    with readable(path, VIDEO), path.open("rb") as file, pillow.open(file) as image:
        for frame in sequence.Iterator(image):
            yield seconds, partial(np.asarray, frame.convert("RGB"))
            seconds += frame.info.get("duration", 0) / 1000
        file.seek(-1, os.SEEK_CUR)
        if file.read(1) != b";":
            raise ValueError("it is cut off")


def frame_folders(files: Iterable[Path], root: Path, keys: tuple[str, ...]) -> list[Recording]:
    """Each folder that holds pictures is a recording."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)

    def read(own: list[Path]) -> Content:
        lossy = any(file.suffix.lower() in (".jpg", ".jpeg", ".webp") for file in own)
        return Content(((None, partial(picture, file, file)) for file in own), lossy="JPEG or WebP" if lossy else "")

    return [
        Recording("", name, f"{name} {len(own)} {stamp(own[0])} {stamp(own[-1])}", "frames", partial(read, own))
        for name, own in ((name_in(root, folder), folders[folder]) for folder in in_order(folders))
    ]


def picture(file: Any, name: object) -> NDArray[np.uint8]:
    """An image file, or the bytes of one that is open, as (rows, columns, 1 or 3)."""
    pillow = require("PIL.Image", "video")
    with readable(name, "a picture of 8 bits"), pillow.open(file) as image:
        if image.mode.startswith(("I", "F")):
            raise ValueError(f"its pixels have more than 8 bits, mode {image.mode}")
        array = np.asarray(image.convert("L" if image.mode in ("1", "L", "LA") else "RGB"))
    return array if array.ndim == 3 else array[..., None]
