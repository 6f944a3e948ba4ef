"""One run of the study of planning: fit a technique once, then measure what it reaches with each number of labels."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from craftrl.paper.sweep import seed_of
from craftrl.planning import Grounding, LatentActions, StateGraph, find_latent_actions
from studies.agreement import accuracy_by_group, agreement
from studies.objectives import LatentAction
from studies.planning.arenas import Arena, Goals, arena_of
from studies.planning.encoders import OneEncoder, TrueStates, accuracy_of, fitted, training_of
from studies.planning.picture import draw
from studies.planning.report import report
from studies.planning.spec import ENCODERS, Run
from studies.planning.trials import curves, moves_of, random_success

__all__ = ["draw", "report", "run_one"]

WITH_LATENT = ("craft", "true")  # whose latent actions are tried as well
LEVEL = 0.95  # success from which on a goal counts as learned by PPO and Q-learning


def run_one(run: Run) -> dict[str, Any]:
    """Success for each number of labels, what random actions reach, and how many moves there are."""
    arena = arena_of(run)
    if run.technique not in ("craft", "true"):  # they are networks
        arena = arena.drawn()
    goals_seed, labels_seed = (int(s.generate_state(1)[0]) for s in _seeds(run))
    goals = arena.goals(run.goals, goals_seed)
    if run.technique in ENCODERS:
        row = _of_encoder(run, arena, goals_seed, labels_seed)
    elif run.technique == "cloning":
        row = _of_cloning(run, arena, goals, labels_seed)
    else:
        row = _of_rewards(run, arena, goals)
    return {**row, "chance": random_success(arena.make(), goals), **_of_the_world(arena)}


def _seeds(run: Run) -> list[Any]:
    """One for the goals, one for the labels: the same for all techniques."""
    return list(seed_of("trials", run.world, run.size, run.walkers, run.n, run.seed).spawn(2))


def _of_the_world(arena: Arena) -> dict[str, Any]:
    moves = _true_moves(arena)
    return {"n_moves": len(moves.edges), "n_states_true": len(np.unique(moves.edges))}


def _true_moves(arena: Arena) -> StateGraph:
    return moves_of(OneEncoder(TrueStates(), (1,)), arena.told())[0]


# -- encoders ----------------------------------------------------------------------------------------------------


def _of_encoder(run: Run, arena: Arena, goals_seed: int, labels_seed: int) -> dict[str, Any]:
    if run.technique == "true":
        arena = arena.told()
    model, seconds = fitted(run, arena)
    start = time.perf_counter()
    moves, at = moves_of(model, arena)
    latent = find_latent_actions(moves.counts) if run.technique in WITH_LATENT else None
    goals = arena.goals(run.goals, goals_seed)
    success, stopped_there = {}, {}
    for ending, known in {"": None, **({"_latent": latent} if latent else {})}.items():
        new = partial(Grounding, moves, arena.n_actions, known)
        for source, found in curves(model, arena, new, at, goals, run.labels, labels_seed).items():
            success[source + ending] = found["success"]
            stopped_there[source + ending] = found["stopped_there"]
    return {
        **success,
        "stopped_there": stopped_there,
        "accuracy": accuracy_of(model, arena),
        "n_states": int(moves.n),
        "n_moves_found": len(moves.edges),
        **_named_actions(model, latent, at, arena),
        "seconds_fit": round(seconds, 1),
        "seconds_trials": round(time.perf_counter() - start, 1),
    }


def _named_actions(model: Any, latent: LatentActions | None, at: Any, arena: Arena) -> dict[str, Any]:
    """How often latent actions are the true ones up to relabelling, over all transitions of the videos.

    LAPO names them itself, in as many classes as there are actions, which it is told; for it there is one relabelling.
    """
    actions = arena.data.train.truth.actions
    if latent is not None:
        found = agreement(latent, at[:, :-1].ravel(), at[:, 1:].ravel(), actions.ravel())
        return {"n_latent": latent.n, "agreement": {name: float(value) for name, value in vars(found).items()}}
    rival = getattr(model, "rival", None)
    if not isinstance(rival, LatentAction):
        return {}
    tau = arena.data.train.tau
    rival.cluster(tau)  # its codes are read through the encoders of single steps
    codes = rival.latent_actions(np.stack([tau.at(h) for h in range(1, tau.H + 1)], axis=1), arena.n_actions)
    one = np.zeros(actions.size, dtype=np.int64)
    return {"agreement": {"by_group": accuracy_by_group(codes.ravel(), actions.ravel(), one)}}


# -- learners without states -------------------------------------------------------------------------------------


def _of_cloning(run: Run, arena: Arena, goals: Goals, labels_seed: int) -> dict[str, Any]:
    from studies.planning.cloning import cloning_success

    start = time.perf_counter()
    device = training_of(run).to_device()
    success = cloning_success(arena, goals, run.labels, labels_seed, device)
    return {"offline": success, "seconds_trials": round(time.perf_counter() - start, 1)}


def _of_rewards(run: Run, arena: Arena, goals: Goals) -> dict[str, Any]:
    """PPO or Q-learning for the first of the goals alone, with a reward for reaching it."""
    from examples.goals import ReachState, steps_to
    from studies.planning.opponents import ppo_from_pixels, q_from_pixels

    start, goal = time.perf_counter(), int(goals.states[0])
    learn = ppo_from_pixels if run.technique == "ppo" else q_from_pixels

    def task() -> Any:
        return ReachState(arena.make(), lambda env: env.state == goal)

    curve = learn(task, run.steps, run.seed)
    return {
        "steps_tried": [steps for steps, _ in curve],
        "success": [score for _, score in curve],
        "steps_needed": steps_to(LEVEL, curve),
        "goal_distance": _distance(arena, goal),
        "seconds_trials": round(time.perf_counter() - start, 1),
    }


def _distance(arena: Arena, goal: int) -> int:
    """How many moves the goal is away from the start."""
    graph = _true_moves(arena).total
    return int(dijkstra(graph, indices=arena.start, unweighted=True)[goal])
