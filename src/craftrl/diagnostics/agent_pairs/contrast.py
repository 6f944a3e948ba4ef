"""Two groups of trajectories: how different are they, told on trajectories that were not learned from?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.diagnostics.agent_pairs.boosting import tell_by_trees
from craftrl.diagnostics.agent_pairs.counting import tell_by_counts
from craftrl.diagnostics.agent_pairs.held_out import HeldOut
from craftrl.diagnostics.agent_pairs.permuting import chance_by_permutation
from craftrl.diagnostics.agent_pairs.sample import Group, Sample

__all__ = ["Contrast", "contrast"]

Floats = NDArray[np.float64]
COUNTED_FOLDS, TRAINED_FOLDS = 5, 2  # parts that are held out in turn; trees take longer than counts


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
    """Learn from most trajectories of each group and test on the others, in turn, until all were held out once."""
    rng = np.random.default_rng(seed)
    folds = COUNTED_FOLDS if sample.values is not None else TRAINED_FOLDS
    fold = [rng.permutation(len(group)) % folds for group in (a, b)]
    parts = [_held_out(a, b, [f == i for f in fold], sample, seed) for i in range(folds)]
    every = HeldOut.join(parts)
    moves, error = every.mean(every.beyond)
    right, _ = every.mean((every.y[:, None] * every.told.place > 0) + 0.5 * (every.told.place == 0))
    if sample.values is not None:
        p_any = chance_by_permutation(a, b, sample.pairs, sample.values, rng)
    else:  # the better of the folds, corrected for the choice
        p_any = min(1.0, folds * min(part.p_any() for part in parts))
    return Contrast(p_any, every.p_moves(), np.clip(2 * (1 - right), 0, 1), moves, error)


def _held_out(a: Group, b: Group, held: list[NDArray[np.bool_]], sample: Sample, seed: int) -> HeldOut:
    known_a, known_b = (group.rows(~out) for group, out in zip((a, b), held))
    test = Group.join([group.rows(out) for group, out in zip((a, b), held)])
    if sample.values is not None:
        told = tell_by_counts(known_a, known_b, test, sample.pairs, sample.values)
    else:
        told = tell_by_trees(known_a, known_b, test, sample.pairs, seed)
    y = np.repeat([-1, 1], [int(out.sum()) for out in held])
    return HeldOut(told, y, test.there[:, np.asarray(sample.pairs) + 1])
