"""Q-learning on states that CRAFT learned from videos: the goal is one corner of a 4 x 4 grid.

Four other figures walk about and the light flickers; on learned states none of that is left, and a table suffices.

    python -m examples.q_learning --steps 600 --seeds 3
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from craftrl import CRAFT, FiniteOracle
from craftrl.deploy import StateObservation
from craftrl.envs import PixelsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from examples.goals import ReachState, steps_to, success_rate


class TabularQ:
    """Q-learning (Watkins, 1989) for observations that are numbers 0..n-1 and actions 0..m-1.

    Values start at `optimism`, so that whatever was not tried looks worth a try.

    H         a table for each step h = 1..H of an episode, in place of one for all. Needed for a model with an encoder
              for each step: its states have the same numbers at every h and mean something else each time
    discount  what a reward is worth one step later
    rate      how far a value moves towards what was seen
    epsilon   how often a random action is taken in a new state; after `half` visits it is half as often
    """

    def __init__(
        self,
        H: int = 1,
        discount: float = 0.95,
        rate: float = 0.5,
        epsilon: float = 0.2,
        half: float = 10.0,
        optimism: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.H, self.discount, self.rate, self.epsilon, self.half = H, discount, rate, epsilon, half
        self.optimism, self.seed, self.rng, self.steps = optimism, seed, np.random.default_rng(seed), 0

    def learn(self, env: Any, steps: int) -> None:
        """Learn from so many environment steps, in new episodes; the last one may be broken off."""
        if self.steps == 0:
            self.q = np.full((self.H, env.observation_space.n, env.action_space.n), self.optimism)
            self.visits = np.zeros(self.q.shape, dtype=int)
        end = self.steps + steps
        while self.steps < end:
            state, _ = env.reset(seed=self.seed if self.steps == 0 else None)
            h, over = 1, False
            while not over and self.steps < end:
                action = self._try(self.layer(h), state)
                after, reward, terminated, truncated, _ = env.step(action)
                here = self.layer(h), state, action
                best = 0.0 if terminated else self.q[self.layer(h + 1), after].max()
                self.q[here] += self.rate * (reward + self.discount * best - self.q[here])
                self.visits[here] += 1
                self.steps, state, h, over = self.steps + 1, after, h + 1, terminated or truncated

    def act(self, state: int, h: int = 1) -> int:
        """The action of the largest value."""
        return int(self.q[self.layer(h), state].argmax())

    def layer(self, h: int) -> int:
        """The table of step h; steps after H use the last one."""
        return min(h, self.H) - 1

    def _try(self, layer: int, state: int) -> int:
        values, seen = self.q[layer, state], self.visits[layer, state].sum()
        if self.rng.random() < self.epsilon * self.half / (self.half + seen):
            return int(self.rng.integers(len(values)))
        return int(self.rng.choice(np.flatnonzero(values == values.max())))


def learned_states(world: PixelsExBMDP, videos: int) -> CRAFT:
    """CRAFT, which has to find out which of the figures the agents move.

    The class of functions is small, so that this takes seconds: the cell of each figure. `NeuralOracle()` in its place
    learns from the pixels alone, and takes minutes.
    """
    figures = [partial(world.find_figure, figure=i) for i in range(world.n_walkers + 1)]
    tau = collect(world, world.policies(), videos, seed=0).tau
    return CRAFT(FiniteOracle(figures, n_values=world.plan.n_cells), stationary=True).fit(tau)


def main(argv: list[str] | None = None) -> list[list[tuple[int, float]]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--videos", type=int, default=3000, help="of each of the two agents")
    parser.add_argument("--steps", type=int, default=600, help="in the environment")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(argv)
    world = PixelsExBMDP(horizon=10, size=4, n_walkers=4)
    corner = world.plan.n_cells - 1
    model = learned_states(world, args.videos)
    print(f"{model.n_states_total_} states, from videos without actions")
    env = StateObservation(ReachState(ExBMDPEnv(world), lambda env: env.unwrapped.state == corner), model)
    curves = []
    for seed in range(args.seeds):
        learner, curve = TabularQ(seed=seed), []
        while learner.steps < args.steps:  # success without random actions, after every 50 environment steps
            learner.learn(env, 50)
            curve.append((learner.steps, success_rate(env, learner.act, episodes=20, seed=1000)))
        curves.append(curve)
        print(f"seed {seed}, %", *(f"{100 * score:4.0f}" for _, score in curve), "  95% after", steps_to(0.95, curve))
    return curves


if __name__ == "__main__":
    main()
