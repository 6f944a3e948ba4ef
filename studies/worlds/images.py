"""Wrappers that make the images of a Gymnasium environment small."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError, require

gymnasium = require("gymnasium", "studies")

__all__ = ["SmallImages", "area_average"]


def area_average(image: NDArray[np.uint8], factors: tuple[int, int]) -> NDArray[np.uint8]:
    """Every block of factors[0] rows and factors[1] columns of an image (rows, columns, channels) becomes its mean."""
    rows, columns = factors
    r, c, channels = image.shape
    blocks = image.reshape(r // rows, rows, c // columns, columns, channels)
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)


class SmallImages(gymnasium.ObservationWrapper):  # type: ignore[name-defined]
    """Images cut to `crop` (top, bottom, left, right) and averaged over blocks of `factors` pixels.

    Grey images get a channel axis, as networks expect: (rows, columns, 1).
    """

    def __init__(self, env: Any, factors: tuple[int, int], crop: tuple[int, int, int, int] | None = None) -> None:
        super().__init__(env)
        rows, columns, *channels = env.observation_space.shape
        self.crop = (0, rows, 0, columns) if crop is None else crop
        self.factors = factors
        top, bottom, left, right = self.crop
        height, width = bottom - top, right - left
        if height % factors[0] or width % factors[1]:
            raise InvalidParameterError(
                f"The factors must divide the cropped image of {height} x {width} pixels; {factors} were given."
            )
        shape = (height // factors[0], width // factors[1], *(channels or [1]))
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)

    def observation(self, observation: NDArray[np.uint8]) -> NDArray[np.uint8]:
        top, bottom, left, right = self.crop
        image = observation[top:bottom, left:right]
        return area_average(image if image.ndim == 3 else image[..., None], self.factors)
