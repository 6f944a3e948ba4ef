"""Crop, resize and grey, the same for every source of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import InvalidDataError, InvalidParameterError, require
from craftrl.importing.options import Options

__all__ = ["changed_picture", "decoded_image"]


def changed_picture(frame: NDArray[Any], options: Options, name: str) -> NDArray[Any]:
    """A frame as the options want it: (rows, columns, channels), as networks expect."""
    if not options.changes_pictures:
        return frame
    if frame.dtype != np.uint8 or not (frame.ndim == 2 or (frame.ndim == 3 and frame.shape[-1] in (1, 3))):
        raise InvalidDataError(
            "Only pictures of 8 bits, (rows, columns) or (rows, columns, 1 or 3), can be cropped, resized or made "
            f"grey; {name} has shape {frame.shape} and dtype {frame.dtype}; leave these options out, or convert it."
        )
    picture = frame if frame.ndim == 3 else frame[..., None]
    if options.crop is not None:
        picture = _cropped(picture, options.crop, name)
    if options.resize is None and not (options.grey and picture.shape[-1] == 3):
        return picture
    image = _as_image(picture)
    if options.grey:
        image = image.convert("L")
    if options.resize is not None and image.size != options.resize:
        image = image.resize(options.resize, require("PIL.Image", "video").Resampling.BOX)
    return _as_array(image)


def decoded_image(file: Any) -> NDArray[np.uint8]:
    """An image file, or the bytes of one that is open, as (rows, columns, 1 or 3)."""
    with require("PIL.Image", "video").open(file) as image:
        return _as_array(image.convert("L" if image.mode in ("1", "L", "LA") else "RGB"))


def _cropped(picture: NDArray[Any], crop: tuple[int, int, int, int], name: str) -> NDArray[Any]:
    left, top, width, height = crop
    rows, columns = picture.shape[:2]
    if left + width > columns or top + height > rows:
        raise InvalidParameterError(
            f"The crop must lie inside of the picture; {name} has {columns} x {rows} pixels, and the crop ends at "
            f"{left + width} x {top + height}; choose a smaller one."
        )
    return picture[top : top + height, left : left + width]


def _as_image(picture: NDArray[Any]) -> Any:
    plain = picture[..., 0] if picture.shape[-1] == 1 else picture
    return require("PIL.Image", "video").fromarray(np.ascontiguousarray(plain))


def _as_array(image: Any) -> NDArray[np.uint8]:
    array = np.asarray(image, dtype=np.uint8)
    return array if array.ndim == 3 else array[..., None]
