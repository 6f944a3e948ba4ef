"""Noise whose law is another one for another agent.

Paper: Equation 1 (the noise of both datasets has one law), which this breaks
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.envs.agents import Policy
from craftrl.envs.collection import Collection, episodes_per_agent, observe, sample_latent_paths
from craftrl.envs.exbmdp import ExBMDP
from studies.worlds.violations.stream import Seed, check_broken, stream

__all__ = ["collect_held_noise"]


def collect_held_noise(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """Noise that is slower for all agents but agent 0: at each step it stands still with probability `size`.

    All of e_{h+1} is then e_h, as if what goes on in the background went more slowly while the other agents were
    recorded. The law of e_1 is the same for all, so that first observations alone give nothing away.

    Paper: Equation 1
    """
    check_broken(world, policies)
    counts = episodes_per_agent(n, len(policies))
    own = stream(size, seed)
    others = np.arange(sum(counts)) >= counts[0]

    def slower(world: ExBMDP, n: int, rng: np.random.Generator) -> Iterator[NDArray[Any]]:
        e_h = world.sample_noise(n, rng)
        yield e_h
        for h in range(1, world.H):
            held = others & (own.random(n) < size)
            e_h = np.where(held.reshape(n, *[1] * (e_h.ndim - 1)), e_h, world.step_noise(e_h, h, rng))
            yield e_h

    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    paths = [sample_latent_paths(world, policy, m, latent_rng) for policy, m in zip(policies, counts)]
    return observe(world, paths, noise_rng, slower)
