"""CRAFT on shards: the same bits as on one machine, and no trajectory ever leaves the worker that reads it."""

from __future__ import annotations

import os

from craftrl.arguments import check_flag, check_kind
from craftrl.distributed.dataset import ShardedData
from craftrl.distributed.executor import Executor
from craftrl.errors import InvalidParameterError
from craftrl.estimators.craft import CRAFT
from craftrl.estimators.parameters import check_parameters

__all__ = ["fit_on_shards"]


def fit_on_shards(
    model: CRAFT, path: str | os.PathLike[str] | ShardedData, executor: Executor, *, progress: bool = False
) -> CRAFT:
    """Fit `model` to a folder of shards, as `model.fit(path)` does, and return it.

    Everything that a finite class learns from is a sum over trajectories of small integers. Each shard is read once,
    by a worker of the executor, and kept there as bit planes; what comes here are sums over all shards. A sum of
    integers is the same in any order, so the model is the same bit for bit as on one machine, whatever the shards and
    whoever works on them.

    model     with a finite class: CoordinateOracle, FiniteOracle, or "auto" where the data is small integers; any
              coupling, bounds and `relabel`; `stationary` must be False, and all trajectories begin in one state
    path      a folder that `craftrl.data.storage.write_shards` wrote, or the `ShardedData` of one
    executor  where the work is done: `LocalExecutor()` here, `RayExecutor(...)` on a cluster
    progress  show a bar

    `labels_` is not set: the states of the trajectories stay with the shards. `encode_on_shards` writes them.
    """
    check_kind("model", model, CRAFT, "a CRAFT estimator")
    check_flag("progress", progress)
    check_parameters(model)
    if model.stationary:
        raise InvalidParameterError(
            "A fit on shards learns one encoder for each step; stationary=True was given; use stationary=False, or "
            "fit on one machine."
        )
    data = path if isinstance(path, ShardedData) else ShardedData(path, executor)
    return model._learn(data, None, judged=True)
