"""How well the learned graph of states recovers the true one, edge by edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from craftrl.arrays import Ints
from craftrl.core.relabelling import best_matching
from craftrl.evaluation import confusion
from craftrl.planning import StateGraph


def tables_of(labels: Ints, agent: Ints) -> list[Ints]:
    """How often each state of h was followed by each of h+1, one table for each step, from labels (n, H)."""
    graph = StateGraph.from_states(labels, agent, min_share=0)
    ends = np.cumsum((0, *graph.sizes))
    whole = graph.total.toarray()
    return [whole[a:b, b:c] for a, b, c in zip(ends, ends[1:], ends[2:])]


def match_to_truth(labels: Ints, truth: Ints) -> list[Ints]:
    """For each h, the true state of each learned one: the one-to-one matching that most trajectories agree with.

    `labels` and `truth` have shape (n, H); a learned state that is left over is matched with -1.
    """
    matching = []
    for learned, true in zip(labels.T, truth.T):
        table = confusion(learned, true)
        partner = np.full(max(len(table), 1), -1)  # a step without any state has one that nobody visits
        for state, true_state in best_matching(table).items():
            partner[state] = true_state
        matching.append(partner)
    return matching


def recovery(
    learned: Sequence[Ints], true: Sequence[Ints], matching: Sequence[Ints], min_share: float = 0.0
) -> tuple[float, float]:
    """Precision and recall of the learned edges; `true` are `world.reachable_pairs()`.

    An edge from or to a learned state without a partner (-1) counts as found and wrong. `min_share` leaves out
    learned edges with less of the transitions at their step, such as those that a few mislabelled trajectories make.
    """
    found = right = there = 0
    for counts, actions, partner, partner_next in zip(learned, true, matching, matching[1:]):
        s, t = np.nonzero((counts > 0) & (counts >= min_share * counts.sum()))
        named: Any = (partner[s] >= 0) & (partner_next[t] >= 0)
        found += len(s)
        right += int((actions[partner[s][named], partner_next[t][named]] > 0).sum())
        there += int((actions > 0).sum())
    return right / found if found else 1.0, right / there if there else 1.0
