"""Learners of stable-baselines3 on learned states and on pixels: the same goal, the same code, another observation.

The goal is a cell in the middle of a 4 x 4 grid, where no wall stops whoever goes too far: one has to see where one is.

    python -m examples.sb3_on_states --steps 6000 --seeds 3
"""

import argparse
from functools import partial

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback

from craftrl import CRAFT, FiniteOracle
from craftrl.deploy import StateObservation
from craftrl.envs import PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from examples.goals import ReachState, success_rate

world = PixelsExBMDP(horizon=10, size=4, n_walkers=4, pixels=36)  # the smallest images that CnnPolicy takes
goal = world.plan.cells.tolist().index([2, 2])
figures = [partial(world.find_figure, figure=i) for i in range(5)]  # one of them is the agents', and CRAFT finds which
OFTEN = {"n_steps": 128, "n_epochs": 8, "learning_rate": 1e-3, "gamma": 0.95, "ent_coef": 0.05}
SOON = {"learning_starts": 100, "learning_rate": 1e-3, "gamma": 0.95, "target_update_interval": 100}


class Watch(BaseCallback):
    """Success without random actions in 20 episodes, every so many environment steps, until it stays."""

    def __init__(self, env, every):
        super().__init__()
        self.env, self.every, self.rows = env, every, []

    def _on_step(self):
        if self.num_timesteps % self.every == 0:
            act = lambda x, h: int(self.model.predict(x, deterministic=True)[0])  # noqa: E731
            self.rows.append((self.num_timesteps, success_rate(self.env, act, episodes=20, seed=1000)))
        return len(self.rows) < 3 or min(score for _, score in self.rows[-3:]) < 0.95  # False ends learning


def main(argv: list[str] | None = None) -> dict[str, list[list[tuple[int, float]]]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in {"videos": 2000, "steps": 6000, "every": 200, "seeds": 3}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args(argv)
    tau = collect(world, world.policies(), args.videos, seed=0).tau
    model = CRAFT(FiniteOracle(figures, n_values=world.plan.n_cells), stationary=True).fit(tau)
    pixels = lambda: ReachState(ExBMDPEnv(world), lambda env: env.unwrapped.state == goal)  # noqa: E731
    states = lambda: StateObservation(pixels(), model)  # noqa: E731  stable-baselines3 makes one-hot vectors of these
    curves: dict[str, list[list[tuple[int, float]]]] = {}
    for name, learner, make in [("PPO pixels", PPO, pixels), ("PPO states", PPO, states), ("DQN states", DQN, states)]:
        for seed in range(args.seeds):
            watch = Watch(make(), args.every)
            settings = OFTEN if learner is PPO else {**SOON, "exploration_fraction": min(1.0, 1000 / args.steps)}
            policy = "CnnPolicy" if make is pixels else "MlpPolicy"
            learner(policy, make(), seed=seed, device="cpu", **settings).learn(args.steps, callback=watch)
            curves.setdefault(name, []).append(watch.rows)
            print(f"{name}, seed {seed}, %:", *(f"{100 * score:3.0f}" for _, score in watch.rows))
    return curves


if __name__ == "__main__":
    main()
