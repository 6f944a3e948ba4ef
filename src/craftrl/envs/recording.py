"""Collection onto disk: a dataset in one place, and its ground truth in a file of its own beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from craftrl.data.files import check_writable
from craftrl.data.places import Place, target
from craftrl.data.publishing import taken
from craftrl.data.truth import read_true_states, truth_path, write_truth
from craftrl.envs.collection import Collection, collect
from craftrl.envs.exbmdp import ExBMDP
from craftrl.envs.gymworld import GymWorld
from craftrl.envs.policies import Policy
from craftrl.errors import InvalidDataError, InvalidParameterError

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
    """`collect`, and write the dataset to `path` and the ground truth to `truth_path(path)`.

    Nothing is overwritten. The dataset is written last: where it is, its truth is too. If that was interrupted, the
    truth alone is there, and the same call goes on from it.
    """
    where, truth = target("The dataset", path), truth_path(path)
    if taken(where):
        raise InvalidParameterError(f"{where} exists already; remove it, or choose another name.")
    check_writable(where.parent)
    collection = collect(world, policies, n, seed, workers=workers, progress=progress)
    if not truth.exists():
        write_truth(truth, collection.truth)
    elif not _is_of(truth, collection):
        raise InvalidParameterError(
            f"The ground truth of {where} belongs into {truth}; that file exists already and is of other data; "
            "remove it, or choose another name."
        )
    collection.tau.save(where)
    return collection


def _is_of(truth: Place, collection: Collection) -> bool:
    """Whether the file holds this very collection's states."""
    try:
        return np.array_equal(read_true_states(truth, collection.tau), collection.truth.states)
    except InvalidDataError:
        return False
