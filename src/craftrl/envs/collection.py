"""Collection: many episodes of each agent at once, the ground truth kept beside the data.

Paper: Sections 2.3, 2.4
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.arguments import (
    check_flag,
    check_kind,
    check_room_in_memory,
    check_target,
    check_whole,
    is_url,
    is_whole,
    quoted,
)
from craftrl.arrays import Ints
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import check_writable
from craftrl.data.store import DatasetWriter, is_dataset
from craftrl.envs.agents import Policy, choose_actions
from craftrl.envs.exbmdp import ExBMDP, check_seed
from craftrl.envs.gymworld import GymWorld, play_episodes
from craftrl.errors import AssumptionWarning, InvalidParameterError

LatentPaths = tuple[Ints, Ints]  # states (n, H) and actions (n, H-1)

MAX_EPISODES = 10**9
MAX_WORKERS = 1024


@dataclass(frozen=True)
class GroundTruth:
    """What the learner never sees: latent states (n, H) and actions (n, H-1), rows as in the dataset; -1 where unknown
    and where an episode is over."""

    states: Ints
    actions: Ints


@dataclass(frozen=True)
class Collection:
    """A dataset and, beside it, its ground truth."""

    tau: TrajectoryDataset
    truth: GroundTruth


def collect(
    world: ExBMDP | GymWorld,
    policies: Sequence[Policy],
    n: int | Sequence[int],
    seed: int | np.random.Generator | np.random.SeedSequence | None = None,
    *,
    workers: int = 1,
    progress: bool = False,
) -> Collection:
    """n episodes (or n[k] of agent k) of each policy in the world.

    Latent paths and noise come from two streams of random numbers, so that the two are independent over both entire
    datasets. A `GymWorld` is stepped, which takes a while: by as many processes as `workers` says, with a bar where
    `progress` asks for one. The result is the same for any number of workers. Other worlds are tables, done at once in
    this process.

    Paper: Equation 1 (the noise-free policy property)
    """
    check_kind("world", world, (ExBMDP, GymWorld), "a world, such as BitsExBMDP() or a GymWorld")
    if not (isinstance(policies, (list, tuple)) and policies and all(isinstance(p, Policy) for p in policies)):
        raise InvalidParameterError(
            f"policies must be a list with the policy of each agent; {quoted(policies)} was given."
        )
    check_seed(seed)
    check_whole("workers", workers, 1, MAX_WORKERS)
    check_flag("progress", progress)
    counts = episodes_per_agent(n, len(policies))
    if isinstance(world, GymWorld):
        x, lengths, states, actions = play_episodes(world, policies, counts, seed, workers, progress)
        starts = len(np.unique(states[:, 0]))
        if starts > 1:
            warnings.warn(
                f"Every episode should start in one true state, as CRAFT assumes; these start in {starts}; fix the "
                "start in `make`, or expect poor results.",
                AssumptionWarning,
                stacklevel=2,
            )
        tau = TrajectoryDataset.from_arrays(np.split(x, np.cumsum(counts)[:-1]), lengths)
        return Collection(tau, GroundTruth(states, actions))
    needed = sum(counts) * world.H * prod(world.obs_shape) * np.dtype(world.obs_dtype).itemsize
    check_room_in_memory(f"{sum(counts)} trajectories", needed, "collect fewer, or shorter ones")
    latent_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    paths = [sample_latent_paths(world, policy, m, latent_rng) for policy, m in zip(policies, counts)]
    return observe(world, paths, noise_rng)


def record(
    world: ExBMDP | GymWorld,
    policies: Sequence[Policy],
    n: int | Sequence[int],
    path: str | os.PathLike[str],
    seed: int | None = None,
    *,
    workers: int = 1,
    progress: bool = False,
) -> Collection:
    """`collect`, and write a dataset to `path`, true states and actions beside the frames, where no learner looks.

    Nothing is overwritten. If it was interrupted, the same call writes what is missing.
    """
    if not is_url(path):
        check_writable(check_target("The dataset", path).parent)
    if is_dataset(path) and "collected" not in TrajectoryDataset.open(path).notes:
        raise InvalidParameterError(f"{os.fspath(path)} exists already; remove it, or choose another name.")
    collection = collect(world, policies, n, seed, workers=workers, progress=progress)
    tau, truth = collection.tau, collection.truth
    known = bool((truth.states[:, 0] >= 0).all())
    with DatasetWriter(path, run=f"collect {tau.digest()}", notes={"collected": True}) as writer:
        for i, length in enumerate(tau.lengths.tolist()):
            actions, states = truth.actions[i, : length - 1], truth.states[i, :length] if known else None
            name, episode = tau.names[tau.agent[i]], tau.episode(i)
            writer.append(name, episode, source="collect", start=i, actions=actions, states=states)
    return collection


def episodes_per_agent(n: int | Sequence[int], n_agents: int) -> list[int]:
    """n as a list with one entry per agent."""
    several = isinstance(n, (list, tuple)) or (isinstance(n, np.ndarray) and n.ndim == 1)
    counts: list[Any] = [n] * n_agents if is_whole(n) else list(n) if several else []  # type: ignore[arg-type]
    if len(counts) != n_agents or not all(is_whole(m) and 1 <= m <= MAX_EPISODES for m in counts):
        raise InvalidParameterError(
            f"n must be one positive number, or one per policy; {quoted(n)} was given for {n_agents} policies."
        )
    return [int(m) for m in counts]


def observe(world: ExBMDP, paths: Sequence[LatentPaths], rng: np.random.Generator) -> Collection:
    """The collection of one group of latent paths per agent, with noise and observations drawn for them."""
    states, actions = (np.concatenate(parts) for parts in zip(*paths))
    x = np.empty((len(states), world.H, *world.obs_shape), dtype=world.obs_dtype)
    emission_rng = rng.spawn(1)[0]
    for h, e_h in enumerate(sample_noise_path(world, len(states), rng), start=1):
        x[:, h - 1] = world.emit(states[:, h - 1], e_h, h, emission_rng)
    tau = TrajectoryDataset.from_arrays(np.split(x, np.cumsum([len(s) for s, _ in paths])[:-1]))
    return Collection(tau, GroundTruth(states, actions))


def sample_latent_paths(
    world: ExBMDP, policy: Policy, n: int, rng: np.random.Generator, s_1: Ints | int = 0
) -> LatentPaths:
    """Latent states (n, H) and actions (n, H-1) of n episodes under one policy; `s_1` in place of the one start breaks
    an assumption on purpose."""
    states = np.zeros((n, world.H), dtype=np.int64)
    states[:, 0] = s_1
    actions = np.zeros((n, world.H - 1), dtype=np.int64)
    batch = policy.batch or n
    for start in range(0, n, batch):
        rows = slice(start, min(start + batch, n))
        if policy.batch:
            policy.look_back(states[:start])
        episode = np.arange(rows.start, rows.stop)
        for h in range(1, world.H):
            u = rng.random(rows.stop - rows.start)
            actions[rows, h - 1] = choose_actions(policy, states[rows, :h], episode, world.n_actions, u)
            states[rows, h] = world.step(states[rows, h - 1], actions[rows, h - 1], h)
    return states, actions


def sample_noise_path(world: ExBMDP, n: int, rng: np.random.Generator) -> Iterator[NDArray[Any]]:
    """e_1..e_H of n trajectories, one step at a time; it looks at no state and no action."""
    e_h = world.sample_noise(n, rng)
    yield e_h
    for h in range(1, world.H):
        e_h = world.step_noise(e_h, h, rng)
        yield e_h
