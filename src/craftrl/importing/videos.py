"""Video files, decoded frame by frame with PyAV: one file is one episode, unless boundaries say otherwise.

Frames are counted as they are decoded, never sought by time: that is exact for every codec. Parts of one file that are
asked for in order, as boundaries and clips do, are decoded in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, require
from craftrl.importing.options import Options
from craftrl.importing.source import Agent, Episode, Recording, name_in, stamp

__all__ = ["SUFFIXES", "VideoReader", "video_files"]

SUFFIXES = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv", ".gif")
GREY = "gray"  # pixel formats that begin so have one channel


def video_files(files: Iterable[Path], root: Path, options: Options) -> list[Agent]:
    """One agent, one episode per file."""
    name = root.stem if root.is_file() else root.name
    return [Agent(name, "video", [_episode(file, root) for file in files])]


def _episode(path: Path, root: Path) -> Episode:
    reader = VideoReader(path)
    return Episode(name_in(root, path), stamp(path), reader.read, lambda: len(reader.seconds()), reader.seconds)


class VideoReader:
    """The frames of one file; it stays open between parts that follow one another, until another file is read."""

    busy: ClassVar[VideoReader | None] = None  # the one that has its file open: a folder may hold thousands

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lossy = ""
        self._decoder: Any = iter(())
        self._next: int | None = None  # the number of the next frame to come; None where nothing is open

    def read(self, steps: slice) -> Recording:
        """The frames of a slice, decoded while they are taken."""
        start = steps.start or 0
        if VideoReader.busy is not None and VideoReader.busy is not self:
            VideoReader.busy.close()
        if self._next is None or start < self._next:
            self._decoder, self._next = self._open(), 0
            VideoReader.busy = self
        return Recording(self._frames(start, steps.stop, steps.step or 1), lossy=self.lossy)

    def close(self) -> None:
        if self._next is not None:
            self._decoder.close()
            self._next = VideoReader.busy = None

    def seconds(self) -> NDArray[np.float64]:
        """The time of every frame since the first, from the packets, without decoding them."""
        av = require("av", "video")
        with self._told_plainly(), av.open(str(self.path)) as container:
            stream = container.streams.video[0]
            times = [packet.pts for packet in container.demux(stream) if packet.size and not packet.is_discard]
            unit = float(stream.time_base or 0)
        if None in times:
            raise InvalidDataError(
                f"The frames of {self.path} must carry their time to be cut; some do not; convert the file, for "
                "instance with: ffmpeg -i IN OUT.mp4"
            )
        pts = np.sort(np.array(times, dtype=np.float64))
        return (pts - pts[:1]) * unit

    def _open(self) -> Iterator[Any]:
        """A decoder at the first frame; what the file is compressed with is known from here on."""
        with self._told_plainly():
            container = require("av", "video").open(str(self.path))
            stream = container.streams.video[0]
            self.lossy = _loss(stream.codec_context)
        return self._decoded(container, stream)

    def _decoded(self, container: Any, stream: Any) -> Iterator[Any]:
        last = 0.0
        with self._told_plainly(), container:
            for frame in container.decode(stream):
                if frame.is_corrupt:
                    raise self._damaged("a frame is corrupt")
                last = last if frame.time is None else frame.time
                yield frame
            if _ends_early(container, stream, last):
                raise self._damaged(f"it ends after {last:.1f} of {container.duration / 1e6:.1f} s")

    def _frames(self, start: int, stop: int | None, step: int) -> Iterator[NDArray[np.uint8]]:
        assert self._next is not None
        for _ in islice(self._decoder, start - self._next):  # decoded, not converted
            self._next += 1
        while stop is None or self._next < stop:
            frame = next(self._decoder, None)
            if frame is None:
                self.close()
                return
            self._next += 1
            if (self._next - 1 - start) % step == 0:
                yield _pixels(frame)

    @contextmanager
    def _told_plainly(self) -> Iterator[None]:
        """What FFmpeg or the system says of the file, in one sentence."""
        try:
            yield
        except IndexError as error:
            raise self._damaged("it has no pictures") from error
        except (require("av", "video").FFmpegError, OSError, ValueError, AttributeError, MemoryError) as error:
            raise self._damaged(getattr(error, "strerror", None) or str(error)) from error

    def _damaged(self, reason: str) -> InvalidDataError:
        return InvalidDataError(
            f"{self.path} must be a video that can be decoded to its end; it cannot ({reason}); copy it again, or "
            "leave it out."
        )


def _ends_early(container: Any, stream: Any, last: float) -> bool:
    """Whether the file says that it is longer, as one that was cut off does; with sound, which may run on, never."""
    if not container.duration or not stream.average_rate or len(container.streams) > 1:
        return False
    return last + 2.5 / float(stream.average_rate) < container.duration / 1e6


def _pixels(frame: Any) -> NDArray[np.uint8]:
    if frame.format.name.startswith(GREY):
        return frame.to_ndarray(format="gray")[..., None]
    return frame.to_ndarray(format="rgb24")


def _loss(codec: Any) -> str:
    """How the video was compressed, if that may have changed its pixels."""
    if not codec.codec.lossy:
        return ""
    pixels = codec.format.name if codec.format is not None else "unknown pixels"
    full_colours = pixels.startswith(("gbr", "rgb", "bgr", GREY))
    return f"{codec.name} {pixels}" + (", possibly without loss" if codec.codec.lossless and full_colours else "")
