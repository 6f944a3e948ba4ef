"""What the states of a trace are called in a report.

Where every step has an encoder of its own, a state is called by its number. Where one encoder serves all steps, its
numbers are the names, and those of the trace have to be translated: the states found at a step were matched with it
(`Matching`). The predecessors of later runs are the states of the run before, whose names are not kept; they are
recognised by their moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from craftrl.core.trace import StepTrace
from craftrl.estimators.craft import CRAFT
from craftrl.states.visits import count_visits

__all__ = ["Names", "agent_names", "pairs_of_agents", "state_names"]

Node = tuple[int, int]
ALIKE = 0.8  # share of their moves that a predecessor and a state must have in common to be taken for the same


@dataclass(frozen=True)
class Names:
    """Names by step and number.

    found   of state s of step h, as iteration h-1 found it
    before  of predecessor s in iteration h
    """

    found: dict[Node, str]
    before: dict[Node, str]


def agent_names(model: CRAFT) -> tuple[str, ...]:
    """The agents as the report calls them: by name, or "agent 0" where they have but a number."""
    return tuple(name if isinstance(name, str) else f"agent {name}" for name in model.agents_)


def pairs_of_agents(model: CRAFT) -> list[str]:
    """What each axis of the grid compares: the first agent with each of the others."""
    first, *others = agent_names(model)
    return [f"{first} against {other}" for other in others]


def state_names(model: CRAFT) -> Names:
    """The names of all states in the trace.

    With one encoder for all steps, two states of a step that are one to it are 3a and 3b; one that it does not know is
    "dropped 2", and a predecessor that is not recognised "unnamed 2".
    """
    found = [(step.h + 1, s) for step in model.trace_ for s in range(step.n_states)]
    before = [(step.h, s) for step in model.trace_ for s in range(len(step.spectra))]
    if not hasattr(model, "matching_"):
        return Names({node: str(node[1]) for node in found}, {node: str(node[1]) for node in before})
    shared = _matched(model)
    recognised = {node: s for step in model.trace_ for node, s in _recognised(model, step, shared).items()}
    return Names(_lettered(found, shared, "dropped"), _lettered(before, recognised, "unnamed"))


def _lettered(nodes: list[Node], numbers: dict[Node, int], unknown: str) -> dict[Node, str]:
    """Numbers as names, with a letter where two of one step have the same."""
    names = {}
    for h, s in nodes:
        number = numbers.get((h, s))
        alike = [node for node in nodes if node[0] == h and numbers.get(node) == number]
        letter = chr(ord("a") + alike.index((h, s))) if len(alike) > 1 else ""
        names[h, s] = f"{unknown} {s}" if number is None else f"{number}{letter}"
    return names


def _matched(model: CRAFT) -> dict[Node, int]:
    """The one encoder's number of each state found: that of most observations that were matched to it."""
    read = count_visits(model.matching_.labels.ravel(), model.labels_.ravel())
    nodes = zip(model.matching_.nodes, np.asarray(model.matching_.state_of).tolist())
    return {(int(h), int(s)): int(read[g].argmax()) for (h, s), g in nodes if 0 <= g < len(read) and read[g].any()}


def _recognised(model: CRAFT, step: StepTrace, shared: dict[Node, int]) -> dict[Node, int]:
    """The one encoder's number of each predecessor: the state at h whose moves are the same, if it is sure."""
    labels, n = model.labels_, int(model.n_states_total_)
    moves = count_visits(labels[:, step.h - 1], labels[:, step.h], sizes=(n, n))
    mine = np.zeros((len(step.spectra), n))
    for cluster in step.clusters:
        if (step.h + 1, cluster.state) in shared:
            mine[cluster.s_pred, shared[step.h + 1, cluster.state]] += cluster.size
    common = _in_common(mine, moves)
    pairs = ((p, int(common[p].argmax())) for p in range(len(mine)))
    return {(step.h, p): s for p, s in pairs if common[p, s] >= ALIKE and common[:, s].argmax() == p}


def _in_common(mine: NDArray[np.float64], moves: NDArray[np.integer]) -> NDArray[np.float64]:
    """For each row of `mine` and each of `moves`, the share of their entries that they have in common."""
    least = np.minimum(mine[:, None], moves[None]).sum(axis=2)
    most = np.maximum(mine[:, None], moves[None]).sum(axis=2)
    return np.asarray(least / np.maximum(most, 1))
