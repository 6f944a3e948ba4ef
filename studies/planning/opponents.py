"""Opponents that learn from rewards: PPO and deep Q-learning of stable-baselines3, each for one goal.

Neither sees videos of the two agents. What counts is environment steps: every step that learning takes is counted,
those of evaluations are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

EPISODES = 100  # of an evaluation
LEVEL, STAYS = 0.95, 5  # training ends once so many evaluations in a row are at this level
MakeEnv = Callable[[], Any]
Curve = list[tuple[int, float]]  # success, after so many environment steps

# PPO: the best of a small search in the pixel world of 3x3 and 4x4 cells, one to three seeds each: learning rates
# 0.0003, 0.0005, 0.001 and 0.0025, rollouts of 128, 256 and 512 steps, entropy bonus 0.01, 0.03, 0.05. DQN: not
# searched, usual values, with a target network that suits some thousand steps.
SETTINGS: dict[str, dict[str, Any]] = {
    "ppo": {"learning_rate": 1e-3, "n_steps": 32, "batch_size": 64, "n_epochs": 8, "gamma": 0.95, "ent_coef": 0.05},
    "dqn": {"learning_rate": 5e-4, "buffer_size": 50_000, "learning_starts": 500, "batch_size": 64, "gamma": 0.95}
    | {"train_freq": 2, "target_update_interval": 250},
}
ENVIRONMENTS = {"ppo": 8, "dqn": 1}  # that are stepped side by side
EXPLORING = 4000  # environment steps over which DQN's share of random actions falls from 1 to 0.05


def learn(kind: str, make_env: MakeEnv, steps: int, seed: int, every: int = 500, **settings: Any) -> Curve:
    """Success after every so many environment steps, at most `steps`; `make_env` makes a `ReachState` for one goal."""
    envs = DummyVecEnv([make_env] * ENVIRONMENTS[kind])
    given = {**SETTINGS[kind], **settings, "seed": seed, "device": "cpu"}
    if is_image_space(envs.observation_space):
        given |= {"policy": "CnnPolicy", "policy_kwargs": {"features_extractor_class": Convolutions}}
    else:
        given["policy"] = "MlpPolicy"  # two layers of 64
    if kind == "dqn":
        given["exploration_fraction"] = min(1.0, EXPLORING / steps)
    model: Any = {"ppo": PPO, "dqn": DQN}[kind](env=envs, **given)
    model.set_logger(Logger(None, []))  # which would make a folder for every model
    evaluations = Evaluations(make_env, every)
    model.learn(steps, callback=evaluations)
    return evaluations.rows


class Convolutions(BaseFeaturesExtractor):
    """128 features of an image (n, channels, height, width) with entries in 0..1, by three 3x3 convolutions.

    The network that stable-baselines3 takes for images (8x8 filters, strides of 4) needs 36 x 36 pixels or more.
    """

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 128)
        channels, *sides = observation_space.shape
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * int(np.prod([-(-side // 4) for side in sides])), 128),
            nn.ReLU(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        return self.layers(observations)


class Evaluations(BaseCallback):
    """Success in the same `EPISODES` episodes, without random actions, after every so many steps of training.

    The episodes are played side by side, one in each of as many environments. Training ends once success stays.
    """

    def __init__(self, make_env: MakeEnv, every: int) -> None:
        super().__init__()
        self.envs = [make_env() for _ in range(EPISODES)]
        self.every = every
        self.rows: Curve = []

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.every * (len(self.rows) + 1):
            self.rows.append((self.num_timesteps, self.success()))
        last = [score for _, score in self.rows[-STAYS:]]
        return len(last) < STAYS or min(last) < LEVEL

    def success(self) -> float:
        """The share of episodes that end in the goal."""
        running = [(env, env.reset(seed=seed)[0]) for seed, env in enumerate(self.envs)]
        successes = 0
        while running:
            actions, _ = self.model.predict(np.stack([x for _, x in running]), deterministic=True)
            ended = [(env, *env.step(int(action))) for (env, _), action in zip(running, actions)]
            successes += sum(bool(info["is_success"]) for *_, info in ended)
            running = [(env, x) for env, x, _, terminated, truncated, _ in ended if not (terminated or truncated)]
        return successes / len(self.envs)
