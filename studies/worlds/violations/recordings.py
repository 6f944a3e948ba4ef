"""Recordings that went wrong: wrong names, foreign frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from craftrl.arguments import check_choice, check_kind
from craftrl.data.dataset import TrajectoryDataset
from craftrl.envs.agents import Policy
from craftrl.envs.collection import Collection, GroundTruth, collect
from craftrl.envs.exbmdp import ExBMDP
from studies.worlds.violations.stream import Seed, stream

__all__ = ["collect_corrupted", "collect_mislabelled", "corrupt", "mislabel"]


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


def mislabel(collection: Collection, size: float, seed: Seed) -> Collection:
    """Give each trajectory, with probability `size`, to one of the other agents, drawn uniformly."""
    check_kind("collection", collection, Collection, "what collect gives")
    rng = stream(size, seed)
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
    check_kind("collection", collection, Collection, "what collect gives")
    check_choice("how", how, ("swap", "noise"))
    rng = stream(size, seed)
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
    by_agent = [x[:, tau.agent_slice(k)].swapaxes(0, 1) for k in range(tau.K)]
    return Collection(TrajectoryDataset.from_arrays(by_agent, tau.lengths), collection.truth)
