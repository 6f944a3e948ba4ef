"""States that move otherwise than the agents' habits say: slips, actions told by noise, other starts.

Paper: Section 2.2 (determinism, one start), Equation 1 (noise-free policies)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import check_whole
from craftrl.envs.agents import Policy
from craftrl.envs.collection import (
    Collection,
    Ints,
    Transition,
    episodes_per_agent,
    observe,
    sample_latent_paths,
    sample_noise_path,
)
from craftrl.envs.exbmdp import ExBMDP
from craftrl.errors import InvalidParameterError
from studies.worlds.violations.stream import Seed, check_broken, stream

Noise = Callable[[], list[NDArray[Any]]]  # e_1..e_H of all trajectories, drawn if somebody asks

__all__ = ["collect_leaky", "collect_scattered", "collect_slippery"]


def collect_slippery(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """Rare departures from determinism: with probability `size`, s*_{h+1} is any state of step h+1.

    The state is drawn uniformly, whatever the action. A slip to where another action leads would break nothing:
    no learner that sees no actions can tell it from another policy. The ground truth holds the states
    visited and the actions meant.
    """
    check_broken(world, policies)
    rng = stream(size, seed)

    def transition(h: int, episode: Ints, s_h: Ints, a_h: Ints) -> tuple[Ints, Ints]:
        slips = rng.random(len(a_h)) < size
        anywhere = rng.integers(world.n_states(h + 1), size=len(a_h))
        return a_h, np.where(slips, anywhere, world.step(s_h, a_h, h))

    return _collect_with(world, policies, n, seed, lambda k, rows, noise: transition)


def collect_leaky(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed, factor: int = 0
) -> Collection:
    """Policies that leak noise: with probability `size`, an agent's action is told by the noise and not by it.

    Agent k then takes action (e + k) mod |A|, e being entry `factor` of e_h: all agents watch the same noise, and
    each responds in its own way, so that noise tells the agents apart. In the toy world entry 0 is e^1,
    the frozen factor that the paper made to mislead.

    Paper: Equation 1 (the noise-free policy property), which this breaks
    """
    check_broken(world, policies)
    entries = world.sample_noise(1, np.random.default_rng(0)).size
    check_whole("factor", factor, 0, entries - 1, "entries of the noise are numbered from 0")
    rng = stream(size, seed)

    def leak(k: int, rows: slice, noise: Noise) -> Transition:
        def transition(h: int, episode: Ints, s_h: Ints, a_h: Ints) -> tuple[Ints, Ints]:
            e_h = noise()[h - 1][rows][episode].reshape(len(episode), -1)[:, factor].astype(np.int64)
            a_h = np.where(rng.random(len(a_h)) < size, (e_h + k) % world.n_actions, a_h)
            return a_h, world.step(s_h, a_h, h)

        return transition

    return _collect_with(world, policies, n, seed, leak)


def collect_scattered(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """Several starts: with probability `size`, a trajectory of any agent begins in another state than s*_1 = 0.

    The state is drawn uniformly from the others of step 2, and at h = 1 agent and world do there what they do there at
    h = 2. So the states of steps 2 and 3 must go by the same numbers.

    Paper: Section 2.2 (s*_1 is constant), which this breaks
    """
    check_broken(world, policies)
    if world.H < 3 or world.n_states(2) != world.n_states(3):
        raise InvalidParameterError(
            "A random start needs a world whose states of steps 2 and 3 are the same; this one has "
            f"{' and then '.join(str(world.n_states(h)) for h in range(2, min(world.H, 3) + 1))}; take another world."
        )
    rng = stream(size, seed)

    def transition(h: int, episode: Ints, s_h: Ints, a_h: Ints) -> tuple[Ints, Ints]:
        if h > 1:
            return a_h, world.step(s_h, a_h, h)
        return a_h, np.where(s_h > 0, world.step(s_h, a_h, 2), world.step(np.zeros_like(s_h), a_h, 1))

    def start(m: int) -> Ints:
        elsewhere = rng.random(m) < size
        return np.where(elsewhere, rng.integers(1, world.n_states(2), size=m), 0)

    anywhere = [_FromAnywhere(policy) for policy in policies]
    return _collect_with(world, anywhere, n, seed, lambda k, rows, noise: transition, start)


def _collect_with(
    world: ExBMDP,
    policies: Sequence[Policy],
    n: int | Sequence[int],
    seed: Seed,
    transition_of: Callable[[int, slice, Noise], Transition],
    start: Callable[[int], Ints] = lambda m: np.zeros(m, dtype=np.int64),
) -> Collection:
    """`collect` with another transition in T's place: agent k's, who may know its rows of the noise to come.

    `start` gives the first states of so many episodes.
    """
    counts = episodes_per_agent(n, len(policies))
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)

    @cache
    def noise() -> list[NDArray[Any]]:
        return list(sample_noise_path(world, sum(counts), deepcopy(noise_rng)))

    stops = np.cumsum(counts)
    paths = [
        sample_latent_paths(world, policy, m, latent_rng, transition_of(k, slice(stop - m, stop), noise), start(m))
        for k, (policy, m, stop) in enumerate(zip(policies, counts, stops))
    ]
    return observe(world, paths, noise_rng)


class _FromAnywhere(Policy):
    """A policy that knows what to do at h = 1 in states other than 0: what it would do there at h = 2."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.batch = policy.batch

    def look_back(self, past: Ints) -> None:
        self.policy.look_back(past)

    def probabilities(self, history: Ints, episode: Ints) -> NDArray[np.floating]:
        if history.shape[1] > 1:
            return self.policy.probabilities(history, episode)
        usual = self.policy.probabilities(np.zeros_like(history), episode)
        elsewhere = self.policy.probabilities(np.repeat(history, 2, axis=1), episode)
        return np.where(history > 0, elsewhere, usual)
