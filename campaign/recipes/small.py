"""Small things that calls are given: learners, environments, tables and functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from campaign.bench import Bench
from craftrl import Training

__all__ = [
    "begun",
    "coordinate_encoders",
    "environment",
    "few_epochs",
    "first",
    "gym_world",
    "halves",
    "latent",
    "planner",
    "ring",
    "second",
    "state_module",
    "states_shown",
    "tensor",
    "tree",
]


def few_epochs(**given: Any) -> Training:
    return Training(**{"epochs": 1, "progress": False, **given})


def halves(h: int) -> Any:
    return np.full((1 if h == 1 else 2, 2), 0.5)


def first(x: Any) -> Any:
    return x[:, 0]


def second(x: Any) -> Any:
    return x[:, 1]


def tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=3, random_state=0)


def tensor(x: Any) -> Any:
    import torch

    return torch.from_numpy(x)


def latent() -> Any:
    from craftrl.planning.latent import find_latent_actions

    return find_latent_actions(ring())


def ring() -> Any:
    """Counts of two agents' moves on a ring of seven states."""
    forward, backward = np.roll(np.eye(7, dtype=int), 1, axis=1), np.roll(np.eye(7, dtype=int), -1, axis=1)
    return [30 * forward + 10 * backward, 10 * forward + 30 * backward]


def environment() -> Any:
    import gymnasium

    return gymnasium.make("craftrl.envs:craftrl/Bits-v0", horizon=4, n_features=6)


def states_shown(b: Bench) -> Any:
    from craftrl.deploy import StateObservation

    return StateObservation(environment(), b.model)


def coordinate_encoders(h: int) -> Any:
    from craftrl.core.encoders import ConstantEncoder, CoordinateEncoder

    return [ConstantEncoder() if h == 1 else CoordinateEncoder(0, np.array([0, 1]))]


def planner(b: Bench) -> Any:
    from craftrl.planning import Planner

    return Planner(b.model, b.grounding())


def state_module(b: Bench) -> Any:
    from craftrl.deploy import StateModule

    return StateModule(b.network[0], 2)


def begun(env: Any) -> Any:
    """An environment in the middle of an episode."""
    env.reset(seed=0)
    return env


def gym_world() -> Any:
    from craftrl.envs import GymWorld, MarkovPolicy

    agents = (MarkovPolicy([np.full((2, 2), 0.5)] * 3),) * 2
    return GymWorld(environment, lambda env: 0, 2, [0, 1], 4, agents)


def no_actions(b: Bench) -> Any:
    """One action at every step of every trajectory."""
    return np.zeros((len(b.x), b.x.shape[1] - 1), dtype=int)
