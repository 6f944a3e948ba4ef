"""Two groups of trajectories: how different are they, told on trajectories that were not learned from?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.diagnostics.agent_pairs.boosting import tell_by_trees
from craftrl.diagnostics.agent_pairs.counting import tell_by_counts
from craftrl.diagnostics.agent_pairs.held_out import HeldOut
from craftrl.diagnostics.agent_pairs.sample import Group, Sample

__all__ = ["Contrast", "contrast"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Contrast:
    """How two groups of trajectories differ; arrays have one entry for each pair of steps that was looked at.

    p_any    how likely chance alone tells the groups apart as well as this
    p_moves  the same for what x_{h+1} tells beyond x_h
    shared   the groups' common share of the places that they visit: 1 where single observations tell nothing of the
             group, 0 where they tell it every time
    moves    what x_{h+1} tells of the group beyond x_h, in nats
    error    its standard error
    """

    p_any: float
    p_moves: float
    shared: Floats
    moves: Floats
    error: Floats


def contrast(a: Group, b: Group, sample: Sample, seed: int) -> Contrast:
    """Learn from half of the trajectories of each group and test on the other half, both ways round."""
    rng = np.random.default_rng(seed)
    halves = [np.array_split(rng.permutation(len(group)), 2) for group in (a, b)]
    parts = [_held_out(a, b, halves, learn, sample, seed) for learn in (0, 1)]
    both = HeldOut.join(parts)
    moves, error = both.mean(both.beyond)
    right, _ = both.mean((both.y[:, None] * both.told.place > 0) + 0.5 * (both.told.place == 0))
    return Contrast(
        p_any=min(1.0, 2 * min(part.p_any() for part in parts)),
        p_moves=min(1.0, 2 * min(part.p_moves() for part in parts)),
        shared=np.clip(2 * (1 - right), 0, 1),
        moves=moves,
        error=error,
    )


def _held_out(
    a: Group, b: Group, halves: list[list[NDArray[np.int64]]], learn: int, sample: Sample, seed: int
) -> HeldOut:
    known, held = (
        [group.rows(np.sort(half[part])) for group, half in zip((a, b), halves)] for part in (learn, 1 - learn)
    )
    test = Group.join(held)
    if sample.values is not None:
        told = tell_by_counts(*known, test, sample.pairs, sample.values)
    else:
        told = tell_by_trees(*known, test, sample.pairs, seed)
    return HeldOut(told, np.repeat([-1, 1], [len(h) for h in held]), test.there[:, np.asarray(sample.pairs) + 1])
