"""How recordings become episodes: which steps are kept, and which part of the picture."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_choice, check_flag, check_whole, is_whole, quoted
from craftrl.data.files import readable
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.importing.recordings import Cut, Recording

Light = tuple[NDArray[np.float64], NDArray[np.float64]]  # the mean and the contrast of each channel
TOLERANCE = 1e-6  # seconds
PART_BYTES = 16 * 2**20  # of frames that are held before they are passed on


@dataclass
class Reading:
    """What `import_data` says about its options; kept with a dataset, so that new recordings are read alike."""

    stride: int = 1
    crop: Any = None
    resize: Any = None
    grey: bool = False
    keys: Any = ()
    standardise: str | None = None
    light: Any = None  # the mean and the contrast of each channel that recordings are standardised to

    def __post_init__(self) -> None:
        check_whole("stride", self.stride, 1)
        check_flag("grey", self.grey)
        if self.standardise is not None:
            check_choice("standardise", self.standardise, ("recording", "agent"))
        self.keys = [self.keys] if isinstance(self.keys, str) else self.keys
        if not isinstance(self.keys, Sequence) or not all(isinstance(key, str) for key in self.keys):
            raise InvalidParameterError(f"keys must be a name or a list of names; {quoted(self.keys)} was given.")
        self.keys = list(self.keys)
        self.crop = self._pixels("crop", self.crop, "(left, top, width, height)", 4)
        resize = [self.resize] * 2 if is_whole(self.resize) else self.resize
        self.resize = self._pixels("resize", resize, "(width, height), or one number,", 2)

    @staticmethod
    def _pixels(name: str, given: Any, what: str, n: int) -> list[int] | None:
        pixels = list(given) if isinstance(given, Sequence) else []
        whole = len(pixels) == n and all(is_whole(value) and 0 <= value < 2**15 for value in pixels)
        if given is not None and not (whole and min(pixels[-2:]) >= 1):
            raise InvalidParameterError(f"{name} must be {what} in pixels, from 1 to 32767; {quoted(given)} was given.")
        return [int(value) for value in pixels] if given is not None else None

    @property
    def changes_pictures(self) -> bool:
        return self.grey or self.crop is not None or self.resize is not None

    def picture(self, frame: NDArray[Any], name: str) -> NDArray[Any]:
        """A frame cropped, resized and in grey, (rows, columns, channels), as networks expect."""
        if not self.changes_pictures:
            return frame
        if frame.dtype != np.uint8 or not (frame.ndim == 2 or (frame.ndim == 3 and frame.shape[-1] in (1, 3))):
            raise InvalidDataError(
                "What is cropped, resized or made grey must be pictures of 8 bits, (rows, columns) or (rows, columns, "
                f"1 or 3); {name} has {frame.shape} of {frame.dtype}; leave these options out."
            )
        rows, columns = frame.shape[:2]
        left, top, width, height = self.crop or (0, 0, columns, rows)
        if left + width > columns or top + height > rows:
            raise InvalidParameterError(
                f"The crop must lie inside of the picture; {name} has {columns} x {rows} pixels; choose a smaller one."
            )
        frame = frame[top : top + height, left : left + width]
        one_channel = frame.ndim == 2 or frame.shape[-1] == 1
        if self.resize is not None or (self.grey and not one_channel):
            pillow = require("PIL.Image", "video")
            image = pillow.fromarray(np.ascontiguousarray(frame.reshape(height, width) if one_channel else frame))
            image = image.convert("L") if self.grey else image
            frame = np.asarray(image.resize(self.resize, pillow.Resampling.BOX) if self.resize else image)
        return frame if frame.ndim == 3 else frame[..., None]


class Episode(NamedTuple):
    """One episode, cut out of a recording, or a part of a long one.

    source, start  the recording, and the number of the episode's first frame there
    lossy          how it was compressed, if that has changed it
    share          how much of the recording was read when it was complete
    interval       the shortest and the longest time between two frames until then, in seconds, where it is known
    goes_on        whether the next part of the same episode follows
    """

    agent: str
    source: str
    start: int
    x: NDArray[Any]
    actions: NDArray[Any] | None
    lossy: str
    share: float
    interval: tuple[float, float] | None
    goes_on: bool = False


@dataclass(eq=False)
class _Running:
    """An episode that is being read: its first frame there, the frames that are held, and how many were passed on."""

    cut: Cut
    first: int
    held: list[NDArray[Any]] = field(default_factory=list)
    given: int = 0


def cut_up(recording: Recording, reading: Reading, light: Light | None = None) -> Iterator[Episode]:
    """The episodes of a recording, in one pass: frames are decoded once, and only those that are kept are converted.

    Long ones come in parts, so that memory does not grow with them. With its own `light`, it is standardised.
    """
    stride, path = reading.stride, recording.path
    with readable(path, "a recording"):
        content = recording.read()
    frames, actions = content.frames, content.actions
    changed = None if light is None else _towards(light, reading.light)
    if isinstance(frames, np.ndarray):
        beside = None if actions is None else actions[::stride]  # of a million short episodes, none is taken apart
        fits = len(frames) > 0 and (actions is None or len(actions) in (len(frames) - 1, len(frames)))
        plain = not reading.changes_pictures and changed is None
        if fits and plain and recording.cuts == (Cut(recording.agent),):
            yield Episode(recording.agent, recording.source, 0, frames[::stride], beside, content.lossy, 1.0, None)
            return
        frames = ((None, partial(np.asarray, row)) for row in frames)
    waiting = sorted(recording.cuts, key=lambda cut: cut.start, reverse=True)
    running: list[_Running] = []
    n, now, shortest, longest = 0, 0.0, inf, 0.0

    def episode(part: _Running, goes_on: bool = False) -> Episode:
        cut, held = part.cut, part.held
        sizes = sorted({str(frame.shape) for frame in held})
        if len(sizes) != 1:
            found = (
                f"has {' and '.join(sizes)}; crop or resize them" if held else f"has none for {cut.line}; correct it"
            )
            raise InvalidDataError(f"An episode must have frames of one size; {path} {found}.")
        start = part.first + part.given * stride
        aside = None if actions is None else actions[start : start + len(held) * stride : stride]
        share = min(now / content.seconds, 1.0) if content.seconds else 0.0
        x, interval = np.stack(held), (shortest, longest) if longest else None
        part.given += len(held)
        held.clear()
        return Episode(cut.agent, recording.source, part.first, x, aside, content.lossy, share, interval, goes_on)

    in_seconds = recording.cuts[0].in_seconds  # one table of boundaries has one unit
    for i, (seconds, decode) in enumerate(frames):
        if in_seconds and seconds is None:
            raise InvalidDataError(f"Boundaries in seconds are for videos; {path} knows no time; give frames.")
        n, before, now = i + 1, now, seconds or 0.0
        if now > before:
            shortest, longest = min(shortest, now - before), max(longest, now - before)
        at = now if in_seconds else i
        while waiting and waiting[-1].start <= at + TOLERANCE:
            running.append(_Running(waiting.pop(), i))
        for part in list(running):
            if at >= part.cut.stop - TOLERANCE:
                running.remove(part)
                yield episode(part)
            elif (i - part.first) % stride == 0:
                if part.held and len(part.held) * part.held[0].nbytes >= PART_BYTES:
                    yield episode(part, goes_on=True)
                frame = reading.picture(decode(), path)
                part.held.append(frame if changed is None else changed(frame))
        if not waiting and not running:
            return
    if n == 0:
        raise InvalidDataError(f"A recording must hold at least one frame; {path} has none; leave it out.")
    length = now + min(longest, shortest) if in_seconds else n
    for cut in (*waiting, *(part.cut for part in running)):
        if cut.line and cut.stop > length + TOLERANCE:
            raise InvalidDataError(
                f"Boundaries must lie inside of the recording; {path} ends at {length:g}, and {cut.line} asks for "
                f"{cut.start:g} to {cut.stop:g}; correct it."
            )
    if actions is not None and len(actions) not in (n - 1, n):
        raise InvalidDataError(
            f"Between each two steps there must be one action; {path} has {n} steps and {len(actions)} actions; "
            "correct or remove them."
        )
    yield from map(episode, running)


def lights_of(listed: Sequence[Recording], reading: Reading) -> list[Light]:
    """The mean and the contrast (standard deviation) of each channel over the frames of each recording that are kept;
    or over those of all recordings of its agent, where these are standardised together."""
    sums: dict[object, list[Any]] = {}
    keys = [recording.agent if reading.standardise == "agent" else i for i, recording in enumerate(listed)]
    for key, recording in zip(keys, listed):
        own = sums.setdefault(key, [0, 0.0, 0.0])
        for episode in cut_up(recording._replace(cuts=(Cut(recording.agent),)), reading):
            if episode.x.dtype != np.uint8 or episode.x.ndim != 4:
                raise InvalidDataError(
                    f"What is standardised must be pictures of 8 bits, (rows, columns, channels); {recording.path} has "
                    f"{episode.x.shape[1:]} of {episode.x.dtype}; leave standardise out."
                )
            for frame in episode.x:
                x = frame.reshape(-1, frame.shape[-1]).astype(np.float64)
                own[:] = own[0] + len(x), own[1] + x.sum(axis=0), own[2] + (x**2).sum(axis=0)
    found = {
        key: (total / n, np.sqrt(np.maximum(squares / n - (total / n) ** 2, 0.0)))
        for key, (n, total, squares) in sums.items()
    }
    return [found[key] for key in keys]


def _towards(light: Light, wanted: Sequence[Sequence[float]]) -> Callable[[NDArray[Any]], NDArray[np.uint8]]:
    """What gives frames with this mean and contrast the wanted ones.

    Values are rounded after noise of at most one byte, as sound is (triangular dither). A recording whose pixels are
    all rounded in one direction would stay half a byte brighter than another, which gives every frame of it away. A
    frame always becomes the same one.
    """
    mean, contrast = light
    factor = np.divide(wanted[1], contrast, out=np.ones_like(contrast), where=contrast > 0)
    table = (np.arange(256)[:, None] - mean) * factor + wanted[0]

    def changed(frame: NDArray[Any]) -> NDArray[np.uint8]:
        first, second = np.random.default_rng(zlib.crc32(frame.tobytes())).random((2, *frame.shape))
        exact = table[frame, np.arange(len(mean))]
        return np.asarray(np.rint(exact + first - second).clip(0, 255).astype(np.uint8))

    return changed
