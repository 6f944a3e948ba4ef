"""A video of trajectories with the learned state, and the pixels that decide on it, drawn into it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind, check_method, check_whole, shown
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import check_new
from craftrl.data.labels import as_labels
from craftrl.deploy.canvas import MOST_FRAMES, Bytes, check_images, check_video, enlarged, even, in_colour, write_video
from craftrl.errors import InvalidParameterError
from craftrl.estimators.base import Learner

__all__ = ["check_video", "render", "rendered"]

SIDE = 256  # pixels that the longer side of a frame has at least, once it is drawn
LINE = 28  # pixels of the line of text below
FAINT = 0.1  # heat below this share of the largest is not drawn
WARM = np.array([255, 120, 0])  # what decides
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
    check_video(path)
    check_new(path, "video", overwrite)
    check_method("model", model, "encode", "a fitted model")
    check_kind("tau", tau, TrajectoryDataset, "a TrajectoryDataset")
    check_whole("fps", fps, 1, MOST_FRAMES)
    check_trajectories(trajectories, tau.n)
    check_images(tau.obs_shape)
    write_video(path, rendered(model, tau, trajectories), fps)


def rendered(model: Learner, tau: TrajectoryDataset, trajectories: Sequence[int]) -> Iterator[Bytes]:
    """The frames of that video, (rows, columns, 3)."""
    check_images(tau.obs_shape)
    explained = any(_is_network(model, h) for i in trajectories for h in range(1, int(tau.lengths[i]) + 1))
    for i in trajectories:
        for h in range(1, int(tau.lengths[i]) + 1):
            x = tau.at(h, [i])
            state = int(model.encode(x, h)[0])
            where = f"trajectory {i}, h = {h}"
            if tau.source is not None and tau.start is not None and "reading" in tau.notes:
                where = f"{tau.source[i]}, frame {tau.start[i] + (h - 1) * tau.notes['reading']['stride']}"
            text = f"state {state}   {tau.names[tau.agent[i]]}, {where}"
            heat = _heat(model, x, h) if explained else None
            yield _drawn(x[0], heat, text, COLOURS[state % len(COLOURS)])


def check_trajectories(trajectories: Sequence[int], n: int) -> None:
    """One number of a trajectory or more, each from 0 to n - 1."""
    chosen = as_labels("trajectories", trajectories, 1)
    flags = np.asarray(trajectories).dtype == bool  # they would be taken for 0 and 1
    if flags or not len(chosen) or chosen.min() < 0 or chosen.max() >= n:
        raise InvalidParameterError(
            f"A trajectory must be one of 0..{n - 1}, and one is needed; {shown(trajectories)} was given."
        )


def _is_network(model: Learner, h: int) -> bool:
    return hasattr(model._encoder_at(h), "head")


def _heat(model: Learner, x: NDArray[Any], h: int) -> NDArray[np.float64]:
    """Which pixels decide, (rows, columns), the largest being 1; none where the encoder is no network."""
    if not _is_network(model, h):
        return np.zeros(x.shape[1:3])
    from craftrl.oracles.network.saliency import deciding

    return deciding(model._encoder_at(h), x)[0]  # type: ignore[arg-type]


def _drawn(x: NDArray[Any], heat: NDArray[np.float64] | None, text: str, colour: str) -> Bytes:
    from PIL import Image, ImageDraw, ImageFont

    image = in_colour(x)
    panels = [image] if heat is None else [image, _over(image, heat)]
    large = np.concatenate([enlarged(panel, SIDE) for panel in panels], axis=1)
    picture = Image.fromarray(even(np.pad(large, ((0, LINE), (0, 0), (0, 0)))))
    font = ImageFont.load_default(size=15)
    ImageDraw.Draw(picture).text((6, large.shape[0] + 5), text, fill=colour, font=font)
    return np.asarray(picture)


def _over(image: Bytes, heat: NDArray[np.float64]) -> Bytes:
    """The image, dimmed, with what decides in a warm colour."""
    weight = np.where(heat > FAINT, np.sqrt(heat), 0.0)[..., None]
    return np.asarray((1 - weight) * (image / 3) + weight * WARM).astype(np.uint8)
