"""Opponents that learn from pixels and rewards: PPO and deep Q-learning, each for one goal.

Neither sees videos of the two agents or learned states. PPO and DQN are those of stable-baselines3 with a network
of the size that fits these small images; how their settings were chosen is said below. What counts is
environment steps: every step that learning takes is counted, those of evaluations are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

from studies.threads import cpu_threads

__all__ = [
    "EVERY",
    "Evaluations",
    "SmallImages",
    "learn",
    "ppo_from_pixels",
    "q_from_pixels",
]

EVERY = 500  # environment steps between two evaluations
EPISODES = 100  # of an evaluation
LEVEL, STAYS = 0.95, 5  # training ends once so many evaluations in a row are at this level
MakeEnv = Callable[[], Any]
Curve = list[tuple[int, float]]  # success, after so many environment steps

# The best of a small search in the pixel world of 3x3 and 4x4 cells, one to three seeds each: learning rates 0.0003,
# 0.0005, 0.001 and 0.0025, rollouts of 128, 256 and 512 steps (ENVIRONMENTS * n_steps), entropy bonus 0.01, 0.03, 0.05.
PPO_SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "n_steps": 32,
    "batch_size": 64,
    "n_epochs": 8,
    "gamma": 0.95,
    "ent_coef": 0.05,
}
ENVIRONMENTS = 8  # that PPO steps side by side

# Not searched: usual values, with a target network and a share of random actions that suit some thousand steps.
DQN_SETTINGS: dict[str, Any] = {
    "learning_rate": 5e-4,
    "buffer_size": 50_000,
    "learning_starts": 500,
    "batch_size": 64,
    "gamma": 0.95,
    "train_freq": 2,
    "target_update_interval": 250,
}
EXPLORING = 4000  # environment steps over which DQN's share of random actions falls from 1 to 0.05


class SmallImages(BaseFeaturesExtractor):
    """128 features of an image (n, channels, height, width) with entries in 0..1, by three 3x3 convolutions.

    The network that stable-baselines3 takes for images (8x8 filters, strides of 4) needs 36 x 36 pixels or more.
    """

    def __init__(self, observation_space: Any, features_dim: int = 128, channels: int = 32) -> None:
        super().__init__(observation_space, features_dim)
        maps = nn.Sequential(
            nn.Conv2d(observation_space.shape[0], channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            width = maps(torch.zeros(1, *observation_space.shape)).shape[1]
        self.layers = nn.Sequential(maps, nn.Linear(width, features_dim), nn.ReLU())

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
        self.rows: list[tuple[int, float]] = []

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.every * (len(self.rows) + 1):
            self.rows.append((self.num_timesteps, self.success()))
        return not self.arrived

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

    @property
    def arrived(self) -> bool:
        last = [score for _, score in self.rows[-STAYS:]]
        return len(last) == STAYS and min(last) >= LEVEL


def ppo_from_pixels(make_env: MakeEnv, steps: int, seed: int, every: int = EVERY, **settings: Any) -> Curve:
    """Success of PPO over environment steps; `make_env` makes a `ReachState` of images for one goal.

    Training ends sooner than `steps` once five evaluations in a row reached 95%.
    """
    with cpu_threads(1):
        envs = DummyVecEnv([make_env] * ENVIRONMENTS)
        model = PPO(env=envs, **{**PPO_SETTINGS, **settings}, **_common(envs, seed))
        return learn(model, make_env, steps, every)


def q_from_pixels(make_env: MakeEnv, steps: int, seed: int, every: int = EVERY, **settings: Any) -> Curve:
    """The same for deep Q-learning (DQN)."""
    with cpu_threads(1):
        envs = DummyVecEnv([make_env])
        given = {"exploration_fraction": min(1.0, EXPLORING / steps), **DQN_SETTINGS, **settings}
        model = DQN(env=envs, **given, **_common(envs, seed))
        return learn(model, make_env, steps, every)


def learn(model: Any, make_env: MakeEnv, steps: int, every: int = EVERY) -> Curve:
    """Train any model of stable-baselines3 and evaluate it on the way, in environments of its own."""
    evaluations = Evaluations(make_env, every)
    model.set_logger(Logger(None, []))  # which would make a folder for every model
    model.learn(steps, callback=evaluations)
    return evaluations.rows


def _common(envs: DummyVecEnv, seed: int) -> dict[str, Any]:
    """The network that suits the observations: `SmallImages` for images, two layers of 64 for all others."""
    images = is_image_space(envs.observation_space)
    network = {"policy": "CnnPolicy", "policy_kwargs": {"features_extractor_class": SmallImages}}
    return {**(network if images else {"policy": "MlpPolicy"}), "seed": seed, "device": "cpu"}
