"""A video of trajectories with the learned state, and the pixels that decide on it, drawn into it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_method, check_target, check_whole, quoted
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import check_new, written_whole
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.estimators.base import Learner
from craftrl.figures import heat_of, heated

Bytes = NDArray[np.uint8]
MAX_FRAMES = 1000  # a second
SIDE = 256  # pixels that the longer side of a frame has at least, once it is drawn
LINE = 30  # pixels of the line of text below
AT_ONCE = 64  # frames that are encoded and explained together
# Tableau's ten colours: states that follow one another differ at a glance.
COLOURS = ("#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac")


def render(
    model: Learner,
    tau: TrajectoryDataset,
    path: str | os.PathLike[str],
    trajectories: Sequence[int],
    fps: int = 4,
    *,
    overwrite: bool = False,
) -> None:
    """Write trajectories, one after the other, to a video: what is seen on the left, what decides on the right.

    The line below names the state, the agent, and the file and frame; its colour is the state's. Models without
    networks have no picture of what decides. Where only some of the encoders are networks, as where all trajectories
    have one state at h = 1, the picture of the others is dark.
    A file that is there already is replaced with `overwrite` alone.
    """
    check_video(path, overwrite)
    check_method("model", model, "encode", "a fitted model")
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    check_whole("fps", fps, 1, MAX_FRAMES)
    chosen = as_labels("trajectories", trajectories, 1)
    given = np.asarray(trajectories)  # flags would be taken for 0 and 1
    if given.dtype == bool or not len(chosen) or chosen.min() < 0 or chosen.max() >= tau.n:
        raise InvalidParameterError(
            f"Trajectories must be numbers from 0 to {tau.n - 1}, one at least; {quoted(given.tolist())} was given."
        )
    check_images(tau.obs_shape)
    write_video(path, rendered(model, tau, trajectories), fps)


def check_video(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Whether a video may be written there; asked before the work is done."""
    check_new(path, "video", overwrite, (".mp4", ".mkv", ".gif"))
    require("av", "video")
    require("PIL", "video")


def check_images(shape: tuple[int, ...], advice: str = "write their states with craftrl encode") -> None:
    """Observations of this shape must be pictures."""
    if len(shape) != 3 or shape[-1] not in (1, 3):
        raise InvalidDataError(
            f"A video needs images of shape (rows, columns, 1 or 3); observations have shape {shape}; {advice}."
        )


def rendered(model: Learner, tau: TrajectoryDataset, trajectories: Sequence[int]) -> Iterator[Bytes]:
    """The frames of that video, (rows, columns, 3)."""
    shared = hasattr(model, "encoder_")
    steps = [(i, h) for i in trajectories for h in range(1, int(tau.lengths[i]) + 1)]
    explained = any(hasattr(model.encoder_at(h), "head") for h in {h for _, h in steps})
    for some in (steps[start : start + AT_ONCE] for start in range(0, len(steps), AT_ONCE)):
        i, step = np.array(some).T
        x = tau.pick(i, step - 1)
        state, heat = np.zeros(len(x), dtype=int), np.zeros(x.shape[:3])
        for h in [None] if shared else np.unique(step).tolist():
            own = slice(None) if h is None else step == h
            state[own] = model.encode(x[own], h)
            found = heat_of(model.encoder_at(h), x[own]) if explained else None
            heat[own] = 0 if found is None else found
        for k, (i, h) in enumerate(some):
            where = f"trajectory {i}, h = {h}"
            if tau.source is not None and tau.start is not None and "reading" in tau.notes:
                where = f"{tau.source[i]}, frame {tau.start[i] + (h - 1) * tau.notes['reading']['stride']}"
            panels = [in_colour(x[k])]
            panels += [heated(panels[0], heat[k], power=0.5)] * explained
            name = tau.names[tau.agent[i]]
            text = f"state {state[k]}   {name if isinstance(name, str) else f'agent {name}'}, {where}"
            line = [(text, COLOURS[state[k] % len(COLOURS)])]
            yield on_paper([enlarged(panel, SIDE) for panel in panels], line, "black")


def in_colour(x: NDArray[Any]) -> Bytes:
    """An image as bytes of three channels: floats are stretched to the whole range of each image."""
    if x.dtype != np.uint8:
        low, high = float(x.min()), float(x.max())
        x = np.asarray(255 * (x - low) / max(high - low, 1e-12)).astype(np.uint8)
    return np.repeat(x, 3, axis=2) if x.shape[2] == 1 else x


def enlarged(image: Bytes, side: int) -> Bytes:
    """The image with every pixel a square, so that its longer side has at least `side` pixels."""
    scale = max(1, -(-side // max(image.shape[:2])))
    return image.repeat(scale, axis=0).repeat(scale, axis=1)


def on_paper(panels: Sequence[Bytes], line: Sequence[tuple[str, str]], paper: str) -> Bytes:
    """Panels side by side, and below a line of text in parts of one colour each; codecs want even sides."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = max(panel.shape[0] for panel in panels) + LINE, sum(panel.shape[1] for panel in panels)
    picture = Image.new("RGB", (width + width % 2, height + height % 2), paper)
    left, x = 0, 8.0
    for panel in panels:
        picture.paste(Image.fromarray(panel), (left, 0))
        left += panel.shape[1]
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size=15)
    for text, colour in line:
        draw.text((x, height - LINE + 6), text, fill=colour, font=font)
        x += draw.textlength(text, font=font) + 14
    return np.asarray(picture)


def write_video(path: str | os.PathLike[str], frames: Iterable[Bytes], fps: int) -> None:
    """Frames (rows, columns, 3) of one size, one at least, to a file whose name says the format."""
    import av
    from PIL import Image

    coming = iter(frames)
    first = next(coming)
    suffix = check_target("The video", path).suffix.lower()
    with written_whole(path, "video") as temporary:
        if suffix == ".gif":
            reduced = (Image.fromarray(x).quantize(dither=Image.Dither.NONE) for x in chain([first], coming))
            next(reduced).save(temporary, "GIF", save_all=True, append_images=reduced, duration=1000 / fps, loop=0)
            return
        with av.open(str(temporary), "w", format={".mkv": "matroska"}.get(suffix, suffix[1:])) as container:
            stream: Any = container.add_stream("libx264", rate=Fraction(fps))
            stream.height, stream.width, stream.pix_fmt = *first.shape[:2], "yuv420p"
            for image in chain([first], coming):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            container.mux(stream.encode())
