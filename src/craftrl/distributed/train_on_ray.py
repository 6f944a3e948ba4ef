"""Networks on the machines of a Ray cluster: Ray Train starts the ranks, and they train as those of torchrun do.

The driver sends the learner and the path of the data, which all machines must be able to read, and gets the fitted
model. Nothing of the data passes through it.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from craftrl.arguments import check_kind, check_source, check_whole
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import present
from craftrl.distributed.ray_connection import connected
from craftrl.distributed.ray_nodes import check_nodes
from craftrl.errors import (
    ClusterError,
    CraftError,
    InvalidParameterError,
    MissingDependencyError,
    require,
)
from craftrl.estimators.craft import CRAFT
from craftrl.estimators.saving import load
from craftrl.oracles.base import Oracle

__all__ = ["fit_networks_on_ray"]

MOST_RANKS = 10_000


def fit_networks_on_ray(
    model: CRAFT,
    path: str | os.PathLike[str],
    *,
    address: str | None = None,
    workers: int | None = None,
    horizon: int | None = None,
) -> CRAFT:
    """`model.fit(path)` with networks that several ranks train together; the model is fitted in place and returned.

    path     a dataset that every machine of the cluster can read under this name, or a URL
    address  the cluster; None for a Ray on this machine, which ends with the fit
    workers  how many ranks; None for one on each GPU there is, or on each core where there is none
    horizon  how many steps to learn from; None for all
    """
    check_kind("model", model, CRAFT, "a CRAFT")
    if workers is not None:
        check_whole("workers", workers, 1, MOST_RANKS)
    if horizon is not None:
        check_whole("horizon", horizon, 2)
    where = check_source("path", path)
    where = where.absolute() if isinstance(where, Path) else where  # ranks may be at home elsewhere
    if address is None:  # a Ray of this machine sees what is seen here; it takes a while to start
        TrajectoryDataset.open(where).first_steps(horizon or 2)
    ray = require("ray", "ray")
    trainer = _trainer()
    work = _Work(model, str(where), horizon)
    with connected(ray, address, workers if address is None else None, None, gpus=None):
        check_nodes(ray)
        box = ray.remote(num_cpus=0)(_Box).remote()
        with tempfile.TemporaryDirectory(prefix="craftrl-train-") as storage:
            try:
                trainer(_rank, {"work": work, "box": box}, _ranks(ray, model, workers), storage).fit()
            except Exception as error:
                raise _plainly(error, ray.get(box.errors.remote())) from error
        content, said = ray.get(box.content.remote())
    for message, category in said:
        warnings.warn(message, category, stacklevel=2)
    return _put_into(model, content)


@dataclass(frozen=True)
class _Work:
    model: CRAFT
    path: str
    horizon: int | None


class _Box:
    """Where the ranks put what the driver is to have: the bytes of the model's file, warnings, and errors."""

    def __init__(self) -> None:
        self._content: tuple[bytes, list[Any]] = b"", []
        self._errors: list[Exception] = []

    def put(self, content: bytes, said: list[Any]) -> None:
        self._content = content, said

    def content(self) -> tuple[bytes, list[Any]]:
        return self._content

    def fail(self, error: Exception) -> None:
        self._errors.append(error)

    def errors(self) -> list[Exception]:
        return self._errors


def _trainer() -> Any:
    """What makes Ray's trainer: of a function with its argument, how many ranks, and a folder for its own files."""
    try:
        from ray.train import FailureConfig, RunConfig
        from ray.train.torch import TorchTrainer
    except ImportError as error:
        raise MissingDependencyError(
            "Networks on Ray need Ray Train, parts of which are not installed; install it with: pip install "
            f"'ray[train]' ({error})"
        ) from error

    def trainer(function: Any, given: dict[str, Any], ranks: Any, storage: str) -> Any:
        run = RunConfig(name="craftrl", storage_path=storage, failure_config=FailureConfig(max_failures=0))
        return TorchTrainer(function, train_loop_config=given, scaling_config=ranks, run_config=run)

    return trainer


def _ranks(ray: Any, model: CRAFT, workers: int | None) -> Any:
    """How many ranks, and what each needs."""
    there = ray.cluster_resources()
    training = getattr(model.oracle, "training", None)
    gpus = 0 if getattr(training, "device", "auto") == "cpu" else int(there.get("GPU", 0))
    n = workers or gpus or int(there.get("CPU", 1))
    kind, room = ("GPUs", gpus) if gpus else ("cores", int(there.get("CPU", 0)))
    if n > room:
        raise InvalidParameterError(
            f"There must be one of the cluster's {kind} for each rank; it has {room}, and {n} ranks were asked for; "
            "give fewer workers."
        )
    needs = {"CPU": 1.0, "GPU": 1.0} if gpus else {"CPU": 1.0}
    return _scaling(num_workers=n, use_gpu=bool(gpus), resources_per_worker=needs)


def _scaling(**settings: Any) -> Any:
    from ray.train import ScalingConfig

    return ScalingConfig(**settings)


def _rank(given: dict[str, Any]) -> None:
    """What each rank does; runs where Ray has put it, in a group of ranks that Ray has connected."""
    import ray

    work, box = given["work"], given["box"]
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            content = _fitted(work)
        if present().rank == 0:
            ray.get(box.put.remote(content, [(str(w.message), w.category) for w in said]))
    except Exception as error:
        ray.get(box.fail.remote(error))
        raise


def _fitted(work: _Work) -> bytes:
    import torch

    if torch.cuda.is_available():
        from ray.train.torch import get_device

        if get_device().type == "cuda":  # Ray knows which of the machine's GPUs are this rank's
            torch.cuda.set_device(get_device())
    tau = TrajectoryDataset.open(work.path)
    work.model.fit(tau if work.horizon is None else tau.first_steps(work.horizon))
    if present().rank != 0:
        return b""
    with tempfile.TemporaryDirectory() as folder:
        work.model.save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


def _put_into(model: CRAFT, content: bytes) -> CRAFT:
    """The model, with what the ranks have learned."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model").write_bytes(content)
        learned = load(Path(folder) / "model", oracle=model.oracle if isinstance(model.oracle, Oracle) else None)
    for name, value in vars(learned).items():
        if name.endswith("_"):
            setattr(model, name, value)
    return model


def _plainly(error: Exception, told: list[Exception]) -> CraftError:
    """What the rank that failed first has said; ranks that fail because another one has say so in fixed words."""
    from craftrl.oracles.network.process_group import LOST

    own = [known for known in told if isinstance(known, CraftError)]
    for known in [*(known for known in own if not str(known).startswith(LOST)), *own]:
        return known
    reason = " ".join(str(told[0] if told else error).split())[:200]
    return ClusterError(f"All ranks must come to the end of the fit; they did not ({reason}); see Ray's logs.")
