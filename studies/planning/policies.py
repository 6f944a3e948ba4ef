"""Learning curves of one goal, learned from rewards, on states that CRAFT learned and on pixels.

    python -m studies.planning.policies

makes the runs that `policies.jsonl` has not yet. It takes about half an hour on one CPU core. States are those of CRAFT
with a class of functions that is small, the cell of each figure, so that there is no network to train.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from craftrl import CRAFT
from craftrl.deploy import StateObservation
from craftrl.envs import PixelsExBMDP
from craftrl.envs.gym import ExBMDPEnv
from examples.goals import ReachState, steps_to, success_rate
from examples.q_learning import TabularQ, learned_states
from studies.planning.opponents import Curve, ppo_from_pixels, q_from_pixels
from studies.study import commit

__all__ = ["GOALS", "LEARNERS", "ROWS", "main", "q_table"]

ROWS = Path(__file__).parent / "policies.jsonl"
SEEDS = 3
# The far corner, where walls stop whoever goes too far, and a cell in the middle, where nothing does.
GOALS = {"3x3, corner": (6, 3, 2, (2, 2)), "4x4, corner": (10, 4, 4, (3, 3)), "4x4, middle": (10, 4, 4, (2, 2))}


@cache
def model_of(horizon: int, size: int, walkers: int) -> CRAFT:
    return learned_states(PixelsExBMDP(horizon, size, walkers), 3000)


def pixels(goal: str) -> ReachState:
    """The task, seen as images."""
    horizon, size, walkers, place = GOALS[goal]
    world = PixelsExBMDP(horizon, size, walkers)
    cell = world.plan.cells.tolist().index(list(place))
    return ReachState(ExBMDPEnv(world), lambda env: env.unwrapped.state == cell)


def states(goal: str) -> StateObservation:
    """The same, seen as learned states."""
    return StateObservation(pixels(goal), model_of(*GOALS[goal][:3]))


def q_table(goal: str, seed: int, steps: int = 1500, every: int = 25) -> Curve:
    """Tabular Q-learning, evaluated as the others are."""
    env, test, learner = states(goal), states(goal), TabularQ(seed=seed)
    curve: Curve = []
    while learner.steps < steps:
        learner.learn(env, every)
        curve.append((learner.steps, success_rate(test, learner.act, 100)))
    return curve


LEARNERS: dict[str, Callable[[str, int], Curve]] = {
    "Q-table on states": q_table,
    "PPO on states": lambda goal, seed: ppo_from_pixels(lambda: states(goal), 6000, seed, 256),
    "DQN on states": lambda goal, seed: q_from_pixels(lambda: states(goal), 6000, seed, 250),
    "PPO from pixels": lambda goal, seed: ppo_from_pixels(lambda: pixels(goal), 20_000, seed, 512),
    "DQN from pixels": lambda goal, seed: q_from_pixels(lambda: pixels(goal), 10_000, seed, 500),
}


def main() -> None:
    """Add the rows that are missing."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    done = {(row["goal"], row["learner"], row["seed"]) for row in rows}
    for learner, learn in LEARNERS.items():
        for goal in GOALS:
            for seed in range(SEEDS):
                if (goal, learner, seed) not in done:
                    curve = learn(goal, seed)
                    row = {"goal": goal, "learner": learner, "seed": seed, "steps_to_95": steps_to(0.95, curve)}
                    row |= {"steps": [steps for steps, _ in curve], "success": [score for _, score in curve]}
                    with ROWS.open("a") as file:
                        file.write(json.dumps({**row, "commit": commit()}) + "\n")
                    print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
