"""Where trajectories begin in several states: the encoder of x_1 that tells them apart, by counting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from craftrl.core.grid import Grid
from craftrl.core.labels import Labels, renamed, tally
from craftrl.oracles.chain import shortest_tiled

if TYPE_CHECKING:
    from craftrl.oracles.counting import PreparedCounting

__all__ = ["counted_starts"]

GRID = Grid.from_bounds(0.5, 0.05)  # on which the pair of encoders is chosen


def counted_starts(prepared: PreparedCounting) -> Labels:
    """The values (n,) of the encoder of x_1 with which the best chain of encoders over all steps begins, from 0 on.

    A constant one is as good as any if the start is one state: ask `craftrl.diagnostics.tests.start_test` first.
    """
    prepared.expect_several_starts()
    steps = [prepared.step(h) for h in range(1, prepared.tau.H + 1)]
    path = shortest_tiled(prepared.engine.loss_tiles(steps, GRID))[0]
    values = steps[0].values(int(path[0]))
    occurs = tally(values, steps[0].N_s) > 0
    return renamed(values, np.where(occurs, np.cumsum(occurs) - 1, -1))
