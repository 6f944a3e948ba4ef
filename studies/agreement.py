"""How often latent actions are the true ones, up to a relabelling."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from craftrl.core.relabelling import best_matching
from craftrl.evaluation import count_visits
from craftrl.planning import LatentActions

CLEAR = 0.9  # how likely one latent action must be for a move to be clearly its


def agreement(latent: LatentActions, s: ArrayLike, t: ArrayLike, true_actions: ArrayLike) -> dict[str, float]:
    """Of transitions s -> t (m,) with true actions (m,), the share whose latent action is the true one.

    by_group  up to one relabelling in each group of states whose names are said to agree
    overall   up to one relabelling for all states
    by_state  up to one relabelling in each state. More than by_group where names were said to agree and do not
    ceiling   the most that any function of state and successor could reach: a move that two actions make is
              right for one of them at best
    clear     as by_group, of those transitions alone whose move one latent action makes (`CLEAR`), so that bumps, which
              several may make, do not blur it: are names that are claimed right?
    clear_share  how many transitions those are
    largest   the share of transitions that leave states of the largest group

    Those with an unknown action, -1, are left out; those that have no latent action count as wrong.
    """
    known = np.asarray(true_actions) >= 0
    start, end, action = (np.asarray(x)[known] for x in (s, t, true_actions))
    code = latent.of_moves(start, end)
    inside = (start >= 0) & (start < latent.n_states)
    group = np.where(inside, latent.group[np.where(inside, start, 0)], -1)
    clear = latent.certainty(start, end) >= CLEAR
    _, move = np.unique(np.stack([start, end]), axis=1, return_inverse=True)
    most_frequent = count_visits(move.ravel(), action).max(axis=1, initial=0).sum()
    return {
        "by_group": accuracy_by_group(code, action, group),
        "overall": accuracy_by_group(code, action, np.zeros_like(start)),
        "by_state": accuracy_by_group(code, action, start),
        "ceiling": float(most_frequent / max(len(action), 1)),
        "clear": accuracy_by_group(code[clear], action[clear], group[clear]),
        "clear_share": float(clear.mean()) if len(clear) else 0.0,
        "largest": float((group == 0).mean()) if len(group) else 0.0,
    }


def accuracy_by_group(codes: ArrayLike, truth: ArrayLike, group: ArrayLike) -> float:
    """Share of codes (m,) that are right under the best one-to-one relabelling of each group (m,); -1 is wrong."""
    tables = count_visits(group, codes, truth)
    hits = sum(int(table[r, c]) for table in tables for r, c in best_matching(table).items())
    return hits / max(np.size(truth), 1)
