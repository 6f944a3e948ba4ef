"""Labelled transitions needed to reach goals, with states learned from videos.

A technique is fitted once; then it is measured what it reaches with each number of labels.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse.csgraph import dijkstra

from craftrl.paper.sweep import seed_of
from craftrl.planning import Grounding, LatentActions, StateGraph, find_latent_actions
from studies.agreement import accuracy_by_group, agreement
from studies.planning.arenas import Arena, arena_of
from studies.planning.encoders import TRUE, accuracy_of, fitted, training_of
from studies.planning.report import LEVEL, draw, report
from studies.planning.spec import ENCODERS, Run, options, runs
from studies.planning.trials import curves, moves_of, random_success
from studies.study import Study

WITH_LATENT = ("craft", "true")  # whose latent actions are tried as well


def run_one(run: Run) -> dict[str, Any]:
    """Success for each number of labels, what random actions reach, and how many moves there are."""
    arena = arena_of(run)
    if run.technique not in WITH_LATENT:  # they are networks
        arena = arena.drawn()
    seeds = seed_of("trials", run.world, run.size, run.walkers, run.n, run.seed).spawn(2)
    goals_seed, labels_seed = (int(s.generate_state(1)[0]) for s in seeds)  # the same for all techniques
    goals, moves = arena.goals(run.goals, goals_seed), moves_of(TRUE, arena.of_true_states())[0]
    start = time.perf_counter()
    if run.technique in ENCODERS:
        row = _of_encoder(run, arena, goals_seed, labels_seed)
    elif run.technique == "cloning":
        from studies.planning.cloning import cloning_success

        row = {"offline": cloning_success(arena, goals, run.labels, labels_seed, training_of(run).to_device())}
    else:
        row = _of_rewards(run, arena, goals[0].state, moves)
    row = {"seconds_trials": round(time.perf_counter() - start, 1), **row}
    of_world = {"n_moves": len(moves.edges), "n_states_true": len(np.unique(moves.edges))}
    return {**row, "chance": random_success(arena.make(), goals), **of_world}


def _of_encoder(run: Run, arena: Arena, goals_seed: int, labels_seed: int) -> dict[str, Any]:
    if run.technique == "true":
        arena = arena.of_true_states()
    start = time.perf_counter()
    model = fitted(run, arena)
    seconds, start = time.perf_counter() - start, time.perf_counter()
    moves, at = moves_of(model, arena)
    latent = find_latent_actions(moves) if run.technique in WITH_LATENT else None
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

    LAPO names them itself, in as many classes as there are actions, which it is given; for it there is one relabelling.
    """
    actions = arena.data.train.truth.actions
    if latent is not None:
        found = agreement(latent, at[:, :-1].ravel(), at[:, 1:].ravel(), actions.ravel())
        return {"n_latent": latent.n, "agreement": found}
    if getattr(model, "rival", None) is None or not hasattr(model.rival.network, "codes"):
        return {}
    tau = arena.data.train.tau
    codes = model.rival.latent_actions(tau.rows(np.arange(tau.n)), arena.n_actions)
    one = np.zeros(actions.size, dtype=np.int64)
    return {"agreement": {"by_group": accuracy_by_group(codes.ravel(), actions.ravel(), one)}}


def _of_rewards(run: Run, arena: Arena, goal: int, moves: StateGraph) -> dict[str, Any]:
    """PPO or Q-learning for the first of the goals alone, with a reward for reaching it."""
    from examples.goals import ReachState, steps_to
    from studies.planning.opponents import learn

    curve = learn(run.technique, lambda: ReachState(arena.make(), lambda env: env.state == goal), run.steps, run.seed)
    return {
        "steps_tried": [steps for steps, _ in curve],
        "success": [score for _, score in curve],
        "steps_needed": steps_to(LEVEL, curve),
        "goal_distance": int(dijkstra(moves.total, indices=arena.start, unweighted=True)[goal]),
    }


STUDY = Study(
    "planning",
    runs,
    run_one,
    report,
    2,
    3,
    " in larger worlds: 4x4 cells, four rooms, MiniGrid, Freeway",
    draw,
    options,
    (
        "--workers 2",
        "--worlds pixels --techniques craft ppo dqn --seeds 3",
        "--worlds pixels --techniques craft latent-action --walkers 0 2 4 8",
        "--full --device cuda --out results/planning-full",
    ),
)
