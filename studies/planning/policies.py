"""Learning curves for docs/acting.md: one goal, learned from rewards, on states that CRAFT learned and on pixels.

    python -m studies.planning.policies

makes the runs that `policies.jsonl` has not yet, and draws docs/img/policies.png. It takes about half an hour on
one CPU core. States are those of CRAFT with a class of functions that is small, the cell of each figure, so that
there is no network to train.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from craftrl import CRAFT, FiniteOracle
from craftrl.deploy import StateObservation
from craftrl.envs import PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.figures import BLUE, GREEN, ORANGE, PURPLE, RED, picture
from examples.goals import ReachState, steps_to, success_rate
from examples.q_learning import TabularQ
from studies.planning.opponents import Curve, ppo_from_pixels, q_from_pixels

__all__ = ["GOALS", "LEARNERS", "ROWS", "draw", "run", "table"]

HERE = Path(__file__).parent
ROWS, PICTURE = HERE / "policies.jsonl", HERE.parents[1] / "docs/img/policies.png"
SEEDS = 3
# The far corner, where walls stop whoever goes too far, and a cell in the middle, where nothing does.
GOALS = {"3x3, corner": (6, 3, 2, (2, 2)), "4x4, corner": (10, 4, 4, (3, 3)), "4x4, middle": (10, 4, 4, (2, 2))}


@cache
def world_of(goal: str) -> PixelsExBMDP:
    horizon, size, walkers, _ = GOALS[goal]
    return PixelsExBMDP(horizon, size, walkers)


@cache
def model_of(goal: str, videos: int = 3000) -> CRAFT:
    """States from videos of two agents without actions; CRAFT finds which of the figures they move."""
    world = world_of(goal)
    figures = [partial(world.find_figure, figure=i) for i in range(world.n_walkers + 1)]
    tau = collect(world, world.policies(), videos, seed=0).tau
    return CRAFT(FiniteOracle(figures, n_values=world.plan.n_cells), stationary=True).fit(tau)


def pixels(goal: str) -> ReachState:
    """The task, seen as images."""
    world = world_of(goal)
    cell = world.plan.cells.tolist().index(list(GOALS[goal][3]))
    return ReachState(ExBMDPEnv(world), lambda env: env.unwrapped.state == cell)


def states(goal: str) -> StateObservation:
    """The same, seen as learned states."""
    return StateObservation(pixels(goal), model_of(goal))


def q_table(goal: str, seed: int, steps: int = 1500, every: int = 25) -> Curve:
    """Tabular Q-learning, evaluated as the others are."""
    env, test, learner = states(goal), states(goal), TabularQ(seed=seed)
    rows: Curve = []
    while learner.steps < steps:
        learner.learn(env, every)
        rows.append((learner.steps, success_rate(test, learner.act, 100)))
    return rows


LEARNERS: dict[str, tuple[str, Callable[[str, int], Curve]]] = {
    "Q-table on states": (BLUE, q_table),
    "PPO on states": (GREEN, lambda goal, seed: ppo_from_pixels(lambda: states(goal), 6000, seed, 256)),
    "DQN on states": (PURPLE, lambda goal, seed: q_from_pixels(lambda: states(goal), 6000, seed, 250)),
    "PPO from pixels": (RED, lambda goal, seed: ppo_from_pixels(lambda: pixels(goal), 20_000, seed, 512)),
    "DQN from pixels": (ORANGE, lambda goal, seed: q_from_pixels(lambda: pixels(goal), 10_000, seed, 500)),
}


def run() -> list[dict[str, Any]]:
    """All rows; those that are there already are not made again."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    done = {(row["goal"], row["learner"], row["seed"]) for row in rows}
    for learner, (_, learn) in LEARNERS.items():
        for goal in GOALS:
            for seed in range(SEEDS):
                if (goal, learner, seed) not in done:
                    curve = learn(goal, seed)
                    row = {"goal": goal, "learner": learner, "seed": seed, "steps_to_95": steps_to(0.95, curve)}
                    steps, success = zip(*curve)
                    rows.append({**row, "steps": steps, "success": success})
                    with ROWS.open("a") as file:
                        file.write(json.dumps(rows[-1]) + "\n")
                    print(*row.values(), flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The environment steps to 95%, seed by seed, as the page shows them."""
    lines = [f"| steps to 95%, by seed | {' | '.join(GOALS)} |", "|---" * (1 + len(GOALS)) + "|"]
    for learner in LEARNERS:
        cells = []
        for goal in GOALS:
            found = [row["steps_to_95"] for row in rows if (row["goal"], row["learner"]) == (goal, learner)]
            cells.append(", ".join("never" if steps is None else str(steps) for steps in found) or "not run")
        lines.append(f"| {learner} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], path: Path = PICTURE) -> None:
    """Success over environment steps, on a logarithmic scale; a thin line for each seed."""
    with picture(path, 9.6, 3.1) as figure:
        panels = figure.subplots(1, len(GOALS), sharey=True)
        for panel, goal in zip(panels, GOALS):
            for learner, (colour, _) in LEARNERS.items():
                found = [row for row in rows if (row["goal"], row["learner"]) == (goal, learner)]
                for i, row in enumerate(found):
                    score = [100 * s for s in row["success"]]
                    panel.plot(row["steps"], score, color=colour, lw=1, alpha=0.8, label=None if i else learner)
            panel.set_xscale("log")
            panel.set_title(goal)
            panel.set_xlabel("environment steps")
        panels[0].set_ylabel("episodes that reach the goal, %")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(LEARNERS))


if __name__ == "__main__":
    made = run()
    draw(made)
    print(table(made))
