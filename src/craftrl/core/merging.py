"""Clusters to states: which successors of different predecessors are the same state.

Paper: Algorithm 2, Lines 12-15 and 22-45
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from craftrl.core.seam import Separation
from craftrl.core.trace import Comparison

__all__ = ["CHANCE_HALF", "merge_clusters", "state_of_cluster"]

CHANCE_HALF = 0.5  # L(g) lies in [0, 2] and chance is 1: above 1/2 the two are not separable
NOTHING_TOLD = 0.75  # what it takes to join two clusters of one predecessor, whose log-odds differ


def merge_clusters(
    predecessors: Sequence[int], separation: Separation, strays: bool = False
) -> tuple[list[list[int]], tuple[Comparison, ...]]:
    """States of h+1, each the list of its clusters, and every comparison made on the way.

    `predecessors[c]` is s_pred of cluster c; clusters come in the order of the scan, predecessor by predecessor.
    A cluster joins the first state that no cluster of its own predecessor has joined and from which it cannot be
    told apart. New states wait until their predecessor is done: two successors of one predecessor differ.

    With `strays` they need not: log-odds that scatter may set a part of a successor aside. So clusters of one
    predecessor are one state as well if nothing whatever tells their observations apart.

    Paper: Lines 12-15, 22-45
    """
    states: list[list[int]] = []
    comparisons: list[Comparison] = []
    for s_pred in sorted(set(predecessors)):
        merged_already: set[int] = set()
        new_states: list[list[int]] = []
        for c in (c for c, pred in enumerate(predecessors) if pred == s_pred):
            for s, members in enumerate(states + new_states if strays else states):
                own = s in merged_already or s >= len(states)  # a cluster of this predecessor is in it
                if own and not strays:
                    continue
                loss = separation.loss(c, members)
                merged = loss > (NOTHING_TOLD if own else CHANCE_HALF)
                comparisons.append(Comparison(cluster=c, state=s, loss=loss, merged=merged))
                if merged:
                    members.append(c)
                    merged_already.add(s)
                    break
            else:
                new_states.append([c])
        states += new_states
    return states, tuple(comparisons)


def state_of_cluster(states: Sequence[Sequence[int]], n_clusters: int) -> NDArray[np.int64]:
    """The state of each cluster; one entry more, the last, is -1, so that cluster -1 (none) has state -1."""
    state_of = np.full(n_clusters + 1, -1, dtype=np.int64)
    for s, members in enumerate(states):
        state_of[list(members)] = s
    return state_of
