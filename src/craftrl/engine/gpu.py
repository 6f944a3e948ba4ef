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

from craftrl.engine.bins import BinSearch
from craftrl.engine.counting import pair_losses
from craftrl.engine.gpu_losses import cell_loss, summed_losses
from craftrl.engine.packing import PackedStep, Words
from craftrl.errors import InvalidParameterError, require
from craftrl.grid import Grid
from craftrl.losses import softplus_table

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
        search = BinSearch.on(self.grid, len(step.counts), n)
        return search.compiled and self.grid.size <= BINS_AT_MOST and n * int(search.table[-1]) < 2**53

    def tiles(self, step_h: PackedStep, step_next: PackedStep) -> Iterator[tuple[int, Tensor]]:
        """Losses as float64 on the device, some rows at a time, each with its first row."""
        loss = cell_loss(softplus_table(self.grid), self.device)
        pair_bytes = 64 * step_h.N_s * step_next.N_s
        n_rows = max(MULTIPLE, self.budget // (pair_bytes * step_next.size) // MULTIPLE * MULTIPLE)
        for start in range(0, step_h.size, n_rows):
            p = step_h.planes[:, start : start + n_rows]
            agents = [self.count(p, step_next, slice(*step_h.segments[k : k + 2])) for k in range(2)]
            yield start, summed_losses(agents, p.shape[:2], step_next.planes.shape[:2], loss)

    def count(self, p: Words, step_next: PackedStep, words: slice) -> Tensor:
        """Counts over some words of every plane of p (U, I) with every plane of step_next: (U I + 1, V J + 1), padded.

        The plane of x_{h+1}'s presence goes along on both sides: the last column then counts each plane of p by
        itself, the last row each plane of step_next, and the corner all pairs.
        """
        counts: Tensor = 0
        planes = (p, step_next.planes)
        at_once = max(1, self.budget // (64 * sum(x.shape[0] * x.shape[1] + MULTIPLE for x in planes)))
        for start in range(words.start, words.stop, at_once):
            some = slice(start, min(start + at_once, words.stop))
            left, right = (self._unpacked(x[..., some], step_next.present[some]) for x in planes)
            counts = counts + self.torch._int_mm(left, right.t())
        return counts

    def _unpacked(self, planes: Words, present: Words) -> Tensor:
        """Bit planes, and that of presence, as rows of 0s and 1s in int8; the number of rows is padded."""
        torch = self.torch
        n_words = len(present)
        octets = np.concatenate([planes.reshape(-1, n_words), present[None]]).view(np.uint8)
        n_rows = -(-len(octets) // MULTIPLE) * MULTIPLE
        on_device = torch.zeros((n_rows, 8 * n_words), dtype=torch.uint8, device=self.device)
        on_device[: len(octets)] = torch.from_numpy(octets).to(self.device)
        shifts = torch.arange(8, dtype=torch.uint8, device=self.device)
        return ((on_device[:, :, None] >> shifts) & 1).reshape(n_rows, -1).view(torch.int8)
