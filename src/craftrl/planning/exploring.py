"""Exploring: going where something is not known yet, and trying it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from craftrl.arguments import check_flag, check_kind, check_method, check_whole
from craftrl.errors import InvalidParameterError
from craftrl.planning.acting import warn_of_violations
from craftrl.planning.grounding import Grounding
from craftrl.planning.plan import plan_path
from craftrl.planning.reading import Reader

__all__ = ["Exploration", "explore"]

MOST_TRIES = 3  # of each action in a state with a move that no action makes: a misread frame may have shown it
TRIES = 5  # of each action in a state where it has several successors
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
    every_action: bool = False,
) -> Exploration:
    """Ground moves by trying: each time go to the nearest state with something to try, and try it.

    Every transition seen is added to `grounding`. It ends when nothing is left to try in any state that known moves
    lead to from the start, or when the budget is used up.

    steps, episodes  the budget: actions in the environment, episodes; one of them or both
    seed             of the environment's episodes
    every_action     whether to try every action in every state; else a state is done with once all moves that the
                     videos show there are grounded
    """
    check_method("model", model, "encode", "a fitted model")
    check_kind("grounding", grounding, Grounding, "a Grounding")
    check_whole("seed", seed)
    for name, budget in {"steps": steps, "episodes": episodes}.items():
        if budget is not None:
            check_whole(name, budget, 0)
    if steps is None and episodes is None:
        raise InvalidParameterError("explore must have a budget; none was given; pass steps=1000 or episodes=100.")
    check_flag("every_action", every_action)
    reader, rng, begun, finished = Reader(env, model, grounding), np.random.default_rng(seed), 0, False
    while not finished and (steps is None or reader.steps < steps) and (episodes is None or begun < episodes):
        reader.reset(int(rng.integers(MAX_SEED)))
        begun += 1
        finished = not _ways_to_try(grounding, reader.believed, every_action)
        while not (finished or reader.over or (steps is not None and reader.steps >= steps)):
            action = _choose(grounding, reader.believed, every_action)
            if action is None:
                break
            reader.step(action, learn=True)
    warn_of_violations(grounding)
    return Exploration(reader.steps, begun, tuple(grounding.missing()), finished)


def _to_try(grounding: Grounding, node: int, every_action: bool) -> bool:
    """Whether something is left to try in a state."""
    here = grounding.outcomes(node)
    if grounding.graph.H is not None and grounding.graph.step(node) == grounding.graph.H:
        return False  # no action follows
    if every_action and not here.tried.all():
        return True
    if grounding.slips:
        return bool(here.n_videos and here.tried.min() < TRIES)
    return bool(here.left.any() and here.tried.min() < MOST_TRIES)


def _choose(grounding: Grounding, here: int, every_action: bool) -> int | None:
    """The next action: try here, or go on to the nearest state with something to try; None if there is none."""
    if here < 0:
        return 0
    if _to_try(grounding, here, every_action):
        tried = grounding.outcomes(here).tried
        return int(tried.argmin()) if grounding.slips else grounding.next_trial(here)
    goals = _ways_to_try(grounding, here, every_action)
    return plan_path(grounding, here, goals).actions[0] if goals else None


def _ways_to_try(grounding: Grounding, start: int, every_action: bool) -> list[int]:
    """The states with something to try that known moves lead to."""
    if start < 0:
        return [0]
    known, n = grounding.known_moves(), grounding.graph.n
    graph = csr_array((np.ones(len(known.s)), (known.s, known.t)), shape=(n, n))
    reached = np.flatnonzero(np.isfinite(dijkstra(graph, indices=start, unweighted=True)))
    return [int(node) for node in reached if _to_try(grounding, int(node), every_action)]
