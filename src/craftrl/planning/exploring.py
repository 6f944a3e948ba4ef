"""Exploring: going where something is not known yet, and trying it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from craftrl.arguments import check_kind, check_method, check_whole
from craftrl.errors import InvalidParameterError
from craftrl.planning.acting import warn_of_violations
from craftrl.planning.grounding import Grounding
from craftrl.planning.paths import UnreachableGoal, plan_path
from craftrl.planning.reading import Reader

__all__ = ["Exploration", "explore"]

MOST_TRIES = 3  # of each action in a state that still has a move which is not grounded: it may be a misread frame
MAX_SEED = 2**31  # environments take seeds below this


@dataclass(frozen=True)
class Exploration:
    """What exploring took, and what it left.

    steps     actions taken in the environment
    episodes  episodes begun
    missing   moves that are not grounded yet
    finished  whether it ended because nothing was left to try that can be reached
    """

    steps: int
    episodes: int
    missing: tuple[tuple[int, int], ...]
    finished: bool


def explore(
    env: Any,
    model: Any,
    grounding: Grounding,
    *,
    steps: int | None = None,
    episodes: int | None = None,
    seed: int = 0,
) -> Exploration:
    """Ground moves by trying: each time go to the nearest state with something to try, and try it.

    Every transition seen is added to `grounding`. It ends when nothing is left to try in any state that known moves
    lead to from the start, or when the budget is used up.

    steps, episodes  the budget: actions in the environment, episodes; one of them or both
    seed             of the environment's episodes
    """
    check_method("model", model, "encode", "a fitted model")
    check_kind("grounding", grounding, Grounding, "a Grounding")
    check_whole("seed", seed)
    for name, budget in {"steps": steps, "episodes": episodes}.items():
        if budget is not None:
            check_whole(name, budget, 0)
    if steps is None and episodes is None:
        raise InvalidParameterError("explore must have a budget; none was given; pass steps=1000 or episodes=100.")
    rng, reader, begun, finished = np.random.default_rng(seed), Reader(env, model, grounding), 0, False
    while not finished and (steps is None or reader.steps < steps) and (episodes is None or begun < episodes):
        reader.reset(int(rng.integers(MAX_SEED)))
        begun += 1
        finished = _nothing_left(grounding, reader.node)
        while not (finished or reader.over or (steps is not None and reader.steps >= steps)):
            before, action = reader.node, _choose(grounding, reader)
            if action is None:
                break
            reader.step(action)
            if before >= 0 and reader.node >= 0:
                grounding.add(before, action, reader.node)
    warn_of_violations(grounding)
    return Exploration(reader.steps, begun, tuple(grounding.missing()), finished)


def _to_try(grounding: Grounding, node: int) -> bool:
    """Whether something is left to try in a state."""
    if not grounding.moves.out_degree[node] and grounding.nodes.steps_of(node) == grounding.nodes.H:
        return False  # no step is left
    tried, known = grounding.tried(node), grounding.belief(node).known
    if not known.all():
        return True
    return bool(len(grounding.unexplained(node)) and tried.min() < MOST_TRIES)


def _choose(grounding: Grounding, reader: Reader) -> int | None:
    """The next action: try here, or go on to the nearest state with something to try; None if there is none."""
    here = reader.node
    if here < 0:
        return 0
    if _to_try(grounding, here):
        return grounding.next_trial(here)
    open_ = [node for node in range(grounding.nodes.n) if _to_try(grounding, node)]
    try:
        return plan_path(grounding, here, open_).actions[0] if open_ else None
    except UnreachableGoal:
        return None


def _nothing_left(grounding: Grounding, start: int) -> bool:
    """Whether nothing is left to try in any state that known moves lead to from the start."""
    if start < 0:
        return False
    known, n = grounding.known_moves(), grounding.nodes.n
    graph = csr_array((np.ones(len(known.s)), (known.s, known.t)), shape=(n, n))
    reached = np.isfinite(dijkstra(graph, indices=start, unweighted=True))
    return not any(_to_try(grounding, int(node)) for node in np.flatnonzero(reached))
