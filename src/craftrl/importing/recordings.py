"""What every format gives: recordings that are read one at a time. Here, videos and folders of frames.

Nothing is decoded before a recording is read, so that naming the files of a large folder is quick. Frames are counted
as they are decoded: what a file says about its length may be wrong.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require

__all__ = [
    "PICTURES",
    "VIDEOS",
    "Content",
    "Frame",
    "Recording",
    "frame_folders",
    "in_order",
    "name_in",
    "picture",
    "stamp",
    "video",
    "videos",
]

VIDEOS = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv", ".gif")
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
# What FFmpeg may take a file for: a text that calls itself a video could name other files, which it would read.
CONTAINERS = "mov,mp4,matroska,webm,avi,asf,mpeg,mpegts,mpegvideo,m4v,h264,hevc,flv,ogg,nut,ivf"
GREY = "gray"  # pixel formats that begin so have one channel
UNDECODABLE = (OSError, ValueError, SyntaxError, EOFError, IndexError, struct.error)  # what Pillow raises

Frame = tuple[float | None, Callable[[], NDArray[Any]]]


class Content(NamedTuple):
    """What a recording holds.

    frames   an array (steps, ...), or frames one by one: the time in seconds, where it is known, and what decodes it
    actions  (steps or steps - 1, ...), where the source has them
    lossy    how the frames were compressed, where that has changed them
    seconds  how long it says that it is
    """

    frames: NDArray[Any] | Iterator[Frame]
    actions: NDArray[Any] | None = None
    lossy: str = ""
    seconds: float = 0.0


class Recording(NamedTuple):
    """One recording of one agent, not read yet.

    agent   whose it is, as the data says; None: as the path says
    source  its name within the path that was given; the same on every run
    stamp   changes when the file behind it does
    """

    agent: str | None
    source: str
    stamp: str
    format: str
    read: Callable[[], Content]


def stamp(path: Path) -> str:
    """A file's name, size and time of change."""
    status = path.stat()
    return f"{path.name} {status.st_size} {status.st_mtime_ns}"


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Files as people count them: frame9 before frame10."""
    return sorted(paths, key=lambda path: [(int(s), "") if s.isdigit() else (-1, s) for s in re.split(r"(\d+)", str(path))])


def name_in(root: Path, file: Path) -> str:
    """A file's name as seen from the path that was given, or its own where it was given itself."""
    return file.name if file == root else file.relative_to(root).as_posix()


def videos(files: Iterable[Path], root: Path) -> list[Recording]:
    """Each file is a recording."""
    return [Recording(None, name_in(root, file), stamp(file), "video", partial(video, file)) for file in files]


def video(path: Path, start: float = 0.0) -> Content:
    """The frames of a file from this second on; times count from there."""
    if path.suffix.lower() == ".gif":  # FFmpeg loses frames of GIFs that do not say how long each is shown
        return _gif(path)
    av = require("av", "video")
    broken = (av.FFmpegError, OSError, ValueError, AttributeError, MemoryError)
    try:
        container = av.open(str(path), metadata_errors="replace", options={"format_whitelist": CONTAINERS})
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        rate, length = float(stream.average_rate or 0), (container.duration or 0) / 1e6
        alone = len(container.streams) == 1  # sound may run on after the pictures
        codec = stream.codec_context
        lossy = ""
        if codec.codec.lossy:
            pixels = codec.format.name if codec.format is not None else "unknown pixels"
            colours = pixels.startswith(("gbr", "rgb", "bgr", GREY))
            lossy = f"{codec.name} {pixels}" + (", possibly without loss" if codec.codec.lossless and colours else "")
        if start:
            container.seek(int(start / stream.time_base), stream=stream)
    except IndexError:
        raise _undecodable(path, "it has no pictures") from None
    except broken as error:
        raise _undecodable(path, error) from error

    def frames() -> Iterator[Frame]:
        first, last, longest = None, 0.0, 2.5 / rate if rate else 0.0
        try:
            with container:
                for frame in container.decode(stream):
                    if frame.is_corrupt:
                        raise _undecodable(path, "a frame is corrupt")
                    if start and frame.time is not None and rate and frame.time < start - 0.5 / rate:
                        continue
                    first = frame.time if first is None else first
                    seconds = None if frame.time is None or first is None else frame.time - first
                    longest = max(longest, (frame.time or 0.0) - last)
                    last = frame.time or last
                    yield seconds, partial(_pixels, frame, path)
        except InvalidDataError:
            raise
        except broken as error:
            raise _undecodable(path, error) from error
        if rate and alone and last + longest < length:
            raise _undecodable(path, f"it ends after {last:.1f} of {length:.1f} s")

    return Content(frames(), lossy=lossy, seconds=length)


def _pixels(frame: Any, path: Path) -> NDArray[np.uint8]:
    try:
        if frame.format.name.startswith(GREY):
            return frame.to_ndarray(format="gray")[..., None]
        return frame.to_ndarray(format="rgb24")
    except (OSError, ValueError, MemoryError) as error:
        raise _undecodable(path, error) from error


def _gif(path: Path) -> Content:
    pillow, sequence = require("PIL.Image", "video"), require("PIL.ImageSequence", "video")

    def frames() -> Iterator[Frame]:
        seconds = 0.0
        try:
            with path.open("rb") as file, pillow.open(file) as image:
                for frame in sequence.Iterator(image):
                    yield seconds, lambda frame=frame: np.asarray(frame.convert("RGB"))
                    seconds += frame.info.get("duration", 0) / 1000
                file.seek(-1, os.SEEK_CUR)
                if file.read(1) != b";":
                    raise ValueError("it is cut off")
        except UNDECODABLE as error:
            raise _undecodable(path, error) from error

    return Content(frames())


def _undecodable(path: Path, reason: object) -> InvalidDataError:
    text = getattr(reason, "strerror", None) or str(reason)
    return InvalidDataError(
        f"{path} must be a video that can be decoded to its end; it cannot ({text}); copy it again, or leave it out."
    )


def frame_folders(files: Iterable[Path], root: Path) -> list[Recording]:
    """Each folder that holds pictures is a recording."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)
    found = []
    for folder in in_order(folders):
        mine = in_order(folders[folder])
        name = root.name if folder == root else folder.relative_to(root).as_posix()
        version = f"{name} {len(mine)} files, {stamp(mine[0])}, {stamp(mine[-1])}"
        found.append(Recording(None, name, version, "frames", partial(_folder, mine)))
    return found


def _folder(files: list[Path]) -> Content:
    lossy = any(file.suffix.lower() in (".jpg", ".jpeg", ".webp") for file in files)
    return Content(((None, partial(picture, file, file)) for file in files), lossy="JPEG or WebP" if lossy else "")


def picture(file: Any, name: object) -> NDArray[np.uint8]:
    """An image file, or the bytes of one that is open, as (rows, columns, 1 or 3)."""
    try:
        with require("PIL.Image", "video").open(file) as image:
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"its pixels have more than 8 bits, mode {image.mode}")
            array = np.asarray(image.convert("L" if image.mode in ("1", "L", "LA") else "RGB"))
    except UNDECODABLE as error:
        raise InvalidDataError(
            f"{name} must be a picture of 8 bits; it cannot be decoded ({error}); write or copy it again."
        ) from error
    return array if array.ndim == 3 else array[..., None]
