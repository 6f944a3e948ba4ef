"""What every video needs: pixels as bytes, frames made large, a file that is whole or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_target, check_whole
from craftrl.data.files import written_whole
from craftrl.errors import InvalidDataError, InvalidParameterError, require

__all__ = ["MOST_FRAMES", "Bytes", "check_images", "check_video", "enlarged", "even", "in_colour", "write_video"]

Bytes = NDArray[np.uint8]
SUFFIXES = (".mp4", ".mkv", ".gif")
MOST_FRAMES = 1000  # a second
COLOURS = 256  # of a GIF, at most
AHEAD, SAMPLE = 120, 24  # its colours are chosen from so many of the first frames, which are kept until then


def check_video(path: str | os.PathLike[str]) -> None:
    """Whether a file of this name can be written; asked before the work is done."""
    if check_target("The video", path).suffix.lower() not in SUFFIXES:
        raise InvalidParameterError(
            f"A video must be named {', '.join(SUFFIXES)}; {os.fspath(path)} was given; choose another name."
        )
    require("av", "video")
    require("PIL", "video")


def check_images(shape: tuple[int, ...], advice: str = "write their states with craftrl encode") -> None:
    """Observations of this shape must be pictures."""
    if len(shape) != 3 or shape[-1] not in (1, 3):
        raise InvalidDataError(
            f"A video needs images of shape (rows, columns, 1 or 3); observations have shape {shape}; {advice}."
        )


def in_colour(x: NDArray[Any]) -> Bytes:
    """An image as bytes of three channels: floats are stretched to the whole range of each image."""
    if x.dtype != np.uint8:
        low, high = float(x.min()), float(x.max())
        x = np.asarray(255 * (x - low) / max(high - low, 1e-12)).astype(np.uint8)
    return np.repeat(x, 3, axis=2) if x.shape[2] == 1 else x


def enlarged(image: Bytes, side: int) -> Bytes:
    """The image with every pixel a square, so that its longer side has at least `side` pixels."""
    scale = max(1, -(-side // max(image.shape[:2])))
    return np.kron(image, np.ones((scale, scale, 1), np.uint8))


def even(image: Bytes) -> Bytes:
    """The image with a black line more where a side is odd: codecs want even sides."""
    rows, columns = image.shape[:2]
    return np.pad(image, ((0, rows % 2), (0, columns % 2), (0, 0)))


def write_video(path: str | os.PathLike[str], frames: Iterable[Bytes], fps: int, colours: Sequence[str] = ()) -> None:
    """Frames (rows, columns, 3) of one size, one at least, to a file whose name says the format.

    Frames are taken one after the other and not kept. A GIF has few colours: those of `colours`, such as "#0072B2", are
    kept, and the rest are chosen from the first frames.
    """
    check_video(path)
    check_whole("fps", fps, 1, MOST_FRAMES)
    coming = iter(frames)
    first = next(coming)
    with written_whole(path, "video") as temporary:
        _write(temporary, check_target("The video", path).suffix.lower(), first, chain([first], coming), fps, colours)


def _write(path: Path, suffix: str, first: Bytes, frames: Iterator[Bytes], fps: int, colours: Sequence[str]) -> None:
    import av

    with av.open(str(path), "w", format={".mkv": "matroska"}.get(suffix, suffix[1:])) as container:
        stream: Any = container.add_stream("gif" if suffix == ".gif" else "libx264", rate=Fraction(fps))
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = "pal8" if suffix == ".gif" else "yuv420p"
        for image in _with_palette(frames, colours) if suffix == ".gif" else _plain(frames):
            container.mux(stream.encode(image))
        container.mux(stream.encode())


def _plain(frames: Iterator[Bytes]) -> Iterator[Any]:
    import av

    for image in frames:
        yield av.VideoFrame.from_ndarray(image, format="rgb24")


def _with_palette(frames: Iterator[Bytes], kept: Sequence[str]) -> Iterator[Any]:
    """The frames in 256 colours, the same for all: those that are kept, and what the first frames need most."""
    import av
    from PIL import Image, ImageColor

    first = list(islice(frames, AHEAD))
    different = list({id(image): image for image in first}.values())
    sample = np.concatenate(different[:: -(-len(different) // SAMPLE)])
    chosen = Image.fromarray(sample).quantize(COLOURS - len(kept)).getpalette() or []
    rgb = [*(part for colour in kept for part in ImageColor.getrgb(colour)[:3]), *chosen]
    palette = Image.new("P", (1, 1))
    palette.putpalette(rgb)
    colours = np.full((COLOURS, 4), 255, np.uint8)  # how opaque, then red, green and blue
    colours[: len(rgb) // 3, 1:] = np.array(rgb).reshape(-1, 3)
    for image in chain(first, frames):
        numbers = Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE)
        both: Any = (np.asarray(numbers), colours)
        yield av.VideoFrame.from_ndarray(both, format="pal8")
