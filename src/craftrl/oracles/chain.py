"""Chained ERM: the encoders of all steps chosen at once, each shared by the pairs on both its sides.

Line 10 chooses (phi_h, phi_{h+1}) for each h on its own, so that x_h is encoded twice and nothing makes the two
encoders agree. The controllable state is one thing: whatever encodes it at h must serve the pair before and the
pair after. Choosing phi_2..phi_H together, with phi_1 constant (all episodes start in one state), minimises the
sum of the same pairwise losses along a path, which is a shortest path through layers of encoders.

A distractor that mimics a pair of states, as (s_h XOR e^1, s_{h+1} XOR e^1) does, can win one pair; to stay in
the chain it would have to win all pairs up to the start, where s_1 is known and mimicry fails.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["shortest_chain"]


def shortest_chain(losses: Iterable[NDArray[np.int64]]) -> tuple[list[int], int]:
    """The path i_1, ..., i_H that minimises the sum of losses[h-1][i_h, i_{h+1}], and that sum.

    The losses may come from a generator: one matrix is held at a time. Ties go to the smaller index, from the end
    of the path backwards.
    """
    cost: NDArray[np.int64] | None = None
    back: list[NDArray[np.int64]] = []
    for loss in losses:
        through = loss if cost is None else cost[:, None] + loss
        back.append(np.argmin(through, axis=0))
        cost = through.min(axis=0)
    assert cost is not None, "a chain needs at least one pair of steps"
    path = [int(np.argmin(cost))]
    for choice in reversed(back):
        path.append(int(choice[path[-1]]))
    return path[::-1], int(cost.min())
