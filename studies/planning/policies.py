"""Learning curves of one goal, learned from rewards, on states that CRAFT learned and on pixels.

    python -m studies.planning.policies results/policies

makes the rows of `policies.jsonl`. It takes about half an hour on one CPU core. States are those of CRAFT with a class
of functions that is small, the cell of each figure, so that there is no network to train.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from craftrl import CRAFT
from craftrl.deploy import StateObservation
from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from craftrl.paper.sweep import run_sweep
from examples.goals import ReachState, steps_to, success_rate
from examples.q_learning import TabularQ, learned_states
from studies.planning.opponents import Curve, learn
from studies.study import commit

# The far corner, where walls stop whoever goes too far, and a cell in the middle, where nothing does.
GOALS = {"3x3, corner": (6, 3, 2, (2, 2)), "4x4, corner": (10, 4, 4, (3, 3)), "4x4, middle": (10, 4, 4, (2, 2))}
LEARNERS: dict[str, tuple[str, int, int]] = {  # kind, environment steps at most, and between two evaluations
    "PPO on states": ("ppo", 6000, 256),
    "DQN on states": ("dqn", 6000, 250),
    "PPO from pixels": ("ppo", 20_000, 512),
    "DQN from pixels": ("dqn", 10_000, 500),
}


@dataclass(frozen=True)
class Run:
    goal: str
    learner: str
    seed: int


@cache
def model_of(horizon: int, size: int, walkers: int) -> CRAFT:
    return learned_states(PixelsExBMDP(horizon, size, walkers), 3000)


def task(goal: str, on_states: bool) -> Any:
    """Reach the goal, seen as images or as learned states."""
    horizon, size, walkers, place = GOALS[goal]
    world = PixelsExBMDP(horizon, size, walkers)
    cell = world.plan.cells.tolist().index(list(place))
    env = ReachState(ExBMDPEnv(world), lambda env: env.unwrapped.state == cell)
    return StateObservation(env, model_of(horizon, size, walkers)) if on_states else env


def q_table(goal: str, seed: int, steps: int = 1500, every: int = 25) -> Curve:
    """Tabular Q-learning, evaluated as the others are."""
    env, test, learner = task(goal, True), task(goal, True), TabularQ(seed=seed)
    curve: Curve = []
    while learner.steps < steps:
        learner.learn(env, every)
        curve.append((learner.steps, success_rate(test, learner.act, 100)))
    return curve


def run_one(run: Run) -> dict[str, Any]:
    if run.learner in LEARNERS:
        kind, steps, every = LEARNERS[run.learner]
        curve = learn(kind, lambda: task(run.goal, "states" in run.learner), steps, run.seed, every)
    else:
        curve = q_table(run.goal, run.seed)
    reached = {"steps_to_95": steps_to(0.95, curve)}
    return reached | {"steps": [steps for steps, _ in curve], "success": [score for _, score in curve]}


if __name__ == "__main__":
    learners = ["Q-table on states", *LEARNERS]
    settings = [Run(goal, learner, seed) for learner in learners for goal in GOALS for seed in range(3)]
    run_sweep("policies", settings, run_one, sys.argv[1], commit=commit())
