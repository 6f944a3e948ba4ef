"""The same counts and losses on a CUDA device, for classes of thousands of encoders.

Bit planes travel packed and are unpacked to bytes on the device; pairs are counted by matrix products of 8-bit
integers with 32-bit sums, which tensor cores do exactly. Losses are integers below 2^53 held in float64. Nothing is
rounded anywhere, so that the results equal the CPU engine's to the last bit.

The only module of the engine that imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.engine.bins import BinSearch
from craftrl.engine.counting import margins, pair_losses
from craftrl.engine.packing import PackedStep, Words
from craftrl.errors import InvalidParameterError, require
from craftrl.grid import Grid

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
        if not self._exact(step_h, step_next):
            return pair_losses(step_h, step_next, self.grid, tile_bytes=self.tile_bytes)
        tiles = [tile.to(self.torch.int64).cpu().numpy() for _, tile in self._tiles(step_h, step_next)]
        return np.concatenate(tiles)

    def best_pair(self, step_h: PackedStep, step_next: PackedStep) -> tuple[int, int]:
        """The pair of encoders with the least loss: of equal ones the smallest i, then the smallest j."""
        if not self._exact(step_h, step_next):
            losses = pair_losses(step_h, step_next, self.grid, tile_bytes=self.tile_bytes)
            i, j = divmod(int(np.argmin(losses)), losses.shape[1])
            return i, j
        best: tuple[float, int, int] | None = None
        for start, tile in self._tiles(step_h, step_next):
            least = tile.min()
            row, column = (tile == least).nonzero()[0].tolist()
            found = (float(least), start + row, column)
            best = found if best is None else min(best, found)
        assert best is not None
        return best[1:]

    def _exact(self, step_h: PackedStep, step_next: PackedStep) -> bool:
        """Whether the device's way applies: two agents, a grid that is not too fine or large, sums below 2^53."""
        n_pairs = int(step_next.totals.sum())
        search = BinSearch.on(self.grid, len(step_h.counts), n_pairs)
        few_bins = self.grid.size <= BINS_AT_MOST
        return search.compiled and few_bins and n_pairs * int(search.table[-1]) < 2**53

    def _tiles(self, step_h: PackedStep, step_next: PackedStep) -> Iterator[tuple[int, Tensor]]:
        """Losses as float64, some rows at a time, each with its first row."""
        pair_bytes = 64 * step_h.N_s * step_next.N_s
        n_rows = max(MULTIPLE, self.budget // (pair_bytes * step_next.size) // MULTIPLE * MULTIPLE)
        for start in range(0, step_h.size, n_rows):
            rows = slice(start, min(start + n_rows, step_h.size))
            yield start, self._losses(step_h, step_next, rows)

    def _losses(self, step_h: PackedStep, step_next: PackedStep, rows: slice) -> Tensor:
        p, q = margins(step_h, step_next, rows, slice(None))
        agents = [self._agent_cells(step_h, step_next, rows, k, p[k], q[k], int(step_next.totals[k])) for k in range(2)]
        least_loss = self._least_loss(BinSearch.on(self.grid, 2, 0).table)
        return sum(least_loss(a, b) for a, b in zip(*agents))

    def _agent_cells(
        self,
        step_h: PackedStep,
        step_next: PackedStep,
        rows: slice,
        k: int,
        p: NDArray[np.int64],
        q: NDArray[np.int64],
        total: int,
    ) -> Iterator[Tensor]:
        """Agent k's counts of every pair of values, value 0 by complement: N_s^2 matrices of float64."""
        torch = self.torch
        words = slice(*step_h.segments[k : k + 2])
        inner = self._count(step_h.planes[:, rows, words], step_next.planes[:, :, words]).to(torch.float64)
        p_counts = torch.as_tensor(p, dtype=torch.float64, device=self.device)[:, None, :, None]
        q_counts = torch.as_tensor(q, dtype=torch.float64, device=self.device)[None, :, None, :]
        yield total - p_counts.sum(0)[0] - q_counts.sum(1)[0] + inner.sum(dim=(0, 1))
        for u in range(len(p)):
            yield p_counts[u, 0] - inner[u].sum(dim=0)
        for v in range(len(q)):
            yield q_counts[0, v] - inner[:, v].sum(dim=0)
            yield from inner[:, v]

    def _count(self, p: Words, q: Words) -> Tensor:
        """popcount(p[u, i] & q[v, j]) as int32 (U, V, I, J), by matrix products over some words at a time."""
        torch = self.torch
        (U, I, W), (V, J, _) = p.shape, q.shape
        if U * V == 0:
            return torch.zeros((U, V, I, J), dtype=torch.int32, device=self.device)
        at_once = max(1, self.budget // (64 * (U * I + V * J)))
        counts: Tensor = 0
        for start in range(0, W, at_once):
            left, right = (self._unpacked(x[..., start : start + at_once]) for x in (p, q))
            counts = counts + torch._int_mm(left, right.t())
        return counts[: U * I, : V * J].reshape(U, I, V, J).permute(0, 2, 1, 3)

    def _unpacked(self, planes: Words) -> Tensor:
        """Bit planes as a matrix of 0s and 1s in int8, one row per plane, rows padded to a fit number."""
        torch = self.torch
        octets = np.ascontiguousarray(planes.reshape(-1, planes.shape[-1])).view(np.uint8)
        n_rows = -(-len(octets) // MULTIPLE) * MULTIPLE
        on_device = torch.zeros((n_rows, octets.shape[1]), dtype=torch.uint8, device=self.device)
        on_device[: len(octets)] = torch.from_numpy(octets).to(self.device)
        shifts = torch.arange(8, dtype=torch.uint8, device=self.device)
        return ((on_device[:, :, None] >> shifts) & 1).reshape(n_rows, -1).view(torch.int8)

    def _least_loss(self, table: NDArray[np.int64]) -> Callable[[Tensor, Tensor], Tensor]:
        """(a, b) -> min over bins of a T[n_xi - j] + b T[j], in one pass on a CUDA device."""
        if self.device != "cpu":
            numbers = ", ".join(f"{float(t):.1f}" for t in table)
            return self.torch.cuda.jiterator._create_jit_fn(
                "template <typename T> T least_loss(T a, T b) {"
                f"  const double table[] = {{{numbers}}};"
                f"  double least = a * table[{len(table) - 1}] + b * table[0];"
                f"  for (int j = 1; j < {len(table)}; ++j) {{"
                f"    double loss = a * table[{len(table) - 1} - j] + b * table[j];"
                "    least = loss < least ? loss : least;"
                "  }"
                "  return least;"
                "}"
            )

        def least_loss(a: Tensor, b: Tensor) -> Tensor:
            least = a * float(table[-1]) + b * float(table[0])
            for backwards, forwards in zip(table[-2::-1], table[1:]):
                least = self.torch.minimum(least, a * float(backwards) + b * float(forwards))
            return least

        return least_loss
