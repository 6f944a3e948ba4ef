"""Clusters to states: which successors of different predecessors are the same state.

Paper: Algorithm 2, Lines 12-15 and 22-45
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from craftrl.core.labels import Labels
from craftrl.core.oracle import Separation
from craftrl.core.trace import Comparison

__all__ = ["CHANCE_HALF", "merge_clusters"]

CHANCE_HALF = 0.5  # L(g) lies in [0, 2] and chance is 1: above 1/2 the two are not separable
NOTHING_TOLD = 0.75  # what it takes to join two clusters of one predecessor, whose log-odds differ


def merge_clusters(
    predecessors: Sequence[int], separation: Separation, strays: bool = False
) -> tuple[Labels, tuple[Comparison, ...]]:
    """The state of h+1 that each cluster is part of, and every comparison made on the way.

    `predecessors[c]` is s_pred of cluster c; clusters come in the order of the scan, predecessor by predecessor.
    A cluster joins the first state that no cluster of its own predecessor has joined and from which it cannot be
    told apart. New states wait until their predecessor is done: two successors of one predecessor differ.

    With `strays` they need not: log-odds that scatter may set a part of a successor aside. So clusters of one
    predecessor are one state as well if nothing whatever tells their observations apart.

    States are compared one after the other, since the first that merges is the last that is needed and some oracles
    train for each; all at once where `separation` has a method `losses` for that.

    Paper: Lines 12-15, 22-45
    """
    states: list[list[int]] = []
    comparisons: list[Comparison] = []
    at_once = getattr(separation, "losses", None)
    for s_pred in sorted(set(predecessors)):
        merged_already: set[int] = set()
        new_states: list[list[int]] = []
        for c in (c for c, pred in enumerate(predecessors) if pred == s_pred):
            candidates = states + new_states if strays else states
            losses = None if at_once is None else at_once(c, candidates)
            for s, members in enumerate(candidates):
                if s in merged_already and not strays:
                    continue
                loss = float(separation(c, members) if losses is None else losses[s])
                own = s in merged_already or s >= len(states)  # a cluster of this predecessor is in it
                merged = loss > (NOTHING_TOLD if own else CHANCE_HALF)
                comparisons.append(Comparison(cluster=c, state=s, loss=loss, merged=merged))
                if merged:
                    members.append(c)
                    merged_already.add(s)
                    break
            else:
                new_states.append([c])
        states += new_states
    state_of = np.empty(len(predecessors), dtype=np.int64)
    for s, members in enumerate(states):
        state_of[members] = s
    return state_of, tuple(comparisons)
