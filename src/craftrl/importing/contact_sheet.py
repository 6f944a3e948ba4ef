"""A contact sheet: a few episodes of every agent as rows of frames, and where frames change.

The last two tiles of an agent say more than frames do. "varies at h = 1" is bright where the first frames of its
episodes differ: with one start, the agent's figure leaves a dark place there. "changes at h = 2" is bright where the
second frame differs from the first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import written_whole
from craftrl.errors import require

__all__ = ["draw_contact_sheet", "write_contact_sheet"]

EPISODES, STEPS = 4, 8  # rows and columns of frames for every agent
SPREAD_ROWS = 256  # episodes behind the two tiles of change
SMALL, LARGE = 96, 192  # the longer side of a tile lies between them, in pixels
GAP, LEFT, TOP = 6, 96, 22
LABEL = 100  # pixels that the longest title takes
PAPER, INK = (250, 250, 250), (40, 40, 40)


def write_contact_sheet(tau: TrajectoryDataset, names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Draw the sheet into a PNG file, whole or not at all."""
    with written_whole(path, "contact sheet") as temporary:
        draw_contact_sheet(tau, names).save(temporary, format="PNG")


def draw_contact_sheet(tau: TrajectoryDataset, names: Sequence[str]) -> Any:
    """The sheet as a Pillow image."""
    scale = _Scale(tau)
    steps = np.unique(np.linspace(1, tau.H, min(STEPS, tau.H)).round().astype(int)).tolist()
    blocks = [_block(tau, k, name, steps, scale) for k, name in enumerate(names)]
    return _pasted(blocks)


def _block(tau: TrajectoryDataset, k: int, name: str, steps: list[int], scale: _Scale) -> Any:
    """One agent: a headline, rows of frames, and the tiles of change."""
    from PIL import Image, ImageDraw

    mine = tau.agent_slice(k)
    shown = np.unique(np.linspace(mine.start, mine.stop - 1, min(EPISODES, mine.stop - mine.start)).astype(int))
    changes = _changes(tau, mine)
    width = LEFT + (len(steps) + len(changes)) * scale.pitch + 2 * GAP
    sheet = Image.new("RGB", (width, 2 * TOP + len(shown) * (scale.size[1] + GAP)), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((GAP, GAP), f"{name}: {mine.stop - mine.start} episodes", fill=INK)
    for column, h in enumerate(steps):
        x = LEFT + column * scale.pitch
        pen.text((x, TOP), f"h = {h}", fill=INK)
        for line, row in enumerate(shown):
            if tau.lengths[row] >= h:
                frame = tau.steps.read(h - 1, int(row), int(row) + 1)[0]
                sheet.paste(scale.tile(frame), (x, 2 * TOP + line * (scale.size[1] + GAP)))
    for line, row in enumerate(shown):
        pen.text((GAP, 2 * TOP + line * (scale.size[1] + GAP)), f"episode {row - mine.start}", fill=INK)
    for column, (title, change) in enumerate(changes.items(), start=len(steps)):
        x = LEFT + column * scale.pitch + 2 * GAP
        pen.text((x, TOP), title, fill=INK)
        sheet.paste(scale.heat(change), (x, 2 * TOP))
    return sheet


def _changes(tau: TrajectoryDataset, mine: slice) -> dict[str, NDArray[np.float32]]:
    """Where first frames of one agent differ, and where its frames change from one step to the next."""
    stop = min(mine.stop, mine.start + SPREAD_ROWS)
    first, second = (tau.steps.read(step, mine.start, stop).astype(np.float32) for step in (0, 1))
    goes_on = tau.lengths[mine.start : stop] >= 2
    movement = np.abs(second - first)[goes_on].mean(axis=0) if goes_on.any() else np.zeros_like(first[0])
    return {"varies at h = 1": first.std(axis=0), "changes at h = 2": movement}


def _pasted(blocks: list[Any]) -> Any:
    from PIL import Image

    sheet = Image.new("RGB", (max(b.width for b in blocks), sum(b.height + 2 * GAP for b in blocks)), PAPER)
    y = GAP
    for block in blocks:
        sheet.paste(block, (0, y))
        y += block.height + 2 * GAP
    return sheet


class _Scale:
    """How observations become tiles: values to grey or colour, one pixel to a whole number of pixels."""

    def __init__(self, tau: TrajectoryDataset) -> None:
        require("PIL.Image", "video")
        rows, columns = self._flat_shape(tau.obs_shape)
        longer = max(rows, columns)
        factor = -(-SMALL // longer)
        shrink = max(1.0, longer / LARGE)
        self.size = (max(1, round(columns * factor / shrink)), max(1, round(rows * factor / shrink)))
        self.pitch = max(self.size[0], LABEL) + GAP
        sample = tau.steps.read(tau.H - 1, 0, min(tau.n, 64))
        first = tau.steps.read(0, 0, min(tau.n, 64))
        low, high = float(min(sample.min(), first.min())), float(max(sample.max(), first.max()))
        is_picture = tau.dtype == np.uint8 and len(tau.obs_shape) == 3
        self.low, self.range = (0.0, 255.0) if is_picture else (low, max(high - low, 1e-12))

    def tile(self, x: NDArray[Any]) -> Any:
        return self._image((x.astype(np.float64) - self.low) / self.range)

    def heat(self, x: NDArray[np.float32]) -> Any:
        """A map of change, black where there is none, white at its most."""
        grey = x.mean(axis=-1, keepdims=True) if x.ndim == 3 else x
        return self._image(grey / max(float(grey.max()), 1e-12))

    def _image(self, x: NDArray[Any]) -> Any:
        from PIL import Image

        rows, columns = self._flat_shape(x.shape)
        values = np.rint(np.clip(x * 255, 0, 255)).astype(np.uint8)
        if x.ndim == 3 and x.shape[-1] == 3:
            image = Image.fromarray(np.ascontiguousarray(values))
        else:
            flat = values[..., 0] if x.ndim == 3 else values
            padded = np.full(rows * columns, PAPER[0], dtype=np.uint8)
            padded[: flat.size] = flat.ravel()
            image = Image.fromarray(padded.reshape(rows, columns)).convert("RGB")
        shrinks = self.size[0] < columns
        return image.resize(self.size, Image.Resampling.BOX if shrinks else Image.Resampling.NEAREST)

    @staticmethod
    def _flat_shape(shape: tuple[int, ...]) -> tuple[int, int]:
        """Rows and columns of a tile: those of an image; vectors as a square, row by row."""
        if len(shape) == 3 or len(shape) == 2:
            return shape[0], shape[1]
        size = int(np.prod(shape, dtype=np.int64))
        columns = int(np.ceil(np.sqrt(size)))
        return -(-size // columns), columns
