"""Clusters to states: which successors of different predecessors are the same state.

Paper: Algorithm 2, Lines 12-15 and 22-45
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from craftrl.core.oracle import Separation
from craftrl.core.trace import Comparison

__all__ = ["CHANCE_HALF", "Merged", "merge_clusters", "state_of_cluster"]

Merged = tuple[list[list[int]], tuple[Comparison, ...]]  # states, each the list of its clusters; every comparison made

CHANCE_HALF = 0.5  # L(g) lies in [0, 2] and chance is 1: above 1/2 the two are not separable
NOTHING_TOLD = 0.75  # what it takes to join two clusters of one predecessor, whose log-odds differ


def merge_clusters(predecessors: Sequence[int], separation: Separation, strays: bool = False) -> Merged:
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
            candidates = states + new_states if strays else states
            for s, loss in _losses(separation, c, candidates, () if strays else merged_already):
                members = candidates[s]
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
    return states, tuple(comparisons)


def _losses(
    separation: Separation, new: int, states: Sequence[Sequence[int]], but: Collection[int]
) -> Iterator[tuple[int, float]]:
    """The number of each state, leaving out those in `but`, and L(g) of the cluster against it.

    One after the other, since the first that merges is the last that is needed and some oracles train for each; all at
    once where the oracle's answer has a method `losses` for that.
    """
    at_once = getattr(separation, "losses", None)
    known = None if at_once is None else at_once(new, states)
    for s, members in enumerate(states):
        if s not in but:
            yield s, separation(new, members) if known is None else float(known[s])


def state_of_cluster(states: Sequence[Sequence[int]], n_clusters: int) -> NDArray[np.int64]:
    """The state of each cluster; one entry more, the last, is -1, so that cluster -1 (none) has state -1."""
    state_of = np.full(n_clusters + 1, -1, dtype=np.int64)
    for s, members in enumerate(states):
        state_of[list(members)] = s
    return state_of
