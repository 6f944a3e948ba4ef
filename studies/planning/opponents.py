"""Opponents that act from pixels: PPO and Q-learning with rewards for one goal, behaviour cloning with action labels.

None of them sees videos of the two agents or learned states. PPO and DQN are those of stable-baselines3 with a network
of the size that fits these small images; how their settings were chosen is said at `PPO` and `DQN` below. What counts
is environment steps: every step that learning takes is counted, those of evaluations are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

from craftrl.oracles.network.threads import cpu_threads
from craftrl.planning.curves import Curve

__all__ = ["EVERY", "Evaluations", "SmallImages", "learn", "ppo_from_pixels", "q_from_pixels"]

EVERY = 500  # environment steps between two evaluations
EPISODES = 100  # of an evaluation
LEVEL, STAYS = 0.95, 5  # training ends once so many evaluations in a row are at this level
MakeEnv = Callable[[], Any]

# Chosen among learning rates 0.0003, 0.001 and 0.0025 and rollouts of 128, 256 and 512 steps.
PPO_SETTINGS: dict[str, Any] = {
    "learning_rate": 1e-3,
    "n_steps": 32,
    "batch_size": 64,
    "n_epochs": 8,
    "gamma": 0.95,
    "ent_coef": 0.01,
}
ENVIRONMENTS = 8  # that PPO steps side by side

DQN_SETTINGS: dict[str, Any] = {
    "learning_rate": 5e-4,
    "buffer_size": 50_000,
    "learning_starts": 500,
    "batch_size": 64,
    "gamma": 0.95,
    "train_freq": 1,
    "target_update_interval": 250,
}
EXPLORING = 4000  # environment steps over which DQN's share of random actions falls from 1 to 0.05


class SmallImages(BaseFeaturesExtractor):
    """Three 3x3 convolutions and one layer of 128 features.

    The network that stable-baselines3 takes for images (8x8 filters, strides of 4) needs 36 x 36 pixels or more.
    """

    def __init__(self, observation_space: Any, features_dim: int = 128, channels: int = 32) -> None:
        super().__init__(observation_space, features_dim)
        self.layers = image_layers(observation_space.shape, features_dim, channels)

    def forward(self, observations: Tensor) -> Tensor:
        return self.layers(observations)


def image_layers(shape: tuple[int, ...], features_dim: int = 128, channels: int = 32) -> nn.Sequential:
    """Images (n, C, height, width) with entries in 0..1 to features (n, features_dim)."""
    maps = nn.Sequential(
        nn.Conv2d(shape[0], channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
    )
    width = maps(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(maps, nn.Linear(width, features_dim), nn.ReLU())


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

    `Curve.first(0.95)` is the number of environment steps until an evaluation reaches 95% and stays there. Training
    ends sooner than `steps` once five evaluations in a row did.
    """
    with cpu_threads(1):
        envs = DummyVecEnv([make_env] * ENVIRONMENTS)
        model = PPO("CnnPolicy", envs, **{**PPO_SETTINGS, **settings}, **_common(seed))
        return learn(model, make_env, steps, every)


def q_from_pixels(make_env: MakeEnv, steps: int, seed: int, every: int = EVERY, **settings: Any) -> Curve:
    """The same for deep Q-learning (DQN)."""
    with cpu_threads(1):
        given = {"exploration_fraction": min(1.0, EXPLORING / steps), **DQN_SETTINGS, **settings}
        model = DQN("CnnPolicy", DummyVecEnv([make_env]), **given, **_common(seed))
        return learn(model, make_env, steps, every)


def learn(model: Any, make_env: MakeEnv, steps: int, every: int = EVERY) -> Curve:
    """Train any model of stable-baselines3 and evaluate it on the way, in environments of its own."""
    evaluations = Evaluations(make_env, every)
    model.learn(steps, callback=evaluations)
    return Curve.of(evaluations.rows)


def _common(seed: int) -> dict[str, Any]:
    return {"policy_kwargs": {"features_extractor_class": SmallImages}, "seed": seed, "device": "cpu"}
