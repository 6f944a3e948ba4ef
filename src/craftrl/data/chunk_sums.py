"""CRC-32 of every chunk of an HDF5 file, beside the checksum that HDF5 has.

HDF5's is Fletcher's, which counts modulo 65,535: bytes 00 00 that turn into FF FF leave it as it was. Black pixels that
turn white are what an erased block of flash memory looks like, so that this does happen. CRC-32 sees it.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CheckedChunks", "ChunkSums", "array_sum"]


def array_sum(values: NDArray[Any], before: int = 0) -> int:
    """CRC-32 of an array's bytes, going on from those `before`."""
    return zlib.crc32(np.ascontiguousarray(values).view(np.uint8).reshape(-1).data, before)


class ChunkSums:
    """The sums of chunks of `rows` trajectories and one step, for trajectories that come one block after the other."""

    def __init__(self, H: int, rows: int, row_shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.rows, self.dtype = rows, dtype
        self.nothing = np.zeros((rows, *row_shape), dtype)  # what HDF5 reads where nothing was written
        self.H, self._sums = H, [[0] * H]
        self._filled = 0  # rows of the last chunk

    def add(self, x: NDArray[Any]) -> None:
        """Trajectories (m, steps, *obs), those after the ones before; steps that are not there are zeros."""
        while len(x):
            if self._filled == self.rows:
                self._sums.append([0] * self.H)
                self._filled = 0
            block, x = x[: self.rows - self._filled], x[self.rows - self._filled :]
            for step in range(self.H):
                there = (
                    block[:, step].astype(self.dtype, copy=False)
                    if step < block.shape[1]
                    else self.nothing[: len(block)]
                )
                self._sums[-1][step] = array_sum(there, self._sums[-1][step])
            self._filled += len(block)

    def table(self) -> NDArray[np.uint32]:
        """(H, chunks)."""
        return np.array(self._sums, dtype=np.uint32).T.copy()


class CheckedChunks:
    """Which chunks of a file were compared with the sums in its table (H, chunks); each is, when it is first read."""

    def __init__(self, table: NDArray[np.uint32], rows: int) -> None:
        self.table, self.rows = table, rows
        self.known = np.zeros(table.shape, dtype=bool)

    def read(self, observations: Any, step: int, start: int, stop: int) -> NDArray[Any]:
        """observations[step, start:stop]; ValueError where a chunk is not what was written."""
        first, last = start // self.rows, -(-stop // self.rows)
        if self.known[step, first:last].all():
            return np.asarray(observations[step, start:stop])
        from_row = first * self.rows
        block = np.asarray(observations[step, from_row : last * self.rows])
        for chunk in range(first, last):
            mine = block[(chunk - first) * self.rows : (chunk - first + 1) * self.rows]
            if array_sum(mine) != self.table[step, chunk]:
                raise ValueError(f"the checksum of step {step + 1} does not fit")
        self.known[step, first:last] = True
        return block[start - from_row : stop - from_row]
