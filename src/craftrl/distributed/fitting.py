"""CRAFT on shards: the same bits as on one machine, and no trajectory ever leaves the worker that reads it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Literal

from craftrl.arguments import check_flag, check_kind, shown
from craftrl.distributed.dataset import ShardedData
from craftrl.distributed.executor import Executor, check_executor
from craftrl.errors import InvalidParameterError
from craftrl.estimators.craft import CRAFT
from craftrl.estimators.parameters import check_parameters
from craftrl.progress import shown as progress_shown

__all__ = ["fit_on_shards"]


def fit_on_shards(
    model: CRAFT,
    path: str | os.PathLike[str] | ShardedData,
    executor: Executor,
    *,
    start: Literal["find"] | None = None,
    progress: bool = False,
) -> CRAFT:
    """Fit `model` to a folder of shards, as `model.fit(path)` does, and return it.

    Everything that a finite class learns from is a sum over trajectories of small integers. Each shard is read by a
    worker of the executor and kept there as bit planes; what comes here are sums over all shards. A sum of integers is
    the same in any order, so the model is the same bit for bit as on one machine, whatever the shards and whoever works
    on them.

    model     with a finite class: CoordinateOracle, FiniteOracle, or "auto" where the data is small integers, which
              all shards are read once more to find out; any coupling, bounds and `relabel`; `stationary` must be False
    path      a folder that `craftrl.data.storage.write_shards` wrote, on disks that all workers reach, or a URL;
              or the `ShardedData` of one
    executor  where the work is done: `LocalExecutor()` here, `RayExecutor(...)` on a cluster
    start     None: all trajectories begin in one state; "find": the oracle finds out, as in `CRAFT.fit`
    progress  show a bar

    `labels_` is not set: the states of the trajectories stay with the shards. `encode_on_shards` writes them.
    """
    check_kind("model", model, CRAFT, "a CRAFT estimator")
    check_executor(executor)
    check_flag("progress", progress)
    check_parameters(model)
    if model.stationary:
        raise InvalidParameterError(
            "A fit on shards learns one encoder for each step; stationary=True was given; use stationary=False, or "
            "fit on one machine."
        )
    if not (start is None or (isinstance(start, str) and start == "find")):
        raise InvalidParameterError(
            f"On shards, start must be None or 'find'; {shown(start)} was given; name starts in a fit on one machine."
        )
    data = path if isinstance(path, ShardedData) else ShardedData(path, executor)
    with progress_shown(data.H) if progress else nullcontext():
        model._learn(data, start, judged=True)
    return model
