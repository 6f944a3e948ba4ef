"""Q-learning on states that CRAFT learned from videos: the goal is one corner of a 4 x 4 grid.

Four other figures walk about and the light flickers; on learned states none of that is left, and a table suffices.

    python examples/tabular_on_states.py --steps 600 --seeds 3
"""

import argparse
from functools import partial

from craftrl import CRAFT, FiniteOracle
from craftrl.deploy import StateObservation
from craftrl.envs import PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.planning import Curve, ReachState, TabularQ, success_rate

world = PixelsExBMDP(horizon=10, size=4, n_walkers=4)
corner = world.plan.n_cells - 1


def learned_states(videos: int) -> CRAFT:
    """CRAFT, which has to find out which of the five figures the agents move.

    The class of functions is small, so that this takes seconds: the cell of each figure. `NeuralOracle()` in its place
    learns from the pixels alone, and takes minutes.
    """
    figures = [partial(world.find_figure, figure=i) for i in range(world.n_walkers + 1)]
    tau = collect(world, world.policies(), videos, seed=0).tau
    return CRAFT(FiniteOracle(figures, n_values=world.plan.n_cells), stationary=True).fit(tau)


def learn(env: StateObservation, steps: int, seed: int, every: int = 50) -> Curve:
    """Success without random actions, after every 50 environment steps."""
    learner, rows = TabularQ(seed=seed), []
    while not rows or learner.steps_ < steps:
        learner.partial_fit(env, every)
        rows.append((learner.steps_, success_rate(env, learner.act, episodes=20, seed=1000)))
    return Curve.of(rows)


def main(argv: list[str] | None = None) -> list[Curve]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--videos", type=int, default=3000, help="of each of the two agents")
    parser.add_argument("--steps", type=int, default=600, help="in the environment")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(argv)
    model = learned_states(args.videos)
    print(f"{model.n_states_total_} states, from videos without actions")
    env = StateObservation(ReachState(ExBMDPEnv(world), lambda env: env.unwrapped.state == corner), model)
    curves = [learn(env, args.steps, seed) for seed in range(args.seeds)]
    print("steps    ", *(f"{steps:4d}" for steps in curves[0].steps))
    for seed, curve in enumerate(curves):
        print(f"seed {seed}, %", *(f"{100 * score:4.0f}" for score in curve.score), "  95% after", curve.first(0.95))
    return curves


if __name__ == "__main__":
    main()
