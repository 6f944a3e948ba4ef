"""Counting on a Ray cluster: every core holds a part of the data as bit planes, and answers with its counts.

A part is an actor. It reads its trajectories from the dataset's own files, packs them, and stays; where it is lost, Ray
starts it again elsewhere, it reads them again, and the question is asked again. The driver adds the counts.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from types import ModuleType
from typing import Any

from craftrl.core.labels import Labels
from craftrl.data.dataset import TrajectoryDataset
from craftrl.engine.packing import Answer, Pack, Part, Parts
from craftrl.errors import ClusterError, InvalidParameterError, require

PATIENCE = 10.0  # seconds in which an address must answer; Ray itself would try for minutes
RESTARTS = 3  # of a part whose process or machine died
MIN_PER_PART = 64  # trajectories of a part: a word of bits
LARGE = 2**16  # bytes of an argument that is sent once, and not to each part by itself


class RayParts(Parts):
    """The trajectories of a dataset in one part for each core of a cluster.

    address  "HOST:PORT" of a cluster; "auto" for the one that this process or machine belongs to; "local" for a Ray
             that is started on this machine
    """

    def __init__(self, tau: TrajectoryDataset, pack: Pack, address: str) -> None:
        self._ray = ray = require("ray", "ray")
        _join(ray, address)
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        alive = [node for node in ray.nodes() if node["Alive"]]
        cores = [node["NodeID"] for node in alive for _ in range(int(node["Resources"].get("CPU", 0)))]
        if not cores:
            raise ClusterError(
                "A cluster must have at least one core for work; this one has none; start a node with --num-cpus."
            )
        cores = cores[: max(1, tau.n // MIN_PER_PART)]
        parts = [Part(tau, number, len(cores)) for number in range(len(cores))]
        self.n, self.rows = tau.n, [part.rows for part in parts]
        # As bytes, of which an actor makes arrays of its own; Ray's are read-only. The driver holds them for restarts.
        sent = (zlib.compress(ray.cloudpickle.dumps((part, pack, os.getcwd()))) for part in parts)
        self._given = [ray.put(given) if len(given) > LARGE else given for given in sent]
        # No core is reserved: who fits and tests a model holds two sets of parts for a while.
        actor = ray.remote(num_cpus=0, max_restarts=RESTARTS, max_task_retries=RESTARTS)(_Actor)
        self._actors = [
            actor.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True)).remote(given)
            for node, given in zip(cores, self._given)
        ]
        there, here = set(self.each(_versions)), _versions(None)
        if there != {here}:
            raise ClusterError(
                f"Every machine must have the versions of this one, {here}; {there - {here}} were found; install the "
                "same packages everywhere."
            )

    def each(self, count: Callable[..., Answer], *args: Any, label: Labels | None = None) -> Iterator[Answer]:
        """An error of a count is raised as itself, a failure of the cluster in one sentence."""
        args = tuple(self._ray.put(arg) if getattr(arg, "nbytes", 0) > LARGE else arg for arg in args)
        cut = [() if label is None else (label[rows],) for rows in self.rows]
        try:
            asked = [actor.ask.remote(count, *args, *own) for actor, own in zip(self._actors, cut)]
            return iter(self._ray.get(asked))
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, Exception) and not isinstance(cause, self._ray.exceptions.RayError):
                raise cause from None
            why = (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]
            raise ClusterError(
                f"Every part of the data must be held, and counted, by some machine of the cluster; one could not, or "
                f"was lost more than {RESTARTS} times ({why}); see Ray's logs, and run it again."
            ) from error


class _Actor:
    """Packs a part of the data when it is first asked, so that what is wrong with the data is an answer."""

    def __init__(self, given: bytes) -> None:
        os.environ["CRAFTRL_NUM_THREADS"] = "1"
        self._part, self._pack, folder = pickle.loads(zlib.decompress(given))
        self._packed: Part | None = None
        with suppress(OSError):
            os.chdir(folder)  # for datasets that were opened by a relative path

    def ask(self, count: Callable[..., Any], *args: Any) -> Any:
        self._packed = self._packed or self._part.pack(self._pack)
        return count(self._packed, *args)


def _join(ray: ModuleType, address: str) -> None:
    """Connect this process to a cluster, until it ends or calls ray.shutdown(); one that is connected stays so."""
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address not in ("auto", "local", there):
            raise InvalidParameterError(
                f"This process is connected to the Ray at {there} already; {address} was given; use ray='auto', or "
                "call ray.shutdown() first."
            )
        return
    try:
        if address not in ("auto", "local"):
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
        more = {"include_dashboard": False} if address == "local" else {}
        ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, **more)
    except Exception as error:
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ClusterError(
            f"A Ray cluster must answer at {address}; none does ({why}); start one with ray start --head, or use "
            "ray='local' for one on this machine."
        ) from error


def _versions(part: Part | None) -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("craftrl", "numpy", "numba", "scipy"))
