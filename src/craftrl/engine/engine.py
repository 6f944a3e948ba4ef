"""The engine that exact oracles hold: all steps of a dataset at once, on all cores or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_whole, shown
from craftrl.core.grid import Grid
from craftrl.engine.counting import TILE_BYTES, CountMemory, best_in_rows, pair_losses, row_tiles
from craftrl.engine.packing import PackedStep
from craftrl.engine.threads import Item, Result, ordered_map, usable_threads
from craftrl.errors import InvalidParameterError

if TYPE_CHECKING:
    from craftrl.engine.gpu import TorchCounter

__all__ = ["Engine"]


@dataclass(frozen=True)
class Engine:
    """Where to count, and with how much.

    device      "cpu", or "cuda" for classes of thousands of encoders (needs torch and a CUDA device)
    n_threads   threads of the CPU engine; None for all cores, or for one inside a parallel experiment
    tile_bytes  what each thread (or the GPU) may hold of counts and losses at a time

    Results depend on none of the three.
    """

    device: str = "cpu"
    n_threads: int | None = None
    tile_bytes: int = TILE_BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in ("cpu", "cuda"):
            raise InvalidParameterError(f"device must be 'cpu' or 'cuda'; {shown(self.device)} was given.")
        check_whole("tile_bytes", self.tile_bytes, 2**16, advice="a few megabytes do")
        usable_threads(self.n_threads)
        if self.device != "cpu":
            from craftrl.engine.gpu import check_cuda

            check_cuda(self.device)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """map(function, items) on the engine's threads, in order."""
        return ordered_map(function, items, min(usable_threads(self.n_threads), max(1, len(items))))

    def together(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The same for questions so small that threads would not pay: here, one after the other."""
        return list(map(function, items))

    def best_pairs(
        self, steps: Sequence[PackedStep], grid: Grid, counts: CountMemory | None = None
    ) -> list[tuple[int, int]]:
        """For each two consecutive steps the pair of encoders with the least loss, ties to the first.

        `counts`, if given, keeps what was counted for the next grid; the GPU counts faster than it could look up.

        Paper: Line 10
        """
        if self.device != "cpu":
            gpu = self._on_gpu(grid)
            return [gpu.best_pair(*two) for two in pairwise(steps)]
        tasks = [
            (h, rows) for h, two in enumerate(pairwise(steps)) for rows in row_tiles(*two, tile_bytes=self.tile_bytes)
        ]
        best: list[tuple[int, int, int]] = [(2**63, 0, 0)] * (len(steps) - 1)
        for (h, _), found in zip(tasks, self.map(partial(self._best_in_tile, steps, grid, counts), tasks)):
            best[h] = min(best[h], found)
        return [(i, j) for _, i, j in best]

    def _best_in_tile(
        self, steps: Sequence[PackedStep], grid: Grid, counts: CountMemory | None, task: tuple[int, slice]
    ) -> tuple[int, int, int]:
        h, rows = task
        return best_in_rows(steps[h], steps[h + 1], grid, rows, self.tile_bytes, counts)

    def all_losses(
        self, steps: Sequence[PackedStep], grid: Grid, counts: CountMemory | None = None
    ) -> Iterator[NDArray[np.int64]]:
        """The losses of all pairs of encoders of each two consecutive steps, one matrix after the other."""
        if self.device != "cpu":
            gpu = self._on_gpu(grid)
            return (gpu.pair_losses(*two) for two in pairwise(steps))
        return self.map(
            lambda two: pair_losses(*two, grid, tile_bytes=self.tile_bytes, counts=counts), list(pairwise(steps))
        )

    def loss_tiles(
        self, steps: Sequence[PackedStep], grid: Grid, counts: CountMemory | None = None
    ) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """The same matrices in tiles: the number of the matrix, its first row in this tile, and some rows of it.

        Tiles come matrix by matrix and from the first row to the last, so that whoever needs each row once holds a
        few megabytes where a matrix of large classes takes gigabytes.
        """
        if self.device != "cpu":
            yield from ((h, 0, losses) for h, losses in enumerate(self.all_losses(steps, grid, counts)))
            return
        tasks = [
            (h, rows) for h, two in enumerate(pairwise(steps)) for rows in row_tiles(*two, tile_bytes=self.tile_bytes)
        ]

        def losses(task: tuple[int, slice]) -> NDArray[np.int64]:
            h, rows = task
            return pair_losses(steps[h], steps[h + 1], grid, rows, self.tile_bytes, counts)

        for (h, rows), found in zip(tasks, self.map(losses, tasks)):
            yield h, rows.start, found

    def _on_gpu(self, grid: Grid) -> TorchCounter:
        from craftrl.engine.gpu import TorchCounter

        return TorchCounter(grid, self.device, self.tile_bytes)
