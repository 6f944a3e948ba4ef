"""Latent actions as a table: one line per transition of the videos."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_kind
from craftrl.data.labels import as_labels
from craftrl.errors import InvalidDataError
from craftrl.planning.graph import StateGraph
from craftrl.planning.latent import LatentActions

__all__ = ["latent_action_columns"]


def latent_action_columns(states: Any, agent: Any, moves: StateGraph, latent: LatentActions) -> dict[str, NDArray[Any]]:
    """The columns of that table, from states (n, H), -1 where a trajectory is over, and agents (n,), numbers or names.

    trajectory, agent, h   which transition: from step h, counted from 1, to the next
    state, successor       the learned states before and after it
    action                 the latent action, -1 where the move is so rare that it was taken for a misread frame
    certainty              how likely that action is, given the move: less than 1 where several make it
    group                  the group of its state: numbers of actions mean the same within a group alone
    """
    check_kind("moves", moves, StateGraph, "a StateGraph, as StateGraph.from_model gives it")
    check_kind("latent", latent, LatentActions, "LatentActions, as find_latent_actions gives them")
    given, k = as_labels("states", states, 2), np.asarray(agent)
    if len(k) != len(given) or latent.n_states != moves.n:
        raise InvalidDataError(
            f"There must be an agent for each of {len(given)} trajectories, and latent actions of {moves.n} "
            f"states; {len(k)} and {latent.n_states} were given."
        )
    nodes = moves.nodes(given)
    row, step = np.nonzero((nodes[:, :-1] >= 0) & (nodes[:, 1:] >= 0))
    s, t = nodes[row, step], nodes[row, step + 1]
    return {
        "trajectory": row,
        "agent": k[row],
        "h": step + 1,
        "state": given[row, step],
        "successor": given[row, step + 1],
        "action": latent.of_moves(s, t),
        "certainty": latent.certainty(s, t),
        "group": latent.consistent[s],
    }
