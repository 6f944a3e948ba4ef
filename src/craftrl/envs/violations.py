"""Imperfect worlds: the paper's assumptions broken on purpose, each by an amount `size` in [0, 1].

Every function has the signature of `collect` with `size` before the seed and gives a `Collection`; `size` = 0
gives what `collect` gives, bit for bit. What is random about a violation comes from a stream of its own, and the set
of places where it strikes grows with `size`.

Paper: Section 2.2 (determinism), Equation 1 (noise-free policies), Equation 5 (different agents), Section 6
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from craftrl.data.dataset import ArraySteps, TrajectoryDataset
from craftrl.envs.collection import (
    Collection,
    GroundTruth,
    Ints,
    Transition,
    collect,
    episodes_per_agent,
    observe,
    sample_latent_paths,
    sample_noise_path,
)
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.policies import MarkovPolicy, Policy
from craftrl.errors import InvalidParameterError

Seed = int | np.random.SeedSequence
Noise = Callable[[], list[NDArray[Any]]]  # e_1..e_H of all trajectories, drawn if somebody asks
Violation = Callable[[ExBMDP, Sequence[Any], int | Sequence[int], float, Seed], Collection]

STREAM = 1_000_003  # the violation's child of the seed, far from those that `collect` spawns

__all__ = [
    "VIOLATIONS",
    "agree_somewhere",
    "collect_agreeing",
    "collect_corrupted",
    "collect_leaky",
    "collect_mislabelled",
    "collect_slippery",
    "corrupt",
    "mislabel",
]


def collect_slippery(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """Rare departures from determinism: with probability `size`, s*_{h+1} is any state of step h+1.

    The state is drawn uniformly, whatever the action. A slip to where another action leads would break nothing:
    no learner that sees no actions can tell it from another policy. The ground truth holds the states
    visited and the actions meant.
    """
    rng = _stream(size, seed)

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
    rng = _stream(size, seed)

    def leak(k: int, rows: slice, noise: Noise) -> Transition:
        def transition(h: int, episode: Ints, s_h: Ints, a_h: Ints) -> tuple[Ints, Ints]:
            e_h = noise()[h - 1][rows][episode].reshape(len(episode), -1)[:, factor].astype(np.int64)
            a_h = np.where(rng.random(len(a_h)) < size, (e_h + k) % world.n_actions, a_h)
            return a_h, world.step(s_h, a_h, h)

        return transition

    return _collect_with(world, policies, n, seed, leak)


def collect_agreeing(
    world: ExBMDP, policies: Sequence[MarkovPolicy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """Agents that act alike in a share `size` of all (h, s); see `agree_somewhere`."""
    return collect(world, agree_somewhere(policies, size, seed), n, seed)


def collect_mislabelled(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """A share `size` of the trajectories carries another agent's name; see `mislabel`."""
    return mislabel(collect(world, policies, n, seed), size, seed)


def collect_corrupted(
    world: ExBMDP, policies: Sequence[Policy], n: int | Sequence[int], size: float, seed: Seed
) -> Collection:
    """A share `size` of all observations belongs to other trajectories; see `corrupt`."""
    return corrupt(collect(world, policies, n, seed), size, seed)


VIOLATIONS: dict[str, Violation] = {
    "slips": collect_slippery,
    "leaks": collect_leaky,
    "agreement": collect_agreeing,
    "mislabelled": collect_mislabelled,
    "corrupted": collect_corrupted,
}


def agree_somewhere(policies: Sequence[MarkovPolicy], size: float, seed: Seed) -> list[MarkovPolicy]:
    """The same agents, but in a random share `size` of all (h, s) every agent acts as agent 0 does."""
    rng = _stream(size, seed)
    alike = [rng.random(len(table)) < size for table in policies[0].tables]
    return [
        MarkovPolicy(
            [
                np.where(same[:, None], shared, own)
                for same, shared, own in zip(alike, policies[0].tables, policy.tables)
            ]
        )
        for policy in policies
    ]


def mislabel(collection: Collection, size: float, seed: Seed) -> Collection:
    """Give each trajectory, with probability `size`, to one of the other agents, drawn uniformly."""
    rng = _stream(size, seed)
    tau, truth = collection.tau, collection.truth
    wrong = rng.random(tau.n) < size
    agent = np.where(wrong, (tau.agent + rng.integers(1, tau.K, size=tau.n)) % tau.K, tau.agent)
    order = np.argsort(agent, kind="stable")
    return Collection(tau.select(order, agent[order]), GroundTruth(truth.states[order], truth.actions[order]))


def corrupt(collection: Collection, size: float, seed: Seed, how: Literal["swap", "noise"] = "swap") -> Collection:
    """Replace each observation, with probability `size`, by one that says nothing of this trajectory.

    "swap" takes the observation of a trajectory drawn at random, of any agent, at the same step: a glimpse of
    another episode. "noise" draws every entry uniformly between the least and the greatest value in the data.
    The ground truth stays: it says where the agent really was.
    """
    if how not in ("swap", "noise"):
        raise InvalidParameterError(f"how must be 'swap' or 'noise'; {how!r} was given.")
    rng = _stream(size, seed)
    tau = collection.tau
    clean = np.stack([tau.at(h) for h in range(1, tau.H + 1)])
    x, low, high = clean.copy(), clean.min(), clean.max()
    struck = rng.random((tau.H, tau.n)) < size
    for h in range(tau.H):
        hit = np.flatnonzero(struck[h])
        if how == "swap":
            x[h, hit] = clean[h, rng.integers(tau.n, size=len(hit))]
        elif clean.dtype.kind == "f":
            x[h, hit] = rng.uniform(low, high, size=x[h, hit].shape)
        else:
            x[h, hit] = rng.integers(low, high, size=x[h, hit].shape, endpoint=True)
    return Collection(TrajectoryDataset(ArraySteps(x), tau.agent, tau.lengths), collection.truth)


def _collect_with(
    world: ExBMDP,
    policies: Sequence[Policy],
    n: int | Sequence[int],
    seed: Seed,
    transition_of: Callable[[int, slice, Noise], Transition],
) -> Collection:
    """`collect` with another transition in T's place: agent k's, who may know its rows of the noise to come."""
    counts = episodes_per_agent(n, len(policies))
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)

    @cache
    def noise() -> list[NDArray[Any]]:
        return list(sample_noise_path(world, sum(counts), deepcopy(noise_rng)))

    stops = np.cumsum(counts)
    paths = [
        sample_latent_paths(world, policy, m, latent_rng, transition_of(k, slice(stop - m, stop), noise))
        for k, (policy, m, stop) in enumerate(zip(policies, counts, stops))
    ]
    return observe(world, paths, noise_rng)


def _stream(size: float, seed: Seed) -> np.random.Generator:
    """The violation's own random numbers, apart from those of the collection with the same seed."""
    if not 0 <= size <= 1:
        raise InvalidParameterError(f"The size of a violation must lie in [0, 1]; size = {size} was given.")
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, STREAM)))
