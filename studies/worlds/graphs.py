"""How well the learned graph of states recovers the true one, edge by edge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from craftrl.arrays import Ints
from craftrl.core.relabelling import best_matching
from craftrl.evaluation import confusion


def recovery(labels: Ints, truth: Ints, true: Sequence[Ints], min_share: float = 0.0) -> tuple[float, float]:
    """Precision and recall of the edges between learned states (n, H); `true` are `world.reachable_pairs()`.

    Learned states are matched one-to-one with the true ones (n, H) of their step that most trajectories agree with. An
    edge from or to one that is left over counts as found and wrong. `min_share` leaves out edges with less of the
    transitions at their step, such as those that a few mislabelled trajectories make.
    """
    partner = [best_matching(confusion(*of_step)) for of_step in zip(labels.T, truth.T)]
    found = right = there = 0
    for h, actions in enumerate(true):
        moves = labels[:, h : h + 2]
        edges, counts = np.unique(moves[(moves >= 0).all(axis=1)], axis=0, return_counts=True)
        named = [
            (partner[h].get(s), partner[h + 1].get(t)) for s, t in edges[counts >= min_share * counts.sum()].tolist()
        ]
        found += len(named)
        right += sum(None not in edge and bool(actions[edge] > 0) for edge in named)
        there += int((actions > 0).sum())
    return right / found if found else 1.0, right / there if there else 1.0
