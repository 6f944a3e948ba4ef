"""The same counts and losses on a CUDA device, for classes of thousands of encoders.

Bit planes travel packed and are unpacked to bytes on the device; pairs are counted by matrix products of 8-bit
integers with 32-bit sums, which tensor cores do exactly. Losses are integers below 2^53 held in float64. Nothing is
rounded anywhere, so that the results equal the CPU engine's to the last bit.

The only module of the engine that imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.core.grid import Grid
from craftrl.core.losses import softplus_table
from craftrl.engine.bins import BinSearch
from craftrl.engine.counting import pair_losses
from craftrl.engine.gpu_losses import cell_loss, summed_losses
from craftrl.engine.packing import PackedStep, Words
from craftrl.errors import InvalidParameterError, require

__all__ = ["TorchCounter", "check_cuda"]

TILES_AT_ONCE = 64  # a device holds that many times tile_bytes: small tiles leave it idle
BINS_AT_MOST = 512  # larger grids are left to the CPU, which looks bins up
MULTIPLE = 32  # 8-bit matrix products want sizes that divide by 8, and more than 16 rows

Tensor = Any


def check_cuda(device: str) -> None:
    """Raise unless torch is installed and sees a CUDA device."""
    torch = require("torch", "neural")
    if not torch.cuda.is_available():
        raise InvalidParameterError(
            f"device = {device!r} needs a CUDA device, and torch sees none; use device='cpu': the results are the same."
        )


class TorchCounter:
    """Pair losses of one grid with torch, on a CUDA device (or, for the tests, on the CPU)."""

    def __init__(self, grid: Grid, device: str, tile_bytes: int) -> None:
        self.torch = require("torch", "neural")
        self.grid = grid
        self.device = device
        self.tile_bytes = tile_bytes
        self.budget = TILES_AT_ONCE * tile_bytes

    def pair_losses(self, step_h: PackedStep, step_next: PackedStep) -> NDArray[np.int64]:
        """As `counting.pair_losses`, for all rows."""
        if not self._applies(step_h):
            return pair_losses(step_h, step_next, self.grid, tile_bytes=self.tile_bytes)
        tiles = [tile.to(self.torch.int64).cpu().numpy() for _, tile in self.tiles(step_h, step_next)]
        return np.concatenate(tiles)

    def best_pair(self, step_h: PackedStep, step_next: PackedStep) -> tuple[int, int]:
        """The pair of encoders with the least loss: of equal ones the smallest i, then the smallest j."""
        if not self._applies(step_h):
            losses = pair_losses(step_h, step_next, self.grid, tile_bytes=self.tile_bytes)
            i, j = divmod(int(np.argmin(losses)), losses.shape[1])
            return i, j
        best: tuple[float, int, int] | None = None
        for start, tile in self.tiles(step_h, step_next):
            least = tile.min()
            row, column = (tile == least).nonzero()[0].tolist()
            found = (float(least), start + row, column)
            best = found if best is None else min(best, found)
        assert best is not None
        return best[1:]

    def _applies(self, step: PackedStep) -> bool:
        """Whether the device's way does: two agents, a grid neither too fine nor too large, sums below 2^53."""
        n = int(step.counts.sum())
        way = BinSearch.on(self.grid, len(step.counts), n).way
        exact = self.grid.size <= BINS_AT_MOST and n * int(softplus_table(self.grid)[-1]) < 2**53
        return way in ("sweep", "look up") and exact

    def tiles(self, step_h: PackedStep, step_next: PackedStep) -> Iterator[tuple[int, Tensor]]:
        """Losses as float64 on the device, some rows at a time, each with its first row."""
        loss = cell_loss(softplus_table(self.grid), self.device)
        cells = step_h.N_s * step_next.N_s
        pair_bytes = 32 if cells == 4 else 32 * cells  # binary encoders need no cells but those in registers
        n_rows = max(MULTIPLE, self.budget // (pair_bytes * step_next.size) // MULTIPLE * MULTIPLE)
        bits_h, present = self.upload(step_h.planes), self.upload(step_next.present[None, None])
        right = self.operand(self.upload(step_next.planes), present)
        chunks = [list(self._chunks(slice(*step_h.segments[k : k + 2]), len(right))) for k in range(2)]
        # Unpacked once for all tiles, if there is room.
        kept = [self.unpack(right[:, c]) for (c,) in chunks] if max(map(len, chunks)) == 1 else None
        for start in range(0, step_h.size, n_rows):
            some = bits_h[:, start : start + n_rows]
            left = self.operand(some, present)
            agents: list[Tensor] = []
            for k in range(2):
                rights = [kept[k]] if kept else (self.unpack(right[:, c]) for c in chunks[k])
                agents.append(
                    sum(self.torch._int_mm(self.unpack(left[:, c]), r.t()) for c, r in zip(chunks[k], rights))
                )
            yield start, summed_losses(agents, some.shape[:2], step_next.planes.shape[:2], loss)

    def upload(self, planes: Words) -> Tensor:
        """Bit planes (U, I, W) as bytes on the device, still packed."""
        return self.torch.from_numpy(np.ascontiguousarray(planes).view(np.uint8)).to(self.device)

    def operand(self, bits: Tensor, present: Tensor) -> Tensor:
        """All planes as rows, with that of x_{h+1}'s presence as one row more, and empty ones up to a multiple.

        With it on both sides of a product, the last column counts each plane on the left by itself, the last row
        each plane on the right, and the corner all pairs.
        """
        rows = self.torch.cat([bits.flatten(0, 1), present[0]])
        return self.torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % MULTIPLE))

    def unpack(self, bits: Tensor) -> Tensor:
        """Packed rows as 0s and 1s in int8."""
        shifts = self.torch.arange(8, dtype=self.torch.uint8, device=self.device)
        return (bits[:, :, None] >> shifts).bitwise_and_(1).flatten(1).view(self.torch.int8)

    def _chunks(self, words: slice, n_rows: int) -> Iterator[slice]:
        """The bytes of some words, so many at a time that they can be unpacked within the budget."""
        at_once = max(8, self.budget // (64 * n_rows) * 8)
        for start in range(8 * words.start, 8 * words.stop, at_once):
            yield slice(start, min(start + at_once, 8 * words.stop))
