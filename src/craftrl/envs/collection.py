"""Collection: many episodes of each agent at once, the ground truth kept beside the data.

Paper: Sections 2.3, 2.4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import ArraySteps, TrajectoryDataset
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.policies import AdaptivePolicy, Policy, sample_actions
from craftrl.errors import InvalidParameterError

Ints = NDArray[np.integer]

__all__ = ["Collection", "GroundTruth", "collect", "sample_latent_paths", "sample_observations"]


@dataclass(frozen=True)
class GroundTruth:
    """What the learner never sees: latent states (n, H) and actions (n, H-1), rows as in the dataset."""

    states: Ints
    actions: Ints


@dataclass(frozen=True)
class Collection:
    """A dataset and, beside it, its ground truth."""

    tau: TrajectoryDataset
    truth: GroundTruth


def collect(
    world: ExBMDP,
    policies: Sequence[Policy],
    n: int | Sequence[int],
    seed: int | np.random.Generator | np.random.SeedSequence | None = None,
) -> Collection:
    """n episodes (or n[k] of agent k) of each policy in the world.

    The latent paths of all agents are drawn first and the noise afterwards, from a stream of its own, so that
    the two are independent over both entire datasets.

    Paper: Equation 1 (the noise-free policy property)
    """
    counts = [n] * len(policies) if isinstance(n, (int, np.integer)) else list(n)
    if len(counts) != len(policies) or min(counts, default=0) < 1:
        raise InvalidParameterError(
            f"n must be one positive number, or one per policy; {n} was given for {len(policies)} policies."
        )
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    paths = [sample_latent_paths(world, policy, m, latent_rng) for policy, m in zip(policies, counts)]
    states = np.concatenate([s for s, _ in paths])
    actions = np.concatenate([a for _, a in paths])
    x = sample_observations(world, states, noise_rng)
    tau = TrajectoryDataset(ArraySteps(x), np.repeat(np.arange(len(counts)), counts))
    return Collection(tau, GroundTruth(states, actions))


def sample_latent_paths(
    world: ExBMDP, policy: Policy, n: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Latent states (n, H) and actions (n, H-1) of n episodes under one policy."""
    states = np.zeros((n, world.H), dtype=np.int64)
    actions = np.zeros((n, world.H - 1), dtype=np.int64)
    batch = policy.batch if isinstance(policy, AdaptivePolicy) else n
    for start in range(0, n, batch):
        rows = slice(start, min(start + batch, n))
        if isinstance(policy, AdaptivePolicy):
            policy.current = policy.choose(states[:start])
        episode = np.arange(rows.start, rows.stop)
        for h in range(1, world.H):
            a_h = sample_actions(policy.probabilities(states[rows, :h], episode), rng)
            actions[rows, h - 1] = a_h
            states[rows, h] = world.step(states[rows, h - 1], a_h, h)
    return states, actions


def sample_observations(world: ExBMDP, states: Ints, rng: np.random.Generator) -> NDArray[Any]:
    """x_1..x_H for given latent paths (n, H), time first: shape (H, n, *obs)."""
    n = len(states)
    x = np.empty((world.H, n, *world.obs_shape), dtype=world.obs_dtype)
    e_h = world.sample_noise(n, rng)
    for h in range(1, world.H + 1):
        x[h - 1] = world.emit(states[:, h - 1], e_h, h, rng)
        if h < world.H:
            e_h = world.step_noise(e_h, h, rng)
    return x
