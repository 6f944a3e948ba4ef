"""Images of a Gymnasium environment made small."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidParameterError, require

gymnasium = require("gymnasium", "studies")


def area_average(image: NDArray[np.uint8], factors: tuple[int, int]) -> NDArray[np.uint8]:
    """Every block of factors[0] rows and factors[1] columns of an image (rows, columns, channels) becomes its mean."""
    (rows, columns), (r, c, channels) = factors, image.shape
    blocks = image.reshape(r // rows, rows, c // columns, columns, channels)
    return np.rint(blocks.mean(axis=(1, 3))).astype(np.uint8)


class SmallImages(gymnasium.wrappers.TransformObservation):  # type: ignore[name-defined]
    """Images cut to `crop` (top, bottom, left, right) and averaged over blocks of `factors` pixels.

    Grey images get a channel axis, as networks expect: (rows, columns, 1).
    """

    def __init__(self, env: Any, factors: tuple[int, int], crop: tuple[int, int, int, int] | None = None) -> None:
        rows, columns, *channels = env.observation_space.shape
        top, bottom, left, right = crop or (0, rows, 0, columns)
        size = bottom - top, right - left
        if size[0] % factors[0] or size[1] % factors[1]:
            raise InvalidParameterError(
                f"The factors must divide the cropped image of {size[0]} x {size[1]} pixels; {factors} were given."
            )

        def small(x: NDArray[np.uint8]) -> NDArray[np.uint8]:
            return area_average(x[top:bottom, left:right].reshape(*size, *(channels or [1])), factors)

        shape = (size[0] // factors[0], size[1] // factors[1], *(channels or [1]))
        super().__init__(env, small, gymnasium.spaces.Box(0, 255, shape, np.uint8))
