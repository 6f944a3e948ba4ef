"""Collection onto disk: a dataset with its ground truth beside the frames, where no learner looks."""

from __future__ import annotations

import os
from collections.abc import Sequence

from craftrl.arguments import check_target, is_url
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.files import check_writable
from craftrl.data.store import DatasetWriter, is_dataset
from craftrl.envs.collection import Collection, collect
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.gymworld import GymWorld
from craftrl.envs.policies import Policy
from craftrl.errors import InvalidParameterError

__all__ = ["record"]


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
    """`collect`, and write a dataset to `path`, true states and actions beside the frames.

    Nothing is overwritten. If it was interrupted, the same call writes what is missing.
    """
    if not is_url(path):
        check_writable(check_target("The dataset", path).parent)
    if is_dataset(path) and "collected" not in TrajectoryDataset.open(path).notes:
        raise InvalidParameterError(f"{os.fspath(path)} exists already; remove it, or choose another name.")
    collection = collect(world, policies, n, seed, workers=workers, progress=progress)
    tau, truth = collection.tau, collection.truth
    with DatasetWriter(path, run=f"collect {tau.digest()}", notes={"collected": True}) as writer:
        for i in range(tau.n):
            length = int(tau.lengths[i])
            actions, states = truth.actions[i, : length - 1], truth.states[i, :length]
            writer.append(
                tau.names[tau.agent[i]], tau.episode(i), source="collect", start=i, actions=actions, states=states
            )
    return collection
