"""Arrays as PNG pictures inside a page: no package and no file is needed for that."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LONGEST", "is_image", "over", "png", "small", "to_bytes"]

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
LONGEST = 80  # pixels of the longer side; larger frames are thinned out
FAINT = 0.1  # heat below this share of the largest is not drawn
WARM = np.array([255.0, 120.0, 0.0])


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether observations of this shape are pictures: rows, columns, and one or three channels."""
    return len(shape) == 3 and shape[-1] in (1, 3) and min(shape[:2]) > 1


def small(x: NDArray[Any]) -> NDArray[Any]:
    """Every m-th row and column of (rows, columns, ...), so that the longer side fits."""
    every = -(-max(x.shape[:2]) // LONGEST)
    return x[::every, ::every]


def to_bytes(x: NDArray[Any], low: float, high: float) -> Bytes:
    """Pixels between low and high as bytes of three channels."""
    scaled = np.clip((np.asarray(x, dtype=float) - low) / max(high - low, 1e-12), 0, 1) * 255
    return np.broadcast_to(scaled.round().astype(np.uint8), (*x.shape[:2], 3))


def over(image: Bytes, heat: Floats) -> Bytes:
    """The image, dimmed, with what is hot in a warm colour; heat (rows, columns) is 1 at most."""
    weight = np.where(heat > FAINT, heat, 0.0)[..., None]
    return np.asarray(weight * WARM + (1 - weight) * image / 3).round().astype(np.uint8)


def png(image: Bytes) -> str:
    """An image (rows, columns, 3) as a data URI.

    The format is that of the PNG specification: a signature and three chunks, each with length and checksum.
    """
    rows, columns = image.shape[:2]
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), image.reshape(rows, -1)], axis=1)  # 0: no filter
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)  # 8 bits, colour
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    chunks = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts]
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
